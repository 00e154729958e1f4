//! The run's own randomness: everything follows from the seed, or from a fuzzer's bytes.

pub enum Rng {
    Seed(u64),
    /// The bytes, the last one first.
    Bytes(Vec<u8>),
}

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng::Seed(seed)
    }

    /// Each choice uses as few bytes as it can, so that a changed byte changes one choice. Once all
    /// are used up, every choice is the first.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Rng::Bytes(bytes.iter().rev().copied().collect())
    }

    /// Whether all bytes are used up.
    pub fn is_spent(&self) -> bool {
        matches!(self, Rng::Bytes(left) if left.is_empty())
    }

    pub fn next(&mut self) -> u64 {
        match self {
            Rng::Seed(state) => splitmix64(state),
            Rng::Bytes(left) => take(left, 8),
        }
    }

    /// Less than `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        match self {
            Rng::Seed(state) => ((u128::from(splitmix64(state)) * u128::from(bound)) >> 64) as u64,
            Rng::Bytes(left) => {
                take(left, (u64::BITS - (bound - 1).leading_zeros()).div_ceil(8)) % bound
            }
        }
    }

    pub fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }

    pub fn maybe<T>(&mut self, n: u64, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.one_in(n).then(|| make(self))
    }
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn take(left: &mut Vec<u8>, count: u32) -> u64 {
    (0..count).fold(0, |number, _| {
        number << 8 | u64::from(left.pop().unwrap_or(0))
    })
}
