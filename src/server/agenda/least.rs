//! The least of many numbers, each of which may change at any time: of a database's queues, the earliest due.
//!
//! ```text
//!   tree:   1                  each node is the lesser of its two children; the leaves, from `leaves` on,
//!         2   3                are the numbers. A change goes up only as far as it matters.
//!        4 5 6 7
//! ```

#[derive(Default)]
pub struct Least {
    /// Node 0 is none. Empty while there are no numbers.
    tree: Vec<u64>,
}

impl Least {
    fn leaves(&self) -> usize {
        self.tree.len() / 2
    }

    /// The number at that place, which is u64::MAX where none was set.
    pub fn set(&mut self, place: u32, number: u64) {
        let place = place as usize;
        if place >= self.leaves() {
            self.grow((place + 1).next_power_of_two());
        }
        let mut node = self.leaves() + place;
        if self.tree[node] == number {
            return;
        }
        self.tree[node] = number;
        while node > 1 {
            let least = self.tree[node].min(self.tree[node ^ 1]);
            node /= 2;
            if self.tree[node] == least {
                return;
            }
            self.tree[node] = least;
        }
    }

    pub fn get(&self) -> Option<u64> {
        self.tree.get(1).copied().filter(|&least| least != u64::MAX)
    }

    fn grow(&mut self, leaves: usize) {
        let mut tree = vec![u64::MAX; 2 * leaves];
        let old = self.leaves();
        tree[leaves..leaves + old].copy_from_slice(&self.tree[old..]);
        for node in (1..leaves).rev() {
            tree[node] = tree[2 * node].min(tree[2 * node + 1]);
        }
        self.tree = tree;
    }
}
