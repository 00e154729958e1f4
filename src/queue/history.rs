//! The last attempts of a job that failed: with HISTORY of DQ.CFGSET, a note of the job.
//!
//! ```text
//!   token   attempts   ended   how   [reason]      one behind the other, the oldest first
//! ```
//!
//! The token names the delivery, and tells when it began. A NACK after the lease's end is of the delivery that timed out,
//! and takes the place of that.

use super::bytes::{append, take};
use super::error::QueueError;
use super::instant::{started_at, INSTANT_MAX, TOKEN_MAX};
use serde::{Deserialize, Serialize};

/// Attempts that are kept of a job, at most.
pub const HISTORY_MAX: u64 = 100;
/// Bytes of a REASON that are kept with an attempt.
pub const PAST_REASON_MAX: usize = 256;

/// How an attempt failed.
#[allow(missing_docs, reason = "called as DQ.GET calls them")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failing {
    Nacked,
    Fatal,
    Timeout,
}

impl Failing {
    /// As on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Failing::Nacked => "nacked",
            Failing::Fatal => "fatal",
            Failing::Timeout => "timeout",
        }
    }
}

/// An attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt<'a> {
    /// Of its delivery.
    pub token: u64,
    /// How many deliveries counted, with this one.
    pub attempts: u32,
    /// When it was given back, or its lease ended.
    pub ended: u64,
    /// How it failed.
    pub how: Failing,
    /// At most [`PAST_REASON_MAX`] bytes.
    #[serde(with = "serde_bytes", borrow)]
    pub reason: Option<&'a [u8]>,
}

impl Attempt<'_> {
    /// When the delivery began.
    pub fn started(&self) -> u64 {
        started_at(self.token)
    }

    /// Checks what may be forged.
    pub fn check(&self) -> Result<(), QueueError> {
        let reason = self.reason.unwrap_or_default();
        let fits = (1..=TOKEN_MAX).contains(&self.token)
            && self.ended <= INSTANT_MAX
            && reason.len() <= PAST_REASON_MAX
            && (self.how != Failing::Timeout || self.reason.is_none());
        match fits {
            true => Ok(()),
            false => Err(QueueError::Malformed("an attempt that no job has had")),
        }
    }
}

/// The attempts of one job. Empty for most jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History<'a>(pub &'a [u8]);

impl<'a> History<'a> {
    /// The oldest first, up to what is not one.
    pub fn iter(self) -> impl Iterator<Item = Attempt<'a>> {
        let mut rest = self.0;
        std::iter::from_fn(move || take(&mut rest))
    }

    /// Bytes of all reasons.
    pub fn reasons_len(self) -> usize {
        let lens = self.iter().filter_map(|it| it.reason.map(<[u8]>::len));
        lens.sum()
    }

    /// With one more, and of all only the last `kept`.
    pub fn and(self, last: &Attempt<'_>, kept: u64) -> Vec<u8> {
        let others = || self.iter().filter(|it| it.token != last.token);
        let surplus = (others().count() as u64 + 1).saturating_sub(kept);
        let mut bytes = Vec::new();
        for attempt in others().skip(surplus as usize).chain([*last]) {
            append(&attempt, &mut bytes);
        }
        bytes
    }

    /// Checks what may be forged.
    pub fn check(self) -> Result<(), QueueError> {
        let (mut rest, mut count) = (self.0, 0);
        while !rest.is_empty() {
            let attempt: Option<Attempt<'_>> = take(&mut rest);
            let attempt = attempt.ok_or(QueueError::Malformed("attempts that do not decode"))?;
            attempt.check()?;
            count += 1;
        }
        match (1..=HISTORY_MAX).contains(&count) {
            true => Ok(()),
            false => Err(QueueError::Malformed(
                "more attempts than any job keeps, or none",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(token: u64, reason: Option<&[u8]>) -> Attempt<'_> {
        Attempt {
            token,
            attempts: 1,
            ended: 5,
            how: Failing::Nacked,
            reason,
        }
    }

    fn of(attempts: &[Attempt<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        attempts.iter().for_each(|it| append(it, &mut bytes));
        bytes
    }

    #[test]
    fn only_the_last_attempts_are_kept_each_once() {
        let two = of(&[attempt(1, Some(b"a")), attempt(2, None)]);
        let tokens = |bytes: &[u8]| History(bytes).iter().map(|it| it.token).collect::<Vec<_>>();
        let and = |token, kept| History(&two).and(&attempt(token, Some(b"")), kept);
        assert_eq!(tokens(&and(3, 100)), [1, 2, 3]);
        assert_eq!(tokens(&and(3, 2)), [2, 3]);
        assert_eq!(tokens(&and(3, 1)), [3]);
        assert_eq!(tokens(&and(2, 2)), [1, 2]);
        assert_eq!(tokens(&and(2, 1)), [2]);
        assert_eq!(History(&two).reasons_len(), 1);
    }

    #[test]
    fn forged_attempts_are_refused() {
        let good = attempt(7, Some(b"why"));
        assert_eq!(History(&of(&[good])).check(), Ok(()));
        let long = [b'r'; PAST_REASON_MAX + 1];
        let timeout = Attempt {
            how: Failing::Timeout,
            ..good
        };
        let late = Attempt {
            ended: INSTANT_MAX + 1,
            ..good
        };
        let forged = [
            of(&[]),
            of(&[attempt(0, None)]),
            of(&[attempt(TOKEN_MAX + 1, None)]),
            of(&[attempt(7, Some(&long))]),
            of(&[timeout]),
            of(&[late]),
            of(&(1..=101).map(|it| attempt(it, None)).collect::<Vec<_>>()),
            of(&[good])[..5].to_vec(),
            [of(&[good]), vec![0]].concat(),
        ];
        for bytes in forged {
            assert!(History(&bytes).check().is_err(), "{bytes:?}");
        }
    }
}
