//! Slots that come here at once, by Redis 8.4 and newer. A value that the module refuses is left out there with a line
//! in the log, and the slots are taken over without it; the other node deletes what it had. So the module ends such an
//! import, before it is over.

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

/// A queue of that name was refused. If it came with its slot, that stays where it was.
pub fn refuse(key: &[u8]) {
    let slot = slot_of(key);
    let first = IMPORTS.with_borrow_mut(|imports| {
        let import = imports.under_way.iter().find(|it| it.has(slot))?;
        imports.refused.push(import.task.clone());
        Some(imports.refused.len() == 1)
    });
    if first == Some(true) {
        // Not now: the command that brought it is on the import's own connection. The source asks to hand over only
        // after it has heard that all has come, which is a turn of the event loop later.
        // SAFETY: the callback takes no data.
        unsafe { api!(RedisModule_EventLoopAddOneShot, Some(cancel), null_mut()) };
    }
}

unsafe extern "C" fn cancel(_: *mut c_void) {
    guarded("the end of an import", (), || {
        for task in IMPORTS.with_borrow_mut(|imports| std::mem::take(&mut imports.refused)) {
            let name = task.to_string_lossy().into_owned();
            let told = if with_own_context(|ctx| ctx.cancel_import(&task)) {
                "is cancelled: a queue of it cannot be read here, see above. Its slots stay where they are"
            } else {
                "could not be cancelled, and a queue of it is lost here, see above. The other node may have it still"
            };
            log(c"warning", &format!("the import of slots {name} {told}"));
        }
    });
}
