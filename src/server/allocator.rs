//! The module's allocator: the server's, which does not align enough everywhere.

use redis_module::alloc::RedisAlloc;
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Where the C library does not tell how large a piece is, as musl does not, the server puts the size before it: all
/// pieces are 8 bytes off then.
pub struct ServerAlloc;

/// As malloc aligns. Hash tables need it, and so does C code such as the unwinder.
const OF_MALLOC: usize = 16;
const SIZE_OF_A_SIZE: usize = 8;

const UNKNOWN: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;
static HAS_SIZES_BEFORE: AtomicU8 = AtomicU8::new(UNKNOWN);

#[cold]
fn look() -> u8 {
    let layout = Layout::new::<[u8; 64]>();
    // SAFETY: the layout is not empty, and the piece is given back with it.
    let off = unsafe {
        let piece = RedisAlloc.alloc(layout);
        RedisAlloc.dealloc(piece, layout);
        piece as usize % OF_MALLOC
    };
    let found = if off == 0 { NO } else { YES };
    HAS_SIZES_BEFORE.store(found, Relaxed);
    found
}

/// How far a piece has to be aligned here, if the server may not do it. The answer for a layout never changes.
#[inline]
fn to_align(layout: Layout) -> Option<usize> {
    let known = HAS_SIZES_BEFORE.load(Relaxed);
    if known == NO || (known == UNKNOWN && look() == NO) {
        return (layout.align() > OF_MALLOC).then_some(layout.align());
    }
    Some(layout.align().max(OF_MALLOC))
}

// SAFETY: what is handed out is of the size asked for, aligned, and goes back to the server as what the server gave.
unsafe impl GlobalAlloc for ServerAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(align) = to_align(layout) else {
            // SAFETY: as the caller has promised.
            return unsafe { RedisAlloc.alloc(layout) };
        };
        let Ok(roomy) = Layout::from_size_align(layout.size() + align, SIZE_OF_A_SIZE) else {
            return null_mut();
        };
        // SAFETY: the piece is aligned to 8, so it is moved by 8 to `align` bytes: there is room for that, and for how
        // far it was moved, which is written before it.
        unsafe {
            let piece = RedisAlloc.alloc(roomy);
            if piece.is_null() {
                return piece;
            }
            let moved = align - piece as usize % align;
            let aligned = piece.add(moved);
            aligned.cast::<usize>().sub(1).write(moved);
            aligned
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller has promised; `alloc` has written how far the piece was moved.
        unsafe {
            if to_align(layout).is_none() {
                return RedisAlloc.dealloc(pointer, layout);
            }
            let moved = pointer.cast::<usize>().sub(1).read();
            RedisAlloc.dealloc(pointer.sub(moved), layout);
        }
    }
}
