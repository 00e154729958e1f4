//! How functions of the module API are called, and what they take and return.

use redis_module::raw;
use std::ffi::c_int;

/// Calls a function of the module API. The load has checked that all of them exist.
macro_rules! api {
    ($name:ident $(, $arg:expr)* $(,)?) => {{
        let function = redis_module::raw::$name;
        match function {
            Some(function) => function($($arg),*),
            None => $crate::server::api::function::missing(stringify!($name)),
        }
    }};
}
pub(crate) use api;

pub fn missing(name: &str) -> ! {
    unreachable!("the load has checked that the server has {name}")
}

pub type RawString = *mut raw::RedisModuleString;

pub const OK: c_int = raw::REDISMODULE_OK as c_int;
pub const ERR: c_int = raw::REDISMODULE_ERR as c_int;
