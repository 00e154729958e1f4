//! Active defragmentation as a server does it: now and then it moves part of a queue.

use dq::queue::Queue;
use dq::storage::relocate::Mover;

/// Continues where the last step ended, whatever has happened to the queue since.
#[derive(Default)]
pub struct Defrag {
    cursor: u64,
}

impl Defrag {
    pub fn step(&mut self, queue: &mut Queue, patience: u64) {
        self.cursor = queue.relocate(self.cursor, &mut Elsewhere { patience });
    }
}

struct Elsewhere {
    patience: u64,
}

impl Mover for Elsewhere {
    fn moved<T>(&mut self, array: Vec<T>) -> Vec<T> {
        let mut elsewhere = Vec::with_capacity(array.capacity());
        elsewhere.extend(array);
        elsewhere
    }

    fn is_late(&mut self) -> bool {
        self.patience = self.patience.saturating_sub(1);
        self.patience == 0
    }
}
