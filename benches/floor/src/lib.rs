//! Commands that do nothing: they read their arguments, open the key for writing, and reply as dq's do.
//! What they cost is the server's, and so what no queue in a module can do without.
#![deny(unsafe_op_in_unsafe_fn)]

use redis_module::{raw, redis_module, Context, RedisString, Status};
use std::ffi::{c_char, c_int, c_longlong, CStr};

type Entry = unsafe extern "C" fn(
    *mut raw::RedisModuleCtx,
    *mut *mut raw::RedisModuleString,
    c_int,
) -> c_int;

const COMMANDS: [(&CStr, Entry, &CStr); 3] = [
    (c"floor.add", add, c"write deny-oom fast"),
    (c"floor.pop", pop, c"write fast"),
    (c"floor.ack", ack, c"write fast"),
];

/// Of the lengths that the benchmarks have.
const ID: &[u8] = &[b'i'; 16];
const PAYLOAD: &[u8] = &[b'p'; 64];
const TOKEN: &[u8] = b"1868310401484849152";
const DEADLINE: c_longlong = 1_800_000_000_000;

/// Calls a function of the module API. All that are named here are older than any server this runs on.
macro_rules! api {
    ($name:ident, $($arg:expr),*) => {
        (raw::$name.expect("an old function"))($($arg),*)
    };
}

/// # Safety
/// Called by the server, with its arguments.
unsafe fn read_and_open(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) {
    // SAFETY: the server passes `argc` strings, the second of which is the key.
    unsafe {
        for index in 1..argc as usize {
            let mut len = 0;
            std::hint::black_box(api!(RedisModule_StringPtrLen, *argv.add(index), &mut len));
        }
        let key = api!(
            RedisModule_OpenKey,
            ctx,
            *argv.add(1),
            raw::REDISMODULE_WRITE as c_int
        );
        api!(RedisModule_CloseKey, key.cast());
    }
}

/// # Safety
/// As above.
unsafe fn reply(ctx: *mut raw::RedisModuleCtx, bytes: &[u8]) {
    // SAFETY: a live context; the server copies the bytes.
    unsafe {
        api!(
            RedisModule_ReplyWithStringBuffer,
            ctx,
            bytes.as_ptr().cast::<c_char>(),
            bytes.len()
        );
    }
}

/// A command of that name, and what it replies in the context of that name.
macro_rules! command {
    ($name:ident, $ctx:ident, $reply:block) => {
        unsafe extern "C" fn $name(
            $ctx: *mut raw::RedisModuleCtx,
            argv: *mut *mut raw::RedisModuleString,
            argc: c_int,
        ) -> c_int {
            // SAFETY: called by the server, with its arguments.
            unsafe {
                read_and_open($ctx, argv, argc);
                $reply
            }
            raw::REDISMODULE_OK as c_int
        }
    };
}

command!(add, ctx, {
    reply(ctx, ID);
});
command!(pop, ctx, {
    api!(RedisModule_ReplyWithArray, ctx, 5);
    reply(ctx, ID);
    reply(ctx, PAYLOAD);
    reply(ctx, TOKEN);
    api!(RedisModule_ReplyWithLongLong, ctx, 1);
    api!(RedisModule_ReplyWithLongLong, ctx, DEADLINE);
});
command!(ack, ctx, {
    api!(RedisModule_ReplyWithLongLong, ctx, 1);
});

fn load(context: &Context, _: &[RedisString]) -> Status {
    let create = |(name, entry, flags): (&CStr, Entry, &CStr)| {
        // SAFETY: the context of the load; the server copies name and flags.
        unsafe {
            api!(
                RedisModule_CreateCommand,
                context.ctx,
                name.as_ptr(),
                Some(entry),
                flags.as_ptr(),
                1,
                1,
                1
            )
        }
    };
    let is_created = |command| create(command) == raw::REDISMODULE_OK as c_int;
    match COMMANDS.into_iter().all(is_created) {
        true => Status::Ok,
        false => Status::Err,
    }
}

redis_module! {
    name: "floor",
    version: 1,
    allocator: (redis_module::alloc::RedisAlloc, redis_module::alloc::RedisAlloc),
    data_types: [],
    init: load,
    commands: [],
}
