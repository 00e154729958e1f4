//! The data type `dq-queue1`: the server's callbacks on a queue's value.

use super::api::{api, bytes_of, guarded, Ctx, RawString};
use super::arrival::{Arrival, Origin};
use super::defrag::defrag;
use super::key::attention_after_load;
use super::queue_value::{new_queue, Value};
use super::{
    agenda, async_load, awaits, blocked, clock, queue_value, reclaim, renamed, replicate,
    unreadable,
};
use crate::queue::codec::{begin, encode};
use crate::queue::effect::Effect;
use crate::queue::error::QueueError;
use redis_module::native_types::RedisType;
use redis_module::raw;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

/// The encoding version of every dump.
const ENCODING_VERSION: c_int = 1;

static DQ_QUEUE: RedisType = RedisType::new("dq-queue1", ENCODING_VERSION, METHODS);

const METHODS: raw::RedisModuleTypeMethods = raw::RedisModuleTypeMethods {
    // The newest version that Redis 7.0 knows.
    version: 4,
    rdb_load: Some(rdb_load),
    rdb_save: Some(rdb_save),
    aof_rewrite: Some(aof_rewrite),
    mem_usage: None,
    digest: Some(digest),
    free: Some(free),
    aux_load: None,
    aux_save: None,
    aux_save_triggers: 0,
    free_effort: None,
    unlink: None,
    copy: None,
    defrag: Some(defrag),
    mem_usage2: Some(mem_usage),
    free_effort2: Some(free_effort),
    unlink2: Some(unlink),
    copy2: Some(copy),
    aux_save2: None,
};

/// Called once, at load.
pub fn register(ctx: Ctx<'_>) -> bool {
    let is_registered = DQ_QUEUE.create_data_type(ctx.raw()).is_ok();
    queue_value::set_data_type(*DQ_QUEUE.raw_type.borrow());
    is_registered
}

/// # Safety
/// `value` was made by [`super::key::OpenKey::create`] or a callback here.
unsafe fn value_of<'a>(value: *const c_void) -> &'a Value {
    // SAFETY: the caller's promise.
    unsafe { &*value.cast() }
}

unsafe extern "C" fn rdb_save(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    guarded("rdb_save", (), || {
        // SAFETY: the server passes a value of our type; the buffer is copied before it returns.
        let save = |bytes: &[u8]| unsafe {
            api!(
                RedisModule_SaveStringBuffer,
                io,
                bytes.as_ptr().cast::<c_char>(),
                bytes.len()
            );
        };
        // SAFETY: as above.
        let value = unsafe { value_of(value) };
        value.snapshot(&mut |chunk| save(chunk));
        save(&minted());
        save(&[]);
    });
}

/// The last id and token drawn. They are saved so that both keep growing, even if the clock is set
/// back before the next start.
fn minted() -> Vec<u8> {
    let ((ms, seq), token) = clock::with_mint(|mint| (mint.id(), mint.token()));
    let mut bytes = Vec::new();
    begin(&mut bytes);
    encode(&Effect::Minted { ms, seq, token }, &mut bytes);
    bytes
}

unsafe extern "C" fn rdb_load(io: *mut raw::RedisModuleIO, version: c_int) -> *mut c_void {
    guarded("rdb_load", null_mut(), || {
        if version > ENCODING_VERSION {
            return refused(io, QueueError::Newer);
        }
        let mut arrival = Arrival::from(origin());
        let mut queue = new_queue();
        queue.begin_restore();
        loop {
            let mut len = 0;
            // SAFETY: `io` is live; the returned buffer is ours to free.
            let chunk = unsafe { api!(RedisModule_LoadStringBuffer, io, &mut len) };
            if chunk.is_null() {
                return null_mut();
            }
            // SAFETY: the server says that `len` bytes lie there.
            let bytes = unsafe { std::slice::from_raw_parts(chunk.cast(), len) };
            let applied = (len > 0).then(|| arrival.carry_out(&mut queue, bytes));
            // SAFETY: loaded above, not used below.
            unsafe { api!(RedisModule_Free, chunk.cast()) };
            let ended = match applied {
                Some(Ok(())) => continue,
                Some(Err(error)) => Err(error),
                None => {
                    let name = name_in(io).unwrap_or_default();
                    let ended = arrival.end_file(&mut queue, name);
                    ended.and_then(|()| arrival.end(&mut queue))
                }
            };
            if let Err(error) = ended {
                return refused(io, error);
            }
            let mut value = Box::new(Value::new(queue));
            note_arrival(io, &mut value);
            return Box::into_raw(value).cast();
        }
    })
}

#[cold]
fn refused(io: *mut raw::RedisModuleIO, error: QueueError) -> *mut c_void {
    let name = name_in(io).unwrap_or_default();
    // SAFETY: as in `origin`.
    unreadable::met_in_value(unsafe { Ctx::new(null_mut()) }, name, error);
    null_mut()
}

/// Outside a load, RESTORE and COPY come from a client, except on a replica, which repeats what its
/// master did.
fn origin() -> Origin {
    // SAFETY: the server allows a null context, for flags about itself.
    let flags = unsafe { Ctx::new(null_mut()) }.flags();
    if flags.is_master() && !flags.is_loading() {
        Origin::Client
    } else {
        Origin::Trusted
    }
}

/// A queue is about to be stored under this name: puts it on the agenda. Nothing else reports
/// queues that come from a file. If a client restores one, the name may still hold another.
fn note_arrival(io: *mut raw::RedisModuleIO, value: &mut Value) {
    let Some(name) = name_in(io) else {
        return;
    };
    // SAFETY: `io` is live; the server allows a null context, for flags about itself.
    let (db, flags) = unsafe {
        let db = api!(RedisModule_GetDbIdFromIO, io);
        (db, Ctx::new(null_mut()).flags())
    };
    async_load::noting(|| {
        if flags.is_loading() {
            note_loaded(db, name, value);
        } else {
            agenda::check_soon(db, name);
            renamed::note_arriving(db, name);
        }
    });
}

/// Puts a loaded queue on the agenda at its own next instant, not at once. After a load of very
/// many queues, a check of each would delay clients that wait for this server to take over.
fn note_loaded(db: c_int, name: &[u8], value: &mut Value) {
    let now = clock::now();
    value.armed_for = attention_after_load(value.queue(), blocked::kinds(db, name), now);
    agenda::set(db, name, value.armed_for);
    value.account_as(db, name);
    value.sleep();
}

/// The name of the key that is being read, if the server knows it.
fn name_in<'a>(io: *mut raw::RedisModuleIO) -> Option<&'a [u8]> {
    // SAFETY: `io` is live, and so is the name in it.
    unsafe {
        let name = api!(RedisModule_GetKeyNameFromIO, io);
        (!name.is_null()).then(|| bytes_of(name.cast_mut()))
    }
}

unsafe extern "C" fn aof_rewrite(io: *mut raw::RedisModuleIO, key: RawString, value: *mut c_void) {
    guarded("aof_rewrite", (), || {
        // SAFETY: the format names what follows: a module string, and a buffer with its length.
        let emit = |bytes: &[u8]| unsafe {
            api!(
                RedisModule_EmitAOF,
                io,
                replicate::APPLY.as_ptr(),
                c"sb".as_ptr(),
                key,
                bytes.as_ptr().cast::<c_char>(),
                bytes.len()
            );
        };
        // SAFETY: the server passes a value of our type.
        let value = unsafe { value_of(value) };
        value.snapshot(&mut |chunk| emit(chunk));
        emit(&minted());
    });
}

unsafe extern "C" fn digest(digest: *mut raw::RedisModuleDigest, value: *mut c_void) {
    guarded("digest", (), || {
        // SAFETY: a live digest and a value of our type; the bytes are read before it returns.
        unsafe {
            let mut add = |bytes: &[u8]| {
                api!(
                    RedisModule_DigestAddStringBuffer,
                    digest,
                    bytes.as_ptr().cast::<c_char>(),
                    bytes.len()
                );
            };
            value_of(value).with_queue(|queue| queue.digest(&mut add));
            // One sequence: the digest would ignore the order of several.
            api!(RedisModule_DigestEndSequence, digest);
        }
    });
}

/// May run on a background thread, where it drops plain memory and touches nothing else.
unsafe extern "C" fn free(value: *mut c_void) {
    guarded("free", (), || {
        renamed::note_freed(value);
        // SAFETY: made by `Box::into_raw`; the server gives it back once.
        let value = unsafe { Box::from_raw(value.cast::<Value>()) };
        value.into_queue().into_iter().for_each(reclaim::free_later);
    });
}

unsafe extern "C" fn mem_usage(
    _ctx: *mut raw::RedisModuleKeyOptCtx,
    value: *const c_void,
    _samples: usize,
) -> usize {
    guarded("mem_usage", 0, || {
        // SAFETY: the server passes a value of our type.
        unsafe { value_of(value) }.memory_bytes()
    })
}

/// Above 64 the server frees on a background thread, if it is configured to.
unsafe extern "C" fn free_effort(
    _ctx: *mut raw::RedisModuleKeyOptCtx,
    value: *const c_void,
) -> usize {
    guarded("free_effort", 1, || {
        // SAFETY: the server passes a value of our type.
        unsafe { value_of(value) }.free_effort().max(1)
    })
}

unsafe extern "C" fn unlink(ctx: *mut raw::RedisModuleKeyOptCtx, value: *const c_void) {
    guarded("unlink", (), || {
        renamed::note_unlinked(value);
        // SAFETY: a live context; the name in it lives as long.
        unsafe {
            let name = api!(RedisModule_GetKeyNameFromOptCtx, ctx);
            if !name.is_null() {
                let db = api!(RedisModule_GetDbIdFromOptCtx, ctx);
                gone(db, bytes_of(name.cast_mut()));
            }
        }
    });
}

/// Removes the name from the agenda. While renamed queues are searched for, no event reports a
/// queue that a file's RESTORE has replaced: then the name is checked instead.
fn gone(db: c_int, name: &[u8]) {
    awaits::recheck(db, name);
    blocked::another_queue(db, name);
    // SAFETY: the server allows a null context, for flags about itself.
    let is_loading = || unsafe { Ctx::new(null_mut()) }.flags().is_loading();
    if renamed::is_searching() && is_loading() {
        agenda::check_soon(db, name);
    } else {
        agenda::remove(db, name);
    }
}

/// A queue that is kept only for its waiting clients does not exist for other clients. Here COPY
/// fails, so that it does not replace its target by nothing: the server leaves no way to answer 0
/// from this callback.
unsafe extern "C" fn copy(
    ctx: *mut raw::RedisModuleKeyOptCtx,
    value: *const c_void,
) -> *mut c_void {
    guarded("copy", null_mut(), || {
        // SAFETY: a live context; the name in it lives as long.
        unsafe {
            let name = api!(RedisModule_GetToKeyNameFromOptCtx, ctx);
            if !name.is_null() {
                let db = api!(RedisModule_GetToDbIdFromOptCtx, ctx);
                renamed::note_arriving(db, bytes_of(name.cast_mut()));
            }
        }
        // SAFETY: the server passes a value of our type.
        unsafe { value_of(value) }.with_queue(|queue| {
            if queue.is_disposable() && origin() == Origin::Client {
                return null_mut();
            }
            reclaim::pay_for(|| queue.free_effort());
            Box::into_raw(Box::new(Value::new(queue.copied()))).cast()
        })
    })
}
