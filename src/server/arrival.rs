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

/// Where effects come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A master, or a file of this server's own.
    Trusted,
    /// A client, by RESTORE (which MIGRATE uses): the data may be forged. What is accepted here is
    /// trusted by replicas and the AOF, byte for byte. So data are accepted or refused as a whole.
    Client,
}

/// Effects on one queue, which may come in several lots.
pub struct Arrival {
    origin: Origin,
    /// The last id and token drawn on the server that sent the effects.
    id: (u64, u64),
    token: u64,
    is_dropped: bool,
    touches: bool,
    /// The end of a snapshot has come.
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

    /// Carries out one lot. After an error, a queue that a client restores must be dropped.
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
        reclaim::pay_for(|| 1 + queue.free_effort().saturating_sub(before));
        Ok(())
    }

    /// At the end of a snapshot that came in several lots: an error if jobs would have stayed
    /// blocked for ever. They are unblocked now.
    pub fn end_lots(&self, queue: &mut Queue) -> Result<(), QueueError> {
        match self.is_whole && queue.free_stuck() {
            true => Err(QueueError::Malformed("jobs blocked for ever")),
            false => Ok(()),
        }
    }

    /// At the end of a file or of a client's payload. In a file, jobs that would stay blocked for
    /// ever are left to the timer: somebody has changed the file, and the rest of it is a user's
    /// data.
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

    /// Whether the effects count as a change for `WATCH`.
    pub fn touches(&self) -> bool {
        self.touches
    }

    /// Called when all of it has come: only now this server's own ids and tokens are raised. True
    /// if the queue was dropped.
    pub fn end(self, queue: &mut Queue) -> Result<bool, QueueError> {
        if self.origin == Origin::Client {
            self.check_reach(queue)?;
        }
        clock::with_mint(|mint| {
            mint.raise_id(self.id);
            mint.raise_token(queue.jobs().token_floor().max(self.token));
        });
        Ok(self.is_dropped)
    }

    /// Checks what can only be checked in a whole queue that a client restores. Replicas and later
    /// loads accept all numbers that count on from those accepted here: their limits, the queue's
    /// own, lie far out. Numbers that this server drew itself are always accepted, wherever its
    /// clock was then.
    fn check_reach(&self, queue: &Queue) -> Result<(), QueueError> {
        let own: Mint = clock::with_mint(|mint| *mint);
        let token = queue.jobs().token_floor().max(self.token);
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

/// The least time between two log lines about refusals.
const QUIET_MS: u64 = 1000;
/// The most bytes of a key's name in the log.
const NAME_BYTES: usize = 128;

#[derive(Clone, Copy)]
struct Logged {
    at_ms: u64,
    /// Refusals since then that were not logged.
    suppressed: u64,
}

thread_local! {
    static LOGGED: Cell<Logged> = const { Cell::new(Logged { at_ms: 0, suppressed: 0 }) };
}

/// Clients can cause refusals as often as they like, so at most one line per second is logged.
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
