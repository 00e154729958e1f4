//! Followers, which receive only effects: a replica, which lags, and the AOF, which is replayed.

use crate::compare::equal;
use crate::rng::Rng;
use dq::queue::clock::Mint;
use dq::queue::codec::decode;
use dq::queue::effect::Effect;
use dq::queue::{HashSeed, Queue};
use std::hash::{DefaultHasher, Hasher};

pub fn new_queue(seed: u64) -> Queue {
    Queue::new(&HashSeed::new([seed, !seed, seed.rotate_left(17), 7]))
}

/// A hash of everything that DEBUG DIGEST covers.
pub fn digest(queue: &Queue) -> u64 {
    let mut hasher = DefaultHasher::new();
    queue.digest(&mut |bytes| hasher.write(bytes));
    hasher.finish()
}

/// The queue's data as bytes, chunk by chunk.
pub fn snapshot(queue: &Queue) -> Vec<Vec<u8>> {
    let mut chunks = Vec::new();
    queue.snapshot(&mut |chunk| chunks.push(chunk.to_vec()));
    chunks
}

/// A follower that carries out effects, and raises the server's numbers by them.
pub struct Follower {
    pub queue: Queue,
    pub mint: Mint,
    seed: u64,
    /// Effects that have not arrived yet.
    behind: Vec<Vec<u8>>,
}

impl Follower {
    pub fn new(seed: u64) -> Self {
        Follower {
            queue: new_queue(seed),
            mint: Mint::new(),
            seed,
            behind: Vec::new(),
        }
    }

    pub fn of_snapshot(seed: u64, mint: Mint, chunks: &[Vec<u8>]) -> Result<Self, String> {
        let follower = Follower::of_file(seed, mint, chunks)?;
        follower.queue.check_invariants()?;
        Ok(follower)
    }

    /// A follower from a file, valid or not.
    pub fn of_file(seed: u64, mint: Mint, chunks: &[Vec<u8>]) -> Result<Self, String> {
        let mut follower = Follower::new(seed);
        follower.mint = mint;
        follower.queue.begin_restore();
        chunks
            .iter()
            .try_for_each(|chunk| follower.carry_out(chunk))?;
        let ended = follower.queue.end_restore();
        ended.map_err(|error| error.to_string())?;
        Ok(follower)
    }

    pub fn tell(&mut self, effects: &[u8]) {
        if !effects.is_empty() {
            self.behind.push(effects.to_vec());
        }
    }

    pub fn is_behind(&self) -> bool {
        !self.behind.is_empty()
    }

    /// Carries out some of the effects that it has received, or all.
    pub fn follow(&mut self, rng: &mut Rng) -> Result<(), String> {
        let len = self.behind.len() as u64;
        let some = if rng.one_in(3) {
            rng.below(len + 1)
        } else {
            len
        };
        for effects in std::mem::take(&mut self.behind).iter().enumerate() {
            match effects {
                (at, effects) if (at as u64) < some => self.carry_out(effects)?,
                (_, effects) => self.behind.push(effects.clone()),
            }
        }
        Ok(())
    }

    pub fn catch_up(&mut self) -> Result<(), String> {
        let behind = std::mem::take(&mut self.behind);
        behind
            .iter()
            .try_for_each(|effects| self.carry_out(effects))
    }

    pub fn carry_out(&mut self, effects: &[u8]) -> Result<(), String> {
        for effect in decode(effects) {
            let effect = effect.map_err(|error| error.to_string())?;
            match &effect {
                Effect::Dropped => {
                    // The faulty data goes with the queue, but the fault still counts.
                    let sound = self.queue.end_restore();
                    sound.map_err(|error| error.to_string())?;
                    self.queue = new_queue(self.seed);
                }
                Effect::Minted { ms, seq, .. } => self.mint.raise_id((*ms, *seq)),
                _ => {}
            }
            let applied = self.queue.apply(&effect);
            applied.map_err(|error| format!("{effect:?} is refused: {error}"))?;
        }
        self.mint.raise_token(self.queue.jobs().token_floor());
        // The freeing of purged jobs lags behind on some followers, up to the limit.
        self.queue.work_off(effects.len() % 3);
        Ok(())
    }
}

/// All effects since the queue was empty, or since a snapshot.
#[derive(Default)]
pub struct Log {
    pub entries: Vec<Vec<u8>>,
}

impl Log {
    pub fn write(&mut self, effects: &[u8]) {
        if !effects.is_empty() {
            self.entries.push(effects.to_vec());
        }
    }

    pub fn rewrite(&mut self, queue: &Queue) {
        self.entries = snapshot(queue);
    }

    pub fn replay(&self, seed: u64) -> Result<Queue, String> {
        let follower = Follower::of_snapshot(seed, Mint::new(), &self.entries)?;
        Ok(follower.queue)
    }
}

/// Fails, showing both, if they do not hold the same data.
pub fn same(what: &str, master: &Queue, other: &Queue) -> Result<(), String> {
    if digest(master) == digest(other) {
        // Ends that are still to be carried out hold results, for a while.
        let bytes = |queue: &Queue| (queue.bytes(), queue.parts().done().bytes());
        return match master.parts().has_flow_work() {
            true => Ok(()),
            false => equal(what, bytes(other), bytes(master)),
        };
    }
    Err(format!(
        "{what} differs from its master:\n  master: {}\n  {what}: {}",
        contents(master),
        contents(other)
    ))
}

fn contents(queue: &Queue) -> String {
    let chunks = snapshot(queue);
    let effects = chunks.iter().flat_map(|chunk| decode(chunk));
    let shown: Vec<String> = effects
        .take(40)
        .map(|effect| format!("{effect:?}"))
        .collect();
    shown.join("\n          ")
}
