//! Whether replication is needed: whether anything may ever read what is replicated.
//!
//! RM_Replicate builds its command even if the server then discards it: a fifth of the cost of a
//! DQ.ADD. So it pays to know that there is no reader.
//!
//! Why this can be known: every reader of effects begins at a snapshot that this process has forked
//! (a replica, an AOF that is switched on, a migrating slot), loaded or received from its master,
//! or at its start. So there is no reader while there is neither AOF nor replica nor backlog. That
//! can change only with a fork, a load, or a change of role or of configuration; this module
//! notices each. Once there may be a reader, the answer stays yes.

use super::api::{api, Ctx};
use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, Ordering};

/// An answer; UNKNOWN if it must be determined anew. An atomic, which is cheaper to read than a thread-local: each
/// command reads it.
static NEEDED: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;

#[inline]
pub fn now(ctx: Ctx<'_>) -> bool {
    match NEEDED.load(Ordering::Relaxed) {
        UNKNOWN => find_out(ctx),
        known => known == YES,
    }
}

#[cold]
fn find_out(ctx: Ctx<'_>) -> bool {
    let needed = determine(ctx);
    NEEDED.store(if needed { YES } else { NO }, Ordering::Relaxed);
    needed
}

/// Something happened that may have brought a reader. The answer is determined only at the next
/// command: at the end of a load, for example, the server has yet to create the backlog that
/// belongs to it.
pub fn may_have_begun() {
    if NEEDED.load(Ordering::Relaxed) == NO {
        NEEDED.store(UNKNOWN, Ordering::Relaxed);
    }
}

fn determine(ctx: Ctx<'_>) -> bool {
    let flags = ctx.flags();
    // Streams of their own can move slots of a cluster elsewhere.
    if !flags.is_master() || flags.has_aof() || flags.is_cluster() {
        return true;
    }
    // SAFETY: live context; the section's name ends in NUL; what the server returns is freed here.
    unsafe {
        let info = api!(
            RedisModule_GetServerInfo,
            ctx.raw(),
            c"replication".as_ptr()
        );
        let is_zero = |field: &CStr| {
            let mut error = 0;
            let value = api!(
                RedisModule_ServerInfoGetFieldUnsigned,
                info,
                field.as_ptr(),
                &mut error
            );
            error == 0 && value == 0
        };
        let none = is_zero(c"connected_slaves") && is_zero(c"repl_backlog_active");
        api!(RedisModule_FreeServerInfo, ctx.raw(), info);
        !none
    }
}
