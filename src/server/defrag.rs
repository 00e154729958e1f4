//! Active defragmentation: moves a queue's allocations where the server finds their pages too empty.

use super::api::{api, guarded};
use super::queue_value::Value;
use super::renamed;
use crate::storage::relocate::Mover;
use redis_module::raw;
use std::ffi::{c_int, c_ulong, c_void};
use std::mem::ManuallyDrop;

/// The server's decisions: what to move, and when time is up.
struct Host {
    ctx: *mut raw::RedisModuleDefragCtx,
}

impl Host {
    /// The allocation's new address, if it was moved: then the old one is freed.
    ///
    /// # Safety
    /// `old` is an allocation of the server's allocator, which the module uses, too. It must not be
    /// used any more if this returns another address.
    unsafe fn move_allocation<T>(&self, old: *mut T) -> Option<*mut T> {
        // SAFETY: the caller's promise; the context is that of the callback that runs.
        let new = unsafe { api!(RedisModule_DefragAlloc, self.ctx, old.cast()) };
        (!new.is_null()).then_some(new.cast())
    }
}

impl Mover for Host {
    fn moved<T>(&mut self, array: Vec<T>) -> Vec<T> {
        if array.capacity() == 0 || size_of::<T>() == 0 {
            return array;
        }
        let mut array = ManuallyDrop::new(array);
        let (start, len, capacity) = (array.as_mut_ptr(), array.len(), array.capacity());
        // SAFETY: the Vec has allocated, and is not used from here on. The server copies all bytes
        // to an allocation of the same size and, as its sizes imply alignments, of the same
        // alignment. So the parts form a Vec again, moved bit by bit.
        unsafe {
            let start = self.move_allocation(start).unwrap_or(start);
            Vec::from_raw_parts(start, len, capacity)
        }
    }

    fn is_late(&mut self) -> bool {
        // SAFETY: the context of the callback that runs.
        unsafe { api!(RedisModule_DefragShouldStop, self.ctx) != 0 }
    }
}

/// The type's callback: 0 once the value is done. A queue with more jobs than
/// `active-defrag-max-scan-fields` is moved in steps, with a cursor; a smaller one at once.
pub unsafe extern "C" fn defrag(
    ctx: *mut raw::RedisModuleDefragCtx,
    _key: *mut raw::RedisModuleString,
    value: *mut *mut c_void,
) -> c_int {
    guarded("defrag", 0, || {
        let mut host = Host { ctx };
        let mut cursor: c_ulong = 0;
        // SAFETY: `value` points to the server's only pointer to a value of our type, whose
        // allocation came from a Box; no other code reads it while this runs.
        unsafe {
            // Leaves the cursor unchanged if there is none.
            api!(RedisModule_DefragCursorGet, ctx, &mut cursor);
            if cursor == 0 {
                if let Some(moved) = host.move_allocation(*value) {
                    renamed::note_moved(*value, moved);
                    *value = moved;
                }
            }
            let value = &mut *(*value).cast::<Value>();
            cursor = value.relocate(cursor, &mut host) as c_ulong;
            if cursor == 0 {
                return 0;
            }
            api!(RedisModule_DefragCursorSet, ctx, cursor);
        }
        1
    })
}
