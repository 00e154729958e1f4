//! A sound history has no fault; each rule that is broken in one place is found.

mod effects;
mod histories;

use std::fs;
use std::path::PathBuf;
use std::process;

use dq_audit::audit::Audit;
use dq_audit::parts;
use dq_audit::rule::Rule;
use effects::*;
use histories::{later, planted, sound};
use redis_dq::queue::codec::{begin, encode};
use redis_dq::queue::effect::Effect;

fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn apply(queue: &str, effect: &E) -> Vec<u8> {
    let mut effects = Vec::new();
    begin(&mut effects);
    encode(effect, &mut effects);
    command(&[b"DQ.APPLY", queue.as_bytes(), &effects])
}

fn file(queue: &str, effects: &[E]) -> Vec<u8> {
    effects.iter().flat_map(|it| apply(queue, it)).collect()
}

/// An AOF that is removed after the test.
struct Aof(PathBuf);

impl Aof {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("dq-audit-{}-{name}", process::id()));
        fs::write(&path, bytes).unwrap();
        Aof(path)
    }

    fn audited(&self) -> Audit {
        let mut audit = Audit::default();
        audit.judge.judges_rates = true;
        audit.read(&parts::of(&self.0).unwrap()).unwrap();
        audit
    }
}

impl Drop for Aof {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn audited(name: &str, bytes: &[u8]) -> Audit {
    Aof::new(name, bytes).audited()
}

#[test]
fn what_is_in_order_has_no_fault() {
    let audit = audited("sound", &file("q", &sound()));
    assert_eq!(audit.judge.total(), 0, "{:?}", audit.judge.faults());
    assert_eq!(audit.judge.tally.effects, sound().len() as u64);
    assert_eq!((audit.keyspace.queues(), audit.keyspace.jobs()), (0, 0));
}

#[test]
fn each_fault_that_is_planted_is_noticed_where_it_is() {
    for (name, rule, history) in planted() {
        let before = file("q", &sound());
        // Planted in a queue of its own, after a sound history whose clock continues.
        let audit = audited(
            "planted",
            &[before.clone(), file("planted", &later(history))].concat(),
        );
        let found = audit.judge.faults();
        assert!(
            found.iter().any(|fault| fault.rule == rule),
            "{name}: {found:?}"
        );
        let all_behind = found
            .iter()
            .all(|fault| fault.at.offset >= before.len() as u64);
        assert!(
            all_behind && found.iter().all(|fault| fault.queue == b"planted"),
            "{name}"
        );
    }
}

#[test]
fn a_lease_may_end_late_where_the_server_stood_still() {
    let held = || vec![added("a", T, 0), reserved("a", T)];
    for history in [
        // An hour later the first effect is a delivery, and soon all overdue leases are ended.
        [
            held(),
            [others(1..=2), others(3_600..=3_603)].concat(),
            vec![timed_out("a")],
        ],
        // Nothing shows that the clock advanced: the files end.
        [held(), others(1..=10), vec![]],
        // It was acknowledged.
        [held(), vec![acked("a")], others(1..=99)],
    ] {
        let audit = audited("late", &file("q", &history.concat()));
        assert_eq!(audit.judge.total(), 0, "{:?}", audit.judge.faults());
    }
}

#[test]
fn every_rule_has_its_canary() {
    for rule in Rule::ALL {
        assert!(planted().iter().any(|(_, of, _)| *of == rule), "{rule}");
    }
}

#[test]
fn keys_that_move_take_their_queue_along() {
    let mut bytes = file("q", &[added("a", T, 0), reserved("a", T)]);
    for words in [
        &[&b"RENAME"[..], b"q", b"p"][..],
        &[b"COPY", b"p", b"copy", b"DB", b"2"],
        &[b"MOVE", b"p", b"1"],
        &[b"SWAPDB", b"1", b"0"],
    ] {
        bytes.extend(command(words));
    }
    bytes.extend(file("p", &[acked("a"), Effect::Dropped]));
    bytes.extend(command(&[b"SELECT", b"2"]));
    bytes.extend(file("copy", &[acked("a"), Effect::Dropped]));
    let audit = audited("moved", &bytes);
    assert_eq!(audit.judge.total(), 0, "{:?}", audit.judge.faults());
    for gone in [
        &[&b"DEL"[..], b"q"][..],
        &[b"UNLINK", b"x", b"q"],
        &[b"SET", b"q", b"x"],
        &[b"FLUSHDB"],
        &[b"FLUSHALL", b"ASYNC"],
        &[b"RENAME", b"other", b"q"],
        &[b"CLUSTER", b"FLUSHSLOT", b"11958"],
        &[b"TRIMSLOTS", b"RANGES", b"1", b"11000", b"12000"],
    ] {
        let there = file("q", &[added("a", T, 0)]);
        let audit = audited("gone", &[there, command(gone)].concat());
        assert_eq!(audit.keyspace.jobs(), 0, "{}", gone[0].escape_ascii());
    }
}

/// Not judged at the limit, after a possible restart of the server, or if nobody asks for it.
#[test]
fn rates_are_judged_where_they_hold() {
    for of_groups in [false, true] {
        let with = |at| [vec![rated(of_groups)], served(at)].concat();
        let audit = audited("rated", &file("q", &with([0, 5, 11])));
        assert_eq!(audit.judge.total(), 0, "{:?}", audit.judge.faults());
        let costly = [vec![rated(of_groups)], served_costly([0, 11])].concat();
        let audit = audited("costly", &file("q", &costly));
        assert_eq!(audit.judge.total(), 0, "{:?}", audit.judge.faults());
        let over = with([0, 5, 8]);
        let (before, last) = over.split_at(over.len() - 1);
        for (select, faults) in [(&b"0"[..], 0), (b"1", 1)] {
            let bytes = [
                file("q", before),
                command(&[b"SELECT", select]),
                command(&[b"SELECT", b"0"]),
                file("q", last),
            ];
            let audit = audited("selected", &bytes.concat());
            assert_eq!(audit.judge.total(), faults, "{}", select.escape_ascii());
        }
        let aof = Aof::new("unasked", &file("q", &over));
        let mut audit = Audit::default();
        audit.read(&parts::of(&aof.0).unwrap()).unwrap();
        assert_eq!(audit.judge.total(), 0, "{:?}", audit.judge.faults());
    }
}

#[test]
fn a_transaction_without_its_end_is_not_carried_out() {
    let there = [added("a", T, 0), reserved("a", T)];
    let open = [
        file("q", &there),
        command(&[b"MULTI"]),
        file("q", &[acked("a")]),
    ]
    .concat();
    for cut in [open.len(), open.len() - 3] {
        let audit = audited("open", &open[..cut]);
        assert_eq!(audit.keyspace.jobs(), 1);
        assert!(!audit.notes.is_empty());
    }
    let closed = [open, command(&[b"EXEC"])].concat();
    let audit = audited("closed", &closed);
    assert_eq!((audit.keyspace.jobs(), audit.notes.len()), (0, 0));
}

/// What was before the files is unknown.
#[test]
fn increments_alone_are_judged_by_what_they_tell() {
    let unknown = [reserved("old", T), acked("old"), reserved("older", T + 1)];
    let bytes = file("q", &unknown);
    assert_eq!(audited("x.incr.aof", &bytes).judge.total(), 0);
    assert!(audited("x.aof", &bytes).judge.total() > 0);
    let tokens = file("q", &[reserved("old", T + 5), reserved("older", T)]);
    assert_eq!(
        audited("y.incr.aof", &tokens).judge.count(Rule::TokensGrow),
        1
    );
}

#[test]
fn what_is_no_aof_is_an_error() {
    for (name, bytes) in [
        ("text", &b"hello\n"[..]),
        ("effects", &command(&[b"DQ.APPLY", b"q", b"\x04\xff"])),
        ("value", b"REDIS0014\x1b\x01s\x00"),
        ("entry", b"REDIS0013\xf3\x01\0\0\0\0"),
    ] {
        let aof = Aof::new(name, bytes);
        let parts = parts::of(&aof.0).unwrap();
        assert!(Audit::default().read(&parts).is_err(), "{name}");
    }
}
