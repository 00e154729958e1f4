//! What an allocator really allocates for a request.

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
