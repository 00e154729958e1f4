//! The module's allocator: the server's, with the alignment that it lacks on some systems.

use redis_module::alloc::RedisAlloc;
use redis_module::raw;
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// If the C library does not report how large an allocation is (musl does not), the server stores
/// the size before it. Then all allocations are off by 8 bytes.
struct ServerAlloc;

#[global_allocator]
static ALLOCATOR: ServerAlloc = ServerAlloc;

/// The alignment of malloc. Hash tables need it, and so does C code such as the unwinder.
const OF_MALLOC: usize = 16;
const SIZE_OF_A_SIZE: usize = 8;

const UNKNOWN: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;
static HAS_SIZES_BEFORE: AtomicU8 = AtomicU8::new(UNKNOWN);

#[cold]
fn probe() -> u8 {
    let layout = Layout::new::<[u8; 64]>();
    // SAFETY: the layout is not empty, and the allocation is freed with the same layout.
    let off = unsafe {
        let piece = RedisAlloc.alloc(layout);
        RedisAlloc.dealloc(piece, layout);
        piece as usize % OF_MALLOC
    };
    let found = if off == 0 { NO } else { YES };
    HAS_SIZES_BEFORE.store(found, Relaxed);
    found
}

/// The alignment that has to be made here, if the server may not provide it. The answer for a
/// layout never changes.
#[inline]
fn to_align(layout: Layout) -> Option<usize> {
    let known = HAS_SIZES_BEFORE.load(Relaxed);
    if known == NO || (known == UNKNOWN && probe() == NO) {
        return (layout.align() > OF_MALLOC).then_some(layout.align());
    }
    Some(layout.align().max(OF_MALLOC))
}

/// As [`RedisAlloc`], which stays out of line: here the size is known, and a function less is called.
///
/// # Safety
/// As for [`GlobalAlloc::alloc`].
#[inline(always)]
unsafe fn plain(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        match raw::RedisModule_Alloc {
            Some(alloc) => alloc(layout.pad_to_align().size()).cast(),
            None => RedisAlloc.alloc(layout),
        }
    }
}

// SAFETY: allocations have the requested size and alignment, and go back to the server as the
// server returned them.
unsafe impl GlobalAlloc for ServerAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(align) = to_align(layout) else {
            // SAFETY: the caller's promise.
            return unsafe { plain(layout) };
        };
        let Ok(roomy) = Layout::from_size_align(layout.size() + align, SIZE_OF_A_SIZE) else {
            return null_mut();
        };
        // SAFETY: the allocation is aligned to 8, so it is moved by 8 to `align` bytes. There is
        // room for that, and for the distance, which is written just before the result.
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
        // SAFETY: the caller's promise; `alloc` has written how far the allocation was moved.
        unsafe {
            if to_align(layout).is_none() {
                return match raw::RedisModule_Free {
                    Some(free) => free(pointer.cast()),
                    None => RedisAlloc.dealloc(pointer, layout),
                };
            }
            let moved = pointer.cast::<usize>().sub(1).read();
            RedisAlloc.dealloc(pointer.sub(moved), layout);
        }
    }
}
