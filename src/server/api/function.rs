//! How functions of the module API are called, and what they take and return: the server's strings above all, which are
//! arguments, names of keys, and those that we make.

use redis_module::raw;
use std::ffi::c_int;
use std::marker::PhantomData;

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

/// A string of the server that lives as long as `'a` and can be passed back to it: the name of a key.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct KeyName<'a> {
    string: RawString,
    lives: PhantomData<&'a ()>,
}

impl<'a> KeyName<'a> {
    /// # Safety
    /// `string` is a live module string for as long as `'a`, and nothing appends to it meanwhile.
    pub unsafe fn new(string: RawString) -> Self {
        KeyName {
            string,
            lives: PhantomData,
        }
    }

    pub fn bytes(self) -> &'a [u8] {
        // SAFETY: what `new` was promised.
        unsafe { bytes_of(self.string) }
    }

    pub fn raw(self) -> RawString {
        self.string
    }
}

/// The arguments of the running command, its name first.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    strings: &'a [KeyName<'a>],
}

impl<'a> Args<'a> {
    /// # Safety
    /// `argv` and `argc` are those that the server passed to the running callback, and `'a` ends with it.
    pub unsafe fn new(argv: *mut RawString, argc: c_int) -> Self {
        let strings: &'a [KeyName<'a>] = if argv.is_null() || argc <= 0 {
            &[]
        } else {
            // SAFETY: the caller's promise; a `KeyName` is a string pointer and nothing else.
            unsafe { std::slice::from_raw_parts(argv.cast(), argc as usize) }
        };
        Args { strings }
    }

    pub fn len(self) -> usize {
        self.strings.len()
    }

    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        self.strings.get(index).map(|string| string.bytes())
    }

    pub fn key(self, index: usize) -> Option<KeyName<'a>> {
        self.strings.get(index).copied()
    }

    pub fn all(self) -> &'a [KeyName<'a>] {
        self.strings
    }
}

/// # Safety
/// `string` is a live module string for as long as `'a`, and nothing appends to it meanwhile.
pub unsafe fn bytes_of<'a>(string: RawString) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: the caller's promise; the server returns where the bytes are, and how many.
    unsafe {
        let start = api!(RedisModule_StringPtrLen, string, &mut len);
        if start.is_null() {
            return &[];
        }
        std::slice::from_raw_parts(start.cast(), len)
    }
}

/// A module string that we made, freed when this is dropped. Main thread only.
pub struct OwnString(RawString);

impl OwnString {
    pub fn new(bytes: &[u8]) -> Self {
        // SAFETY: without a context the string belongs to us alone.
        OwnString(unsafe {
            api!(
                RedisModule_CreateString,
                std::ptr::null_mut(),
                bytes.as_ptr().cast(),
                bytes.len()
            )
        })
    }

    /// For the server, which frees it.
    pub fn into_raw(self) -> RawString {
        std::mem::ManuallyDrop::new(self).0
    }

    pub fn name(&self) -> KeyName<'_> {
        // SAFETY: freed with this, which `'_` does not outlive.
        unsafe { KeyName::new(self.0) }
    }
}

impl Drop for OwnString {
    fn drop(&mut self) {
        // SAFETY: made in `new`, freed once.
        unsafe { api!(RedisModule_FreeString, std::ptr::null_mut(), self.0) };
    }
}
