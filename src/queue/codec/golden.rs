//! What is written stays what it was: the bytes of each variant, and of the structs inside. A field that is added,
//! taken away or moved shows here. A new variant belongs at the end of its list, with its bytes; no line changes.

use super::*;
use crate::queue::after::{After, For, Link, Moment, OnDead, Outcome};
use crate::queue::attr::Attrs;
use crate::queue::effect::{
    Arrival, Came, Change, Completion, DeathCause, DoneJob, EndCause, Forgotten, How,
    OccurrenceCause, OfDone, Purge, RemovalCause,
};
use crate::queue::history::{Attempt, Failing, History};
use crate::queue::job::{Failure, Life, Place, State, Terms};
use crate::queue::note::Note;
use crate::queue::recurring::rule::{Next, Occurrence, Pattern, Rule};
use crate::queue::settings::{DoneLimits, GroupLimits, GroupSettings, Rate, Settings};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

mod effects;

use effects::{changes, effects};

const MOMENT: Moment = Moment {
    ms: 421,
    is_within: true,
};

/// As `#[serde(borrow)]` does not read them from every slice.
type Bytes = &'static [u8];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of(hex: &str) -> Bytes {
    let pairs = (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16));
    let bytes: Result<Vec<u8>, _> = pairs.collect();
    bytes.expect("hexadecimal digits").leak()
}

/// Checks that each value is written as its golden bytes, and read from them.
fn are_kept<T>(values: &[(T, &str)]) -> Result<(), String>
where
    T: Serialize + Deserialize<'static> + PartialEq + Debug,
{
    let mut changed = String::new();
    for (value, golden) in values {
        let mut bytes = Vec::new();
        append(value, &mut bytes);
        if hex(&bytes) != *golden {
            changed += &format!("{value:?} is {} and was {golden}\n", hex(&bytes));
        }
    }
    if !changed.is_empty() {
        return Err(changed);
    }
    for (value, golden) in values {
        let mut rest = bytes_of(golden);
        let read = take::<T>(&mut rest);
        if read.as_ref() != Some(value) || !rest.is_empty() {
            return Err(format!("{golden} is read as {read:?}"));
        }
    }
    Ok(())
}

/// As [`are_kept`], for an enum: also checks that all its variants are given, in order.
fn variants_are_kept<T>(values: &[(T, &str)]) -> Result<(), String>
where
    T: Serialize + Deserialize<'static> + PartialEq + Debug,
{
    are_kept(values)?;
    let mut seen: Vec<u8> = values.iter().map(|(_, it)| bytes_of(it)[0]).collect();
    seen.dedup();
    let in_order: Vec<u8> = (0..seen.len() as u8).collect();
    if seen != in_order {
        return Err(format!("the variants {seen:?}"));
    }
    let next = [&[seen.len() as u8][..], &[0; 64]].concat();
    match take::<T>(&mut &*next.leak()) {
        Some(unknown) => Err(format!("no bytes are held of {unknown:?}")),
        None => Ok(()),
    }
}

const TERMS: Terms<'static> = Terms {
    priority: -300,
    ttr_ms: 301,
    max_attempts: 302,
    rest: Attrs::of(b"\x07\x02\xd9\x02\x17\x02\xe0\x02\x27\x04\xaf\x02\xb0\x02"),
};
const FAILURE: Failure<'static> = Failure {
    at: 305,
    reason: Some(b"why"),
};
const ATTEMPT: Attempt<'static> = Attempt {
    token: 426,
    attempts: 427,
    ended: 428,
    how: Failing::Fatal,
    reason: Some(b"why"),
};
const NEXT: Next = Next {
    occurrence: 306,
    due: 307,
    expires: 308,
    offset_s: -309,
};
const RULE: Rule<'static> = Rule {
    pattern: Pattern::Every { ms: 310 },
    until: 311,
    times: 312,
    grace_ms: 313,
    jitter_ms: 314,
    ttl_ms: 315,
};
const LIFE: Life = Life {
    expires: 316,
    token: 317,
    at: 318,
    lease_ms: 319,
    death: 320,
    attempts: 321,
};
const OCCURRENCE: Occurrence = Occurrence {
    at: 322,
    runs: 323,
    delivered: true,
    offset_s: -324,
};
const LIMITS: GroupLimits = GroupLimits {
    max_reserved: 325,
    rate: Some(RATE),
    is_fifo: true,
};
const OWN: GroupSettings = GroupSettings {
    weight: Some(432),
    max_reserved: Some(430),
    rate: Some(Some(RATE)),
    max_len: Some(431),
    paused_until: 433,
};
const RATE: Rate = Rate {
    count: 326,
    window_ms: 327,
};
const ID: Bytes = b"id";
const PAYLOAD: Bytes = b"load";

fn settings() -> Settings {
    Settings {
        ttr_ms: Some(328),
        max_attempts: 329,
        rest: Attrs::NONE.with_backoff(&[330, 331]),
        max_len: 332,
        dead_len: 333,
        dedupe_ms: 334,
        max_reserved: 335,
        rate: Some(RATE),
        max_bytes: 336,
        group_limits: LIMITS,
        done_limits: DONE_LIMITS,
        history: 337,
        unknown: bytes_of("22020102").to_vec(),
    }
}

const DONE_LIMITS: DoneLimits = DoneLimits {
    len: 340,
    ttl_ms: 341,
    bytes: 342,
};
const DONE_END: Completion<'static> = Completion {
    finished: 343,
    until: 344,
    result: Some(b"res"),
};
const DONE_JOB: DoneJob<'static> = DoneJob {
    id: ID,
    payload: PAYLOAD,
    result: Some(b"res"),
    notes: b"\x05\x03pro",
    group: Some(b"grp"),
    terms: TERMS,
    seq: 346,
    due: 347,
    attempts: 348,
    started: 349,
    finished: 350,
    until: 351,
};

fn of_done() -> Vec<(OfDone<'static>, &'static str)> {
    let (id, end) = (ID, DONE_END);
    vec![
        (
            OfDone::Kept {
                id,
                remember: 352,
                end,
            },
            "00026964e002d702d8020103726573",
        ),
        (
            OfDone::OccurrenceKept {
                id,
                next: Some(NEXT),
                end,
            },
            "0102696401b202b302b402e904d702d8020103726573",
        ),
        (OfDone::Stored(DONE_JOB), "02026964046c6f6164010372657305050370726f0103677270d704ad02ae020e0702d9021702e0022704af02b002da02db02dc02dd02de02df02"),
        (OfDone::Gone { id }, "03026964"),
        (OfDone::Deleted { id }, "04026964"),
        (OfDone::Trimmed { count: 353 }, "05e102"),
        (OfDone::Kicked { id, due: 354 }, "06026964e202"),
    ]
}

#[test]
fn effects_are_what_they_were() {
    variants_are_kept(&effects()).unwrap();
    variants_are_kept(&of_done()).unwrap();
    variants_are_kept(&changes()).unwrap();
}

#[test]
fn notes_are_what_they_were() {
    let (text, name, value) = (PAYLOAD, ID, PAYLOAD);
    are_kept(&[
        (Note::Progress { text }, "05046c6f6164"),
        (Note::Awaits { name }, "10026964"),
        (Note::Step { name, value }, "2208026964046c6f6164"),
        (
            Note::Past {
                history: History(b"any"),
            },
            "3603616e79",
        ),
        (Note::Unknown { tag: 0x7f6, value }, "f60f046c6f6164"),
    ])
    .unwrap();
}

#[test]
fn causes_are_what_they_were() {
    variants_are_kept(&[
        (DeathCause::TimedOut, "00"),
        (
            DeathCause::Nacked {
                priority: -602,
                failure: None,
            },
            "01b30900",
        ),
    ])
    .unwrap();
    variants_are_kept(&[
        (Failing::Nacked, "00"),
        (Failing::Fatal, "01"),
        (Failing::Timeout, "02"),
    ])
    .unwrap();
    variants_are_kept(&[
        (EndCause::Acked, "00"),
        (EndCause::Popped, "01"),
        (EndCause::TimedOut, "02"),
        (EndCause::Nacked, "03"),
    ])
    .unwrap();
    variants_are_kept(&[
        (Forgotten::Id(ID), "00026964"),
        (Forgotten::Until(405), "019503"),
        (Forgotten::Pause(ID), "02026964"),
    ])
    .unwrap();
}

#[test]
fn causes_of_a_removal_are_what_they_were() {
    let (cut, count) = (606, 607);
    variants_are_kept(&[
        (
            Purge::State {
                state: Some(State::Dead),
                cut,
            },
            "000103de04",
        ),
        (Purge::Overdue { dead: true, cut }, "0101de04"),
        (Purge::Trim { count }, "02df04"),
    ])
    .unwrap();
    variants_are_kept(&[
        (RemovalCause::Acked, "00"),
        (RemovalCause::Popped, "01"),
        (RemovalCause::Deleted, "02"),
        (RemovalCause::Expired, "03"),
        (RemovalCause::TimedOutExpired, "04"),
    ])
    .unwrap();
    variants_are_kept(&[
        (OccurrenceCause::Acked, "00"),
        (OccurrenceCause::Popped, "01"),
        (OccurrenceCause::Missed, "02"),
        (OccurrenceCause::Expired, "03"),
        (OccurrenceCause::TimedOutExpired, "04"),
        (
            OccurrenceCause::TimedOut {
                at: 603,
                kept: true,
            },
            "05db0401",
        ),
        (
            OccurrenceCause::Nacked {
                at: 603,
                priority: -604,
                kept: true,
            },
            "06db04b70901",
        ),
    ])
    .unwrap();
}

#[test]
fn what_jobs_and_queues_are_made_of_is_what_it_was() {
    are_kept(&[(TERMS, "d704ad02ae020e0702d9021702e0022704af02b002")]).unwrap();
    are_kept(&[(LIFE, "bc02bd02be02bf02c002c102")]).unwrap();
    are_kept(&[(NEXT, "b202b302b402e904")]).unwrap();
    are_kept(&[(OCCURRENCE, "c202c302018705")]).unwrap();
    are_kept(&[(RATE, "c602c702")]).unwrap();
    are_kept(&[(settings(), "4f020301c8020402c9020607062704ca02cb020802cc020a02cd020c02ce020e02cf02100501c602c7021202d0021402c502160501c602c7021801011a02d4021c02d5021e02d6022002d10222020102")]).unwrap();
    are_kept(&[
        (FAILURE, "b1020103776879"),
        (
            Failure {
                at: 0,
                reason: None,
            },
            "0000",
        ),
    ])
    .unwrap();
    let cron = Pattern::Cron {
        text: ID.into(),
        zone: PAYLOAD.into(),
    };
    variants_are_kept(&[
        (Pattern::Every { ms: 700 }, "00bc05"),
        (cron, "01026964046c6f6164"),
    ])
    .unwrap();
    variants_are_kept(&[
        (State::Delayed, "00"),
        (State::Ready, "01"),
        (State::Reserved, "02"),
        (State::Dead, "03"),
        (State::Done, "04"),
        (State::Blocked, "05"),
    ])
    .unwrap();
    variants_are_kept(&[
        (Place::Scheduled, "00"),
        (Place::Reserved, "01"),
        (Place::Dead, "02"),
        (Place::Successor, "03"),
        (Place::Blocked, "04"),
    ])
    .unwrap();
}

/// The checker's own: a field that moved, a variant that is new, one that is missing.
#[test]
fn what_changed_is_noticed() {
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    enum Was {
        One(u64, u32),
        Two,
    }
    assert!(variants_are_kept(&[(Was::One(300, 1), "00ac0201"), (Was::Two, "01")]).is_ok());
    assert!(variants_are_kept(&[(Was::One(1, 300), "00ac0201"), (Was::Two, "01")]).is_err());
    assert!(variants_are_kept(&[(Was::One(300, 1), "00ac0201")]).is_err());
    assert!(variants_are_kept(&[(Was::Two, "01")]).is_err());
}
