//! The least of many numbers, any of which may change at any time.
//!
//! ```text
//!   levels[1]   [ .................. ]        each node is the least of 16 below it, so the numbers take
//!   levels[0]   [ ... ][ ... ] ...            little more than themselves. A change goes up only as far as
//!   numbers     [ 16 ][ 16 ] ... | ...        it matters; growing never copies more than one segment.
//! ```

const WIDTH: usize = 16;
/// Numbers in a segment.
const SEGMENT: usize = 1024;

/// The least of many numbers. Places are numbered from 0.
#[derive(Default)]
pub struct Least {
    /// Segments of numbers; all but the last are full.
    numbers: Vec<Vec<u64>>,
    /// Levels of nodes; the last level has at most [`WIDTH`] nodes.
    levels: Vec<Vec<u64>>,
}

impl Least {
    /// The number at this place; u64::MAX if none was set.
    pub fn at(&self, place: u32) -> u64 {
        self.number(place as usize).unwrap_or(u64::MAX)
    }

    fn number(&self, place: usize) -> Option<u64> {
        self.numbers
            .get(place / SEGMENT)?
            .get(place % SEGMENT)
            .copied()
    }

    /// Sets the number at this place.
    pub fn set(&mut self, place: u32, number: u64) {
        let place = place as usize;
        if self.number(place).is_none() {
            self.grow(place + 1);
        }
        let there = &mut self.numbers[place / SEGMENT][place % SEGMENT];
        if *there == number {
            return;
        }
        *there = number;
        let mut node = place;
        for level in 0..self.levels.len() {
            node /= WIDTH;
            let least = least(self.below(level, node));
            if self.levels[level][node] == least {
                return;
            }
            self.levels[level][node] = least;
        }
    }

    /// The least of all numbers; none if none was set.
    pub fn get(&self) -> Option<u64> {
        let top = least(self.levels.last()?);
        (top != u64::MAX).then_some(top)
    }

    /// The least number and its place, the first place if there are several.
    pub fn first(&self) -> Option<(u64, u32)> {
        let number = self.get()?;
        let at = |nodes: &[u64]| nodes.iter().position(|&node| node == number);
        let mut node = at(self.levels.last()?)?;
        for level in (0..self.levels.len()).rev() {
            node = node * WIDTH + at(self.below(level, node))?;
        }
        Some((number, node as u32))
    }

    /// The numbers or nodes of which a node is the least.
    fn below(&self, level: usize, node: usize) -> &[u64] {
        let first = node * WIDTH;
        let (all, first) = match level.checked_sub(1) {
            Some(below) => (&self.levels[below], first),
            None => (&self.numbers[first / SEGMENT], first % SEGMENT),
        };
        &all[first..all.len().min(first + WIDTH)]
    }

    #[cold]
    fn grow(&mut self, len: usize) {
        while self.numbers.len() * SEGMENT < len {
            if let Some(last) = self.numbers.last_mut() {
                resize(last, SEGMENT);
            }
            self.numbers.push(Vec::new());
        }
        let others = (self.numbers.len() - 1) * SEGMENT;
        let mut room = (len - others).next_power_of_two().max(WIDTH);
        if let Some(last) = self.numbers.last_mut() {
            room = if others > 0 {
                SEGMENT
            } else {
                room.max(last.len())
            };
            resize(last, room);
        }
        let mut nodes = (others + room).div_ceil(WIDTH);
        for level in 0.. {
            if level == self.levels.len() {
                let all = 0..nodes;
                let new = all.map(|node| match level {
                    0 => u64::MAX,
                    _ => least(self.below(level, node)),
                });
                let new = new.collect();
                self.levels.push(new);
            }
            self.levels[level].resize(nodes, u64::MAX);
            if nodes <= WIDTH {
                return;
            }
            nodes = nodes.div_ceil(WIDTH);
        }
    }
}

fn resize(segment: &mut Vec<u64>, len: usize) {
    segment.reserve_exact(len.saturating_sub(segment.len()));
    segment.resize(len.max(segment.len()), u64::MAX);
}

fn least(nodes: &[u64]) -> u64 {
    nodes.iter().fold(u64::MAX, |least, &node| least.min(node))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_look_at_all() {
        let (mut least, mut all) = (Least::default(), Vec::new());
        assert_eq!((least.get(), least.first()), (None, None));
        let mut x = 88172645463325252u64;
        for step in 0..60_000usize {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            // Up to 20,000 places: four levels; few of them, then all, then none.
            let place = x as usize % (1 + step.min(20_000));
            let number = match (step / 20_000, x >> 60) {
                (2, _) | (_, 0) => u64::MAX,
                _ => x >> 20 & 0xffff_ffff,
            };
            all.resize(all.len().max(place + 1), u64::MAX);
            all[place] = number;
            least.set(place as u32, number);
            if step % 64 == 0 {
                let expected = (0..)
                    .zip(&all)
                    .map(|(place, &number)| (number, place))
                    .min();
                let expected = expected.filter(|&(number, _)| number != u64::MAX);
                assert_eq!(least.first(), expected, "step {step}");
            }
        }
        (0..all.len()).for_each(|place| least.set(place as u32, u64::MAX));
        assert_eq!(least.first(), None);
    }
}
