//! What an allocator is asked for, and what it really allocates.

/// What a typical size-class allocator spends on `len` bytes: steps of an eighth of the next power
/// of two, at least 16 bytes (jemalloc's classes; glibc's differ by a few bytes).
pub fn allocated(len: usize) -> usize {
    match len {
        0 => 0,
        1..=8 => 8,
        9..=128 => len.next_multiple_of(16),
        _ => len.next_multiple_of(len.next_power_of_two() >> 3),
    }
}

/// Makes room for exactly so many more items. The first room of a vector, of which a new queue needs eight, takes a
/// fraction of what `reserve_exact` does.
#[inline]
pub fn reserve<T>(vec: &mut Vec<T>, more: usize) {
    match vec.capacity() {
        // There is nothing in the old one to be dropped.
        0 => std::mem::forget(std::mem::replace(vec, Vec::with_capacity(more))),
        _ => vec.reserve_exact(more),
    }
}
