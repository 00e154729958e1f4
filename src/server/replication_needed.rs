//! Whether replication is needed: whether anything may ever read what is replicated.
//!
//! RM_Replicate builds its command even if the server then discards it: a fifth of the cost of a DQ.ADD. So it is
//! worth knowing that there is no reader. Why that is safe to know: every reader of effects begins at a snapshot that
//! this process has forked (a replica, an AOF that is switched on, a migrating slot), loaded or received from its
//! master, or at its start. So there is no reader while there is neither AOF nor replica nor backlog, and that ends
//! only with a fork, a load, a change of role or of configuration; this module notices each. Once there may be a
//! reader, it stays so.

use super::api::{api, Ctx};
use std::cell::Cell;
use std::ffi::CStr;

thread_local! {
    /// `None`: to be found out.
    static NEEDED: Cell<Option<bool>> = const { Cell::new(None) };
}

pub fn now(ctx: Ctx<'_>) -> bool {
    NEEDED.get().unwrap_or_else(|| {
        let needed = look(ctx);
        NEEDED.set(Some(needed));
        needed
    })
}

/// Something happened with which a reader may have come. Not looked for before the next command: at
/// the end of a load, for one, the server has yet to make the backlog that belongs to it.
pub fn may_have_begun() {
    if NEEDED.get() == Some(false) {
        NEEDED.set(None);
    }
}

fn look(ctx: Ctx<'_>) -> bool {
    let flags = ctx.flags();
    // The slots of a cluster can be moved elsewhere by streams of their own.
    if !flags.is_master() || flags.has_aof() || flags.is_cluster() {
        return true;
    }
    // SAFETY: live context; the section's name ends in NUL, and the answer is freed here.
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
