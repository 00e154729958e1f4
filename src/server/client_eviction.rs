//! CVE-2026-130822: servers may crash when they evict a client (`maxmemory-clients`) that waits in a module's command.
//! The log says so where a server that is not patched is told to evict clients.

use super::api::{api, log, Ctx};
use redis_module::raw;
use std::ffi::{c_char, CStr};

const SETTING: &CStr = c"maxmemory-clients";

type Version = (u32, u32, u32);

/// The first patched version of each series.
const PATCHED_VALKEY: [Version; 5] = [(7, 2, 16), (8, 0, 13), (8, 1, 12), (9, 0, 8), (9, 1, 4)];
const PATCHED_REDIS: [Version; 1] = [(8, 10, 1)];

/// Whether a version is older than the patched one of its series, or its series than all that were patched.
const fn is_unpatched((major, minor, patch): Version, patched: &[Version]) -> bool {
    let (mut at, mut is_older) = (0, false);
    while at < patched.len() {
        let (of, series, first) = patched[at];
        if major == of && minor == series {
            return patch < first;
        }
        is_older |= major < of || major == of && minor < series;
        at += 1;
    }
    is_older
}

const _: () = {
    assert!(is_unpatched((9, 1, 3), &PATCHED_VALKEY) && !is_unpatched((9, 1, 4), &PATCHED_VALKEY));
    assert!(is_unpatched((7, 2, 9), &PATCHED_VALKEY) && !is_unpatched((8, 0, 13), &PATCHED_VALKEY));
    assert!(!is_unpatched((9, 2, 0), &PATCHED_VALKEY));
    assert!(is_unpatched((7, 0, 15), &PATCHED_REDIS) && is_unpatched((8, 10, 0), &PATCHED_REDIS));
    assert!(!is_unpatched((8, 10, 1), &PATCHED_REDIS) && !is_unpatched((8, 12, 0), &PATCHED_REDIS));
};

/// Called at load.
pub fn warn(ctx: Ctx<'_>) {
    let is_on = setting(ctx).is_some_and(|value| !["0", "0%"].contains(&&*value));
    let is_unpatched = || match ctx.valkey_version() {
        Some(version) => is_unpatched(version, &PATCHED_VALKEY),
        None => is_unpatched(ctx.redis_version(), &PATCHED_REDIS),
    };
    if is_on && is_unpatched() {
        log(
            c"warning",
            "maxmemory-clients is not 0: this version of the server may crash when it evicts a client that waits in DQ.BPOP, \
             DQ.AWAIT or DQ.BTOUCH (CVE-2026-130822). Set it to 0 until the server is updated",
        );
    }
}

/// Called when settings have changed.
///
/// # Safety
/// `changes` is what the server passed with the event.
pub unsafe fn warn_if_changed(ctx: Ctx<'_>, changes: &raw::RedisModuleConfigChange) {
    // SAFETY: the caller's promise: so many names, each of which ends in NUL.
    let is_among = unsafe {
        let names = std::slice::from_raw_parts(changes.config_names, changes.num_changes as usize);
        names.iter().any(|&name| CStr::from_ptr(name) == SETTING)
    };
    if is_among {
        warn(ctx);
    }
}

/// `None` if CONFIG GET is not to be had, as where the command is renamed.
fn setting(ctx: Ctx<'_>) -> Option<String> {
    // SAFETY: the format names C strings; the reply, an array of a name and a value, is read before it is freed.
    unsafe {
        let (get, name) = (c"GET".as_ptr(), SETTING.as_ptr());
        let reply = api!(
            RedisModule_Call,
            ctx.raw(),
            c"CONFIG".as_ptr(),
            c"cc".as_ptr(),
            get,
            name
        );
        if reply.is_null() {
            return None;
        }
        let value = api!(RedisModule_CallReplyArrayElement, reply, 1);
        let mut len = 0;
        let text: *const c_char = match value.is_null() {
            true => std::ptr::null(),
            false => api!(RedisModule_CallReplyStringPtr, value, &mut len),
        };
        let bytes = (!text.is_null()).then(|| std::slice::from_raw_parts(text.cast(), len));
        let text = bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        api!(RedisModule_FreeCallReply, reply);
        text
    }
}
