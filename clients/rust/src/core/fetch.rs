//! The fetch commands of one connection, and the lengths of the leases that they give.

use super::settings::{Fill, Shape};
use crate::values::{ms, seconds};
use redis::{cmd, Cmd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The server's default TTR. A job that has it counts as one that was given none.
pub(crate) const SERVER_TTR: Duration = Duration::from_secs(60);

/// A key of a queue, with its weight.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub key: Arc<[u8]>,
    pub weight: f64,
}

/// What a fetch says about leases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lease {
    /// The TTR of the job or its queue.
    Own,
    /// One length for all jobs.
    All(Duration),
    /// A length for jobs that were given no TTR.
    Otherwise(Duration),
}

impl Lease {
    pub fn of(shapes: &[Shape], worker: Option<Duration>) -> Self {
        let other = shapes.iter().find(|shape| shape.kind.is_none());
        let first = shapes.first().and_then(|shape| shape.lease);
        match (first, other) {
            (Some(common), None) if shapes.iter().all(|shape| shape.lease == first) => {
                Lease::All(common)
            }
            (_, other) => match worker.or(other.and_then(|shape| shape.lease)) {
                Some(length) => Lease::Otherwise(length),
                None => Lease::Own,
            },
        }
    }

    /// The lease of a job with this TTR when it arrives.
    pub fn given(self, ttr: Duration) -> Duration {
        match self {
            Lease::All(length) => length,
            Lease::Otherwise(length) if ttr == SERVER_TTR => length,
            _ => ttr,
        }
    }

    /// The lease that the job is to have.
    pub fn wanted(self, shape: &Shape, worker: Option<Duration>, ttr: Duration) -> Duration {
        match (&shape.kind, shape.lease) {
            (Some(_), Some(length)) => length,
            _ if ttr != SERVER_TTR => ttr,
            (_, length) => length.or(worker).unwrap_or(ttr),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Fetches {
    pub members: Vec<Member>,
    /// False: strict order, which is `DQ.BPOP`'s own. True: each queue comes first in its share of the fetches.
    pub is_weighted: bool,
    fill: Option<Fill>,
    /// When the first of the calls began that had to give way while they waited for a batch.
    since: Option<Instant>,
    /// When the current call began, and when it is over.
    current: Option<(Instant, Instant)>,
}

impl Fetches {
    pub fn new(members: Vec<Member>, is_weighted: bool, fill: Option<Fill>) -> Self {
        Fetches {
            members,
            is_weighted,
            fill,
            since: None,
            current: None,
        }
    }

    pub fn command(
        &mut self,
        count: usize,
        wait: Duration,
        lease: Lease,
        rng: &mut Rng,
        now: Instant,
    ) -> Cmd {
        self.current = Some((now, now + wait));
        let mut words = cmd("DQ.BPOP");
        for member in self.order(rng) {
            words.arg(&*member.key);
        }
        words.arg(seconds(wait)).arg("COUNT").arg(count);
        if let Some(fill) = self.fill.filter(|_| count > 1) {
            let waited = self.since.map_or(Duration::ZERO, |since| now - since);
            let left = ms(fill.wait.saturating_sub(waited)).max(1);
            words.arg("FILL").arg(fill.jobs.min(count)).arg(left);
        }
        for word in ["WITHDUE", "WITHRESULTS", "WITHSTEPS", "WITHTERMS"] {
            words.arg(word);
        }
        match lease {
            Lease::Own => {}
            Lease::All(length) => _ = words.arg("TTR").arg(ms(length)),
            Lease::Otherwise(length) => _ = words.arg("LEASE").arg(ms(length)),
        }
        words
    }

    /// The call has ended. If it neither got jobs nor lasted as long as it could, the next one goes on with its wait.
    pub fn fetched(&mut self, is_any: bool, now: Instant) {
        let gave_way = self.current.filter(|(_, over)| !is_any && now < *over);
        self.since = gave_way.map(|(began, _)| self.since.unwrap_or(began));
    }

    fn order(&self, rng: &mut Rng) -> Vec<&Member> {
        let mut order: Vec<&Member> = self.members.iter().collect();
        if self.is_weighted && order.len() > 1 {
            let mut drawn: Vec<(f64, &Member)> = order
                .into_iter()
                .map(|member| (rng.unit().powf(1.0 / member.weight), member))
                .collect();
            drawn.sort_by(|one, other| other.0.total_cmp(&one.0));
            order = drawn.into_iter().map(|(_, member)| member).collect();
        }
        order
    }
}

/// Splitmix64.
#[derive(Debug)]
pub(crate) struct Rng(pub u64);

impl Rng {
    /// From 0 to 1.
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
