//! Moving what a queue has allocated, a few allocations at a time: active defragmentation, by which the
//! server empties pages that are nearly empty.
//!
//! ```text
//!   cursor = number << 6 | part       part: the jobs' (see [`Jobs::relocate`]), those of [`Parts`], and the histogram
//! ```
//!
//! A cursor only says how far this has come: whatever happens to the queue meanwhile, every number is safe. Something
//! may be moved twice, or be missed until the next round because it came behind the cursor. The lines of large groups,
//! which lie in nodes as the schedule's do, are left alone. So are purged jobs in detached lists, which are about to be
//! freed.

use super::jobs::Jobs;
use super::parts::Parts;
use super::Queue;
use crate::storage::relocate::Mover;

const JOBS: u64 = Jobs::PARTS;
const AFTER_JOBS: u64 = JOBS + Parts::RELOCATED;
const PARTS: u64 = AFTER_JOBS + 1;
/// The bits of a cursor that hold its part.
const PART_BITS: u32 = 6;

impl Queue {
    /// Continues from a cursor that a call before returned, or from 0, until the mover is late. Returns 0 at the end.
    pub fn relocate(&mut self, cursor: u64, mover: &mut impl Mover) -> u64 {
        let parts = (1 << PART_BITS) - 1;
        let (mut part, mut from) = (cursor & parts, (cursor >> PART_BITS) as u32);
        while part < PARTS {
            let next = match part {
                ..JOBS => self.jobs.relocate(part, from, mover),
                JOBS..AFTER_JOBS => self.parts.relocate(part - JOBS, from, mover),
                _ => {
                    self.totals.lateness.relocate(mover);
                    None
                }
            };
            match next {
                Some(next) => from = next,
                None => (part, from) = (part + 1, 0),
            }
            if part < PARTS && mover.is_late() {
                return u64::from(from) << PART_BITS | part;
            }
        }
        0
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::queue::add::Add;
    use crate::queue::clock::{Mint, Now, When};
    use crate::queue::deliver::Pop;
    use crate::queue::effects::Effects;
    use crate::queue::settings::SettingsChange;
    use crate::queue::HashSeed;
    use crate::storage::relocate::tests::Everything;
    use crate::storage::relocate::STEP;

    /// Many jobs of all kinds, and ids that are remembered.
    pub fn queue() -> Queue {
        let mut queue = Queue::new(&HashSeed::new([1, 2, 3, 4]));
        let (now, mut mint, mut out) = (Now::from_ms(1_000_000), Mint::new(), Effects::default());
        let change = SettingsChange {
            dedupe_ms: Some(60_000),
            ..SettingsChange::default()
        };
        queue.configure_with(&change, now, &mut out).unwrap();
        for number in 0..30_000u64 {
            let id = number.to_string();
            let add = Add {
                when: When::Delay(number % 3 * (number % 5000)),
                priority: (number % 4) as i32 / 3,
                ttl_ms: number.is_multiple_of(7).then_some(90_000),
                ..Add::new(Some(id.as_bytes()), b"some payload")
            };
            queue.add(&add, now, &mut mint, &mut out).unwrap();
            if number % 5 == 0 {
                let pop = Pop {
                    count: 1,
                    noack: number % 2 == 0,
                    ..Pop::default()
                };
                queue.pop(&pop, now, &mut mint, &mut out, |_| ());
            }
        }
        queue
    }

    pub fn digest(queue: &Queue) -> Vec<u8> {
        let mut all = Vec::new();
        queue.digest(&mut |bytes| all.extend(bytes));
        all
    }

    #[test]
    fn everything_is_moved_once_and_nothing_else_changes() {
        let mut queue = queue();
        let (before, bytes) = (digest(&queue), queue.memory_bytes());
        let mut whole = Everything::new(usize::MAX);
        assert_eq!(queue.relocate(0, &mut whole), 0);
        queue.check_invariants().unwrap();
        assert!(digest(&queue) == before);
        assert_eq!(queue.memory_bytes(), bytes);
        // Rare parts lie in large arrays, which no allocator moves; nothing else may be left out.
        assert!(
            whole.bytes * 10 > bytes * 7,
            "{} of {bytes} bytes",
            whole.bytes
        );
        // In small steps, the same.
        let (mut cursor, mut rounds, mut arrays) = (0, 0, 0);
        loop {
            let mut some = Everything::new(10);
            cursor = queue.relocate(cursor, &mut some);
            assert!(some.arrays <= 10 + 2 * STEP as usize + 1);
            (rounds, arrays) = (rounds + 1, arrays + some.arrays);
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(arrays, whole.arrays);
        assert!(rounds > 100);
        queue.check_invariants().unwrap();
        assert!(digest(&queue) == before);
    }

    #[test]
    fn every_number_is_safe_as_a_cursor() {
        let mut queue = queue();
        let before = digest(&queue);
        for part in 0..1 << PART_BITS {
            for from in [0, 1, 31, 511, 512, 1023, 1025, 1 << 20, u64::from(u32::MAX)] {
                queue.relocate(from << PART_BITS | part, &mut Everything::new(100));
            }
        }
        queue.relocate(u64::MAX, &mut Everything::new(1));
        queue.check_invariants().unwrap();
        assert!(digest(&queue) == before);
    }
}
