//! How a command is entered: its arguments in, its refusal or a bug as the reply.

use super::ctx::{caught, log_bug, Ctx, BUG};
use super::elements;
use super::function::{RawString, OK};
use super::strings::Args;
use redis_module::raw;
use std::ffi::c_int;

/// A command's body. It writes the reply, or returns a refusal that becomes the reply.
pub type Body = fn(Ctx<'_>, Args<'_>) -> Result<(), Refusal>;

/// Why a command is refused: the whole reply, its code included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub std::borrow::Cow<'static, str>);

impl From<crate::queue::error::QueueError> for Refusal {
    fn from(error: crate::queue::error::QueueError) -> Self {
        Refusal(error.text().into())
    }
}

/// A command's name, for the log.
fn name_of(args: Args<'_>) -> String {
    let name = args.get(0).unwrap_or_default().to_ascii_uppercase();
    name.escape_ascii().to_string()
}

/// What every command's entry does.
///
/// # Safety
/// The arguments are those that the server passed to a command's callback.
pub unsafe fn enter(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut RawString,
    argc: c_int,
    body: Body,
) -> c_int {
    // SAFETY: the caller's promise; both end with this call.
    let (ctx, args) = unsafe { (Ctx::new(ctx), Args::new(argv, argc)) };
    match caught(|| body(ctx, args)) {
        Ok(Ok(())) => {}
        Ok(Err(refusal)) => ctx.reply_error(&refusal.0),
        Err(panic) => {
            log_bug(&name_of(args), &panic);
            if !elements::has_replied() {
                ctx.reply_error(BUG);
            }
        }
    }
    OK
}

/// The entry of one command: a function in the server's form around a [`Body`].
macro_rules! entry {
    ($body:path) => {{
        unsafe extern "C" fn entry(
            ctx: *mut redis_module::raw::RedisModuleCtx,
            argv: *mut *mut redis_module::raw::RedisModuleString,
            argc: std::ffi::c_int,
        ) -> std::ffi::c_int {
            // SAFETY: called by the server, with its arguments.
            unsafe { $crate::server::api::enter(ctx, argv, argc, $body) }
        }
        entry as $crate::server::api::Entry
    }};
}
pub(crate) use entry;

pub type Entry = unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut RawString, c_int) -> c_int;
