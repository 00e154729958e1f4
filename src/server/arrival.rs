//! Applies effects that come from a master, a file, or a client's RESTORE to a queue.

use super::api::log;
use super::{clock, reclaim};
use crate::queue::clock::Mint;
use crate::queue::codec::decode;
use crate::queue::effect::Effect;
use crate::queue::error::QueueError;
use crate::queue::job::{INSTANT_MAX, TOKEN_MS_SHIFT};
use crate::queue::Queue;
use std::cell::Cell;

/// Who says that something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A master, or a file of this server's own.
    Trusted,
    /// A client, by RESTORE (so by MIGRATE): it may be forged. What is accepted is trusted by replicas and
    /// by the AOF, word for word: so all of it is refused, or all of it is meant.
    Client,
}

/// Effects on one queue, of which several lots may come.
pub struct Arrival {
    origin: Origin,
    /// What they say of the server that they come from: the last id and token drawn there.
    id: (u64, u64),
    token: u64,
    is_dropped: bool,
    touches: bool,
    /// A snapshot ends here.
    is_whole: bool,
}

impl Arrival {
    pub fn from(origin: Origin) -> Self {
        Arrival {
            origin,
            id: (0, 0),
            token: 0,
            is_dropped: false,
            touches: false,
            is_whole: false,
        }
    }

    /// Carries out one lot. After an error the queue of a client is of no use.
    pub fn carry_out(&mut self, queue: &mut Queue, bytes: &[u8]) -> Result<(), QueueError> {
        let before = queue.free_effort();
        for effect in decode(bytes) {
            let effect = effect?;
            if self.origin == Origin::Client && !effect.stands_in_snapshots() {
                return Err(QueueError::Malformed("an effect that no snapshot has"));
            }
            self.touches |= effect.touches();
            match effect {
                Effect::Dropped => self.is_dropped = true,
                Effect::Minted { ms, seq, token } => {
                    self.id = self.id.max((ms, seq));
                    self.token = self.token.max(token);
                    self.is_whole = true;
                }
                _ => queue.apply(&effect)?,
            }
        }
        queue.take_garbage().into_iter().for_each(reclaim::add);
        reclaim::pay_for(1 + queue.free_effort().saturating_sub(before));
        Ok(())
    }

    /// Where a snapshot has come in several lots and ends: an error if jobs would have stayed blocked for ever. They are
    /// free now.
    pub fn end_lots(&self, queue: &mut Queue) -> Result<(), QueueError> {
        match self.is_whole && queue.free_stuck() {
            true => Err(QueueError::Malformed("jobs blocked for ever")),
            false => Ok(()),
        }
    }

    /// A file, or a client's payload, ends. Jobs that would stay blocked for ever are left to the timer in a file, which
    /// somebody has changed: all else in it is a user's.
    pub fn end_file(&self, queue: &mut Queue, key: &[u8]) -> Result<(), QueueError> {
        if self.origin == Origin::Client {
            return queue.end_restore();
        }
        if queue.end_load()? {
            let name = key.escape_ascii();
            log(
                c"warning",
                &format!("'{name}' has jobs blocked for ever, which will be set free"),
            );
        }
        Ok(())
    }

    /// Whether those who watch the key see a change in it.
    pub fn touches(&self) -> bool {
        self.touches
    }

    /// All of it has come: only now this server's own numbers are raised. True where the queue is dropped.
    pub fn end(self, queue: &mut Queue) -> Result<bool, QueueError> {
        if self.origin == Origin::Client {
            self.check_reach(queue)?;
        }
        clock::with_mint(|mint| {
            mint.raise_id(self.id);
            mint.raise_token(queue.token_floor().max(self.token));
        });
        Ok(self.is_dropped)
    }

    /// What can only be checked in a whole queue that a client restores. Numbers that count on from what is
    /// accepted are refused neither by a replica nor by a later load, whose limits, the queue's own, lie
    /// far out; and those that this server drew itself come back to it, wherever its clock was then.
    fn check_reach(&self, queue: &Queue) -> Result<(), QueueError> {
        let own: Mint = clock::with_mint(|mint| *mint);
        let token = queue.token_floor().max(self.token);
        let (ms, seq) = self.id;
        let is_near = (token >> TOKEN_MS_SHIFT <= latest_ms() || token <= own.token())
            && (ms <= latest_ms() || self.id <= own.id())
            && seq <= u64::MAX / 4;
        if !is_near || !queue.settings().is_expressible() {
            return Err(QueueError::Malformed(
                "a number that no server of this time has",
            ));
        }
        if !queue.has_distinct_numbers() {
            return Err(QueueError::Malformed("a number that two jobs share"));
        }
        Ok(())
    }
}

/// The latest unix-ms from which another server may have drawn ids and tokens: its clock may be 34
/// years ahead, and ours may stand in 1970.
fn latest_ms() -> u64 {
    const AHEAD_MS: u64 = 1 << 40;
    const YEAR_2039: u64 = 1 << 41;
    let ahead = clock::now().ms() + AHEAD_MS;
    ahead.clamp(YEAR_2039, INSTANT_MAX)
}

/// Between two lines of the log about what was refused.
const QUIET_MS: u64 = 1000;
/// Of a key's name, in the log.
const NAME_BYTES: usize = 128;

#[derive(Clone, Copy)]
struct Logged {
    at_ms: u64,
    /// Refusals since, of which the log has nothing.
    suppressed: u64,
}

thread_local! {
    static LOGGED: Cell<Logged> = const { Cell::new(Logged { at_ms: 0, suppressed: 0 }) };
}

/// Clients can be refused as often as they like: one line in a second says so.
pub fn log_refused(what: &str, key: &[u8], error: QueueError) {
    let (now_ms, logged) = (clock::real().ms(), LOGGED.get());
    if now_ms.abs_diff(logged.at_ms) < QUIET_MS {
        LOGGED.set(Logged {
            suppressed: logged.suppressed + 1,
            ..logged
        });
        return;
    }
    LOGGED.set(Logged {
        at_ms: now_ms,
        suppressed: 0,
    });
    let shown = &key[..key.len().min(NAME_BYTES)];
    let dots = if shown.len() < key.len() { "..." } else { "" };
    let more = match logged.suppressed {
        0 => String::new(),
        others => format!(" ({others} more since the last such line)"),
    };
    let name = shown.escape_ascii();
    log(
        c"warning",
        &format!("{what} '{name}{dots}' refused: {error}{more}"),
    );
}
