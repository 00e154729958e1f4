//! Short constructors of effects.

use std::ops::RangeInclusive;

use redis_dq::queue::attr::{Attr, Attrs};
use redis_dq::queue::effect::{
    Came, Change, Completion, DeathCause, Effect, How, OccurrenceCause, OfDone, RemovalCause,
};
use redis_dq::queue::job::Terms;
use redis_dq::queue::recurring::rule::{Next, Pattern, Rule as Recurrence};
use redis_dq::queue::settings::{GroupSettings, Rate, Settings};

/// The instant at which all histories begin.
pub const T: u64 = 1_700_000_000_000;

pub type E = Effect<'static>;

pub fn terms(max_attempts: u32) -> Terms<'static> {
    Terms {
        priority: 0,
        ttr_ms: 100,
        max_attempts,
        rest: Attrs::NONE,
    }
}

pub fn added(id: &'static str, due: u64, max_attempts: u32) -> E {
    expiring(id, due, max_attempts, 0)
}

pub fn expiring(id: &'static str, due: u64, max_attempts: u32, expires: u64) -> E {
    Effect::Came(Came {
        id: id.as_bytes(),
        payload: b"x",
        terms: terms(max_attempts),
        group: None,
        how: How::New { due, expires },
    })
}

pub fn grouped(id: &'static str) -> E {
    costly(id, 1)
}

fn costly(id: &'static str, units: u32) -> E {
    Effect::Came(Came {
        id: id.as_bytes(),
        payload: b"x",
        terms: Terms {
            rest: Attrs::NONE.with_number(Attr::Cost, (units).into()),
            ..terms(0)
        },
        group: Some(b"g"),
        how: How::New { due: T, expires: 0 },
    })
}

pub fn job(id: &'static str, change: Change<'static>) -> E {
    let id = id.as_bytes();
    Effect::Job { id, change }
}

/// Reserved for 100 ms from `at` on.
pub fn reserved(id: &'static str, at: u64) -> E {
    let (token, deadline, lease_ms) = (at << 20, at + 100, 100);
    job(
        id,
        Change::Reserved {
            token,
            deadline,
            lease_ms,
        },
    )
}

pub fn touched(id: &'static str, at: u64) -> E {
    let (deadline, lease_ms) = (at + 100, 100);
    job(id, Change::Touched { deadline, lease_ms })
}

pub fn nacked(id: &'static str, due: u64, attempts: u32) -> E {
    let priority = 0;
    job(
        id,
        Change::Nacked {
            due,
            priority,
            attempts,
            failure: None,
        },
    )
}

pub fn timed_out(id: &'static str) -> E {
    job(id, Change::TimedOut)
}

pub fn died(id: &'static str, at: u64) -> E {
    let cause = DeathCause::TimedOut;
    job(id, Change::Died { at, cause })
}

pub fn removed(id: &'static str, cause: RemovalCause) -> E {
    job(id, Change::Removed { cause, remember: 0 })
}

pub fn acked(id: &'static str) -> E {
    removed(id, RemovalCause::Acked)
}

/// Other settings than before.
pub fn sets(set: impl FnOnce(&mut Settings)) -> E {
    let mut settings = Settings::default();
    set(&mut settings);
    Effect::Configured(settings)
}

/// Settings of the jobs' group.
pub fn own(set: impl FnOnce(&mut GroupSettings)) -> E {
    let mut own = GroupSettings::default();
    set(&mut own);
    Effect::Group { name: b"g", own }
}

/// Keeps done jobs, at most `len` if that is not 0.
pub fn keeps_done(len: u64) -> E {
    sets(|it| it.done_limits.len = len)
}

/// Done at `finished`, and kept until `until` if that is not 0.
pub fn done(id: &'static str, finished: u64, until: u64) -> E {
    let (id, remember, result) = (id.as_bytes(), 0, Some(&b"result"[..]));
    let end = Completion {
        finished,
        until,
        result,
    };
    Effect::Done(OfDone::Kept { id, remember, end })
}

pub fn done_gone(id: &'static str) -> E {
    let id = id.as_bytes();
    Effect::Done(OfDone::Gone { id })
}

pub fn done_kicked(id: &'static str, due: u64) -> E {
    let id = id.as_bytes();
    Effect::Done(OfDone::Kicked { id, due })
}

pub fn done_trimmed(count: u64) -> E {
    Effect::Done(OfDone::Trimmed { count })
}

pub fn kicked(id: &'static str, due: u64) -> E {
    job(id, Change::Kicked { due })
}

pub fn fifo_and_max(is_fifo: bool, max_reserved: u64) -> E {
    sets(|it| (it.group_limits.is_fifo, it.group_limits.max_reserved) = (is_fifo, max_reserved))
}

/// A rate of two in ten milliseconds, of the queue or of each group.
pub fn rated(of_groups: bool) -> E {
    sets(|it| match of_groups {
        true => it.group_limits.rate = RATE,
        false => it.rate = RATE,
    })
}

pub const RATE: Option<Rate> = Some(Rate {
    count: 2,
    window_ms: 10,
});

/// Three jobs of one group, delivered one after the other.
pub fn served(at: [u64; 3]) -> Vec<E> {
    let ids = ["one", "two", "three"];
    let added = ids.map(grouped);
    let served = [0, 1, 2].map(|n| reserved(ids[n], T + at[n]));
    [added, served].concat()
}

/// Two jobs, one of which costs more than one: together more than two.
pub fn served_costly(at: [u64; 2]) -> Vec<E> {
    vec![
        grouped("one"),
        costly("two", 2),
        reserved("one", T + at[0]),
        reserved("two", T + at[1]),
    ]
}

/// Other jobs, each done at once, one a second.
pub fn others(seconds: RangeInclusive<u64>) -> Vec<E> {
    let done = |at| {
        [
            added("other", T, 0),
            reserved("other", T + at),
            acked("other"),
        ]
    };
    seconds.flat_map(|second| done(second * 1000)).collect()
}

pub fn next(occurrence: u64) -> Next {
    Next {
        occurrence,
        due: occurrence,
        expires: 0,
        offset_s: 0,
    }
}

/// A job that recurs every second, so many times.
pub fn recurs(id: &'static str, times: u64) -> E {
    let rule = Recurrence {
        pattern: Pattern::Every { ms: 1000 },
        until: 0,
        times,
        grace_ms: 0,
        jitter_ms: 0,
        ttl_ms: 0,
    };
    Effect::Came(Came {
        id: id.as_bytes(),
        payload: b"x",
        terms: terms(0),
        group: None,
        how: How::Recurs {
            rule,
            first: next(T),
        },
    })
}

pub fn recurred(id: &'static str, ended: OccurrenceCause, occurrence: Option<u64>) -> E {
    Effect::Recurred {
        id: id.as_bytes(),
        ended,
        next: occurrence.map(next),
        failure: None,
    }
}
