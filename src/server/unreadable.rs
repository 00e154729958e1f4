//! What comes from those whom this server obeys, and cannot be read: from a master, from a file, or from a node whose
//! slots are to come here. To leave it out would lose jobs, unnoticed until this server is promoted, or the other node
//! has deleted its own. So where a newer version of the module wrote it, a replica, or a server that loads, ends, as
//! servers do on files that they cannot read; and an import of slots is broken off, so that they stay where they are.

use super::api::{api, log, shown, Ctx, Flags};
use super::arrival::log_refused;
use super::imports;
use crate::queue::error::QueueError;
use std::ffi::c_void;
use std::ptr::null_mut;

/// In DQ.APPLY, which only those send who are obeyed.
#[cold]
pub fn met_in_effects(ctx: Ctx<'_>, key: &[u8], error: QueueError) {
    let flags = ctx.flags();
    let imports = flags.is_master() && !flags.is_loading();
    let what = if imports {
        "an import of slots is broken off: effects on"
    } else {
        "the queue may differ from its master's or its file's now: effects on"
    };
    log_refused(what, key, error);
    if imports {
        imports::refuse(key);
        cut_off(ctx.client_id());
    } else if error == QueueError::Newer {
        end(flags, key);
    }
}

/// In a file, or in what RESTORE brings: that may be a client's where clients can write.
#[cold]
pub fn met_in_value(ctx: Ctx<'_>, key: &[u8], error: QueueError) {
    log_refused("data of the queue", key, error);
    imports::refuse(key);
    let flags = ctx.flags();
    if error == QueueError::Newer && (flags.is_loading_alone() || flags.is_read_only()) {
        end(flags, key);
    }
}

fn end(flags: Flags, key: &[u8]) -> ! {
    let whose = if flags.is_loading() {
        "what it loads was"
    } else {
        "what its master sends is"
    };
    let name = shown(key);
    log(
        c"warning",
        &format!(
            "this server ends here: {whose} written by a newer version of the module (key '{name}'). Without what it \
             does not know it would lose jobs. Install that version on this server, and start it again"
        ),
    );
    std::process::exit(1);
}

/// The client's connection carries nothing from now on, and is closed as soon as this command is over: while it runs,
/// the server would close it only after a reply, of which there is none.
fn cut_off(client: u64) {
    close(client);
    // SAFETY: the callback takes the number itself.
    unsafe {
        api!(
            RedisModule_EventLoopAddOneShot,
            Some(close_later),
            client as *mut c_void
        )
    };
}

unsafe extern "C" fn close_later(client: *mut c_void) {
    close(client as u64);
}

fn close(client: u64) {
    // SAFETY: the context is not looked at; a client that is gone by now is not found.
    unsafe { api!(RedisModule_DeauthenticateAndCloseClient, null_mut(), client) };
}
