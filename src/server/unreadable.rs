//! Handles data from a trusted source (a master, a file, a node whose slots are imported) that
//! cannot be read. Skipping it would lose jobs, unnoticed until this server is promoted or the
//! other node deletes its own. So if a newer version of the module wrote it, a replica or a server
//! that loads exits, as servers do on files that they cannot read. An import of slots is cancelled,
//! so that the slots stay where they are.

use super::api::{api, log, shown, Ctx, Flags};
use super::arrival::log_refused;
use super::imports;
use crate::queue::error::QueueError;
use std::ffi::c_void;
use std::ptr::null_mut;

/// The data came in DQ.APPLY, which only trusted sources send.
#[cold]
pub fn met_in_effects(ctx: Ctx<'_>, key: &[u8], error: QueueError) {
    let flags = ctx.flags();
    let imports = flags.is_master() && !flags.is_loading();
    let what = if imports {
        "an import of slots is cancelled: effects on"
    } else {
        "the queue may now differ from its master's or its file's: effects on"
    };
    log_refused(what, key, error);
    if imports {
        imports::refuse(key);
        cut_off(ctx.client_id());
    } else if error == QueueError::Newer {
        end(flags, key);
    }
}

/// The data came in a file, or in a RESTORE; where clients can write, a client may have sent that.
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
            "this server exits: {whose} written by a newer version of the module (key '{name}'). It would lose \
             jobs without the parts that it cannot read. Install that version on this server and start it again"
        ),
    );
    std::process::exit(1);
}

/// Closes the client's connection, after this command: while the command runs, the server would wait for a reply that
/// never comes.
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
    // SAFETY: the server does not read the context; a client that is gone by now is not found.
    unsafe { api!(RedisModule_DeauthenticateAndCloseClient, null_mut(), client) };
}
