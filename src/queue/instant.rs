//! The last instant that can be represented, how instants are spread, and those in tokens.

/// The last instant, unix-ms: the year 2109.
pub const INSTANT_MAX: u64 = (1 << 42) - 1;
/// Later than any instant.
pub const NEVER: u64 = u64::MAX;

/// A token contains the clock's milliseconds, shifted by this many bits.
pub const TOKEN_MS_SHIFT: u32 = 20;
/// The largest token. Clocks up to [`INSTANT_MAX`] draw tokens up to half of it, which leaves room to count on.
pub const TOKEN_MAX: u64 = 1 << 63;

/// When the delivery with this token began.
pub(super) fn started_at(token: u64) -> u64 {
    (token >> TOKEN_MS_SHIFT).min(INSTANT_MAX)
}

/// 0 to `most`: a number that looks random, but is the same for an id and a number wherever it is computed.
pub fn spread(id: &[u8], number: u64, most: u64) -> u64 {
    // FNV-1a, and the last step of splitmix64, so that the low bits depend on all.
    let bytes = id.iter().copied().chain(number.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31) % (most + 1)
}
