//! Atomic imports of slots, in Redis 8.4 and newer. If the module refuses a value, the server skips
//! it with a line in the log, and takes over the slots without it; the other node then deletes it.
//! So the module cancels such an import in time.

use super::api::imports::Import;
use super::api::{api, guarded, log};
use super::timer::with_own_context;
use crate::slots::slot_of;
use std::cell::RefCell;
use std::ffi::{c_void, CString};
use std::ptr::null_mut;

#[derive(Default)]
struct Imports {
    under_way: Vec<Import>,
    refused: Vec<CString>,
}

thread_local! {
    static IMPORTS: RefCell<Imports> = RefCell::default();
}

pub fn has_begun(import: Import) {
    IMPORTS.with_borrow_mut(|imports| imports.under_way.push(import));
}

pub fn has_ended(import: &Import) {
    IMPORTS.with_borrow_mut(|imports| imports.under_way.retain(|it| it.task != import.task));
}

/// A queue of this name was refused. If it came with an import of its slot, the import is
/// cancelled, and the slot stays where it was.
pub fn refuse(key: &[u8]) {
    let slot = slot_of(key);
    let first = IMPORTS.with_borrow_mut(|imports| {
        let import = imports.under_way.iter().find(|it| it.has(slot))?;
        imports.refused.push(import.task.clone());
        Some(imports.refused.len() == 1)
    });
    if first == Some(true) {
        // Not now: the command that brought it runs on the import's own connection. The source asks
        // for the handover only after it has heard that all data have come, which is a turn of the
        // event loop later.
        // SAFETY: the callback takes no data.
        unsafe { api!(RedisModule_EventLoopAddOneShot, Some(cancel), null_mut()) };
    }
}

unsafe extern "C" fn cancel(_: *mut c_void) {
    guarded("the end of an import", (), || {
        for task in IMPORTS.with_borrow_mut(|imports| std::mem::take(&mut imports.refused)) {
            let name = task.to_string_lossy().into_owned();
            let outcome = if with_own_context(|ctx| ctx.cancel_import(&task)) {
                "is cancelled: this server cannot read one of its queues, see above. The slots stay where they are"
            } else {
                "could not be cancelled: one of its queues is lost here, see above. The other node may still have it"
            };
            log(c"warning", &format!("the import of slots {name} {outcome}"));
        }
    });
}
