//! How a command is entered: its arguments in, its refusal or a bug as the reply. And how a reply stays whole whose elements
//! are written while the queue produces them.

use super::ctx::{caught, log_bug, Ctx, BUG};
use super::function::{Args, RawString, OK};
use redis_module::raw;
use std::cell::Cell;
use std::ffi::c_int;
use std::thread::panicking;

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
            if !HAS_REPLIED.take() {
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

thread_local! {
    /// A reply was completed while a panic unwound: the command has replied.
    static HAS_REPLIED: Cell<bool> = const { Cell::new(false) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// One element, without an array around it; or none yet.
    Single,
    /// An array whose length was given at its start.
    Fixed(usize),
    /// An array whose length is set at its end.
    Open,
}

/// The elements of a reply that are written so far. If a broken invariant stops that in the middle, the reply is completed:
/// otherwise the client would take the next replies for the rest of this one.
pub struct Elements<'a> {
    ctx: Ctx<'a>,
    shape: Shape,
    len: usize,
}

impl<'a> Elements<'a> {
    /// Begins a reply of one element, or of an array with any number of them.
    pub fn begin(ctx: Ctx<'a>, in_array: bool) -> Self {
        if in_array {
            ctx.reply_array_of_unknown_len();
        }
        let shape = if in_array { Shape::Open } else { Shape::Single };
        Elements { ctx, shape, len: 0 }
    }

    /// Begins a reply of one element, or of an array with `count` of them.
    pub fn begin_fixed(ctx: Ctx<'a>, count: Option<usize>) -> Self {
        count.iter().for_each(|&count| ctx.reply_array(count));
        Elements {
            ctx,
            shape: count.map_or(Shape::Single, Shape::Fixed),
            len: 0,
        }
    }

    /// Counts an element that is about to be written.
    pub fn count(&mut self) {
        self.len += 1;
    }

    fn make_whole(&mut self) {
        match self.shape {
            Shape::Single if self.len == 0 => return,
            Shape::Single => {}
            Shape::Fixed(count) => (self.len..count).for_each(|_| self.ctx.reply_error(BUG)),
            Shape::Open => {
                self.ctx.reply_error(BUG);
                self.len += 1;
            }
        }
        HAS_REPLIED.set(true);
    }
}

impl Drop for Elements<'_> {
    fn drop(&mut self) {
        if panicking() {
            self.make_whole();
        }
        if self.shape == Shape::Open {
            self.ctx.set_array_len(self.len);
        }
    }
}
