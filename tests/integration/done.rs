//! Done jobs that are kept, on a server: the timer that removes them, forged ones, very many.

use crate::payloads::{forged, restore, TERMS};
use crate::probe::Probe;
use crate::scene::{pair, Lines, Scene};
use crate::support::{wait_until, Reply, Server, PATIENCE};
use dq::queue::attr::{Attr, Attrs};
use dq::queue::effect::{DoneJob, Effect, OfDone};
use dq::queue::job::Terms;

/// The end of its time comes without any command.
#[test]
fn they_go_by_their_time() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONETTL 50");
    p.run("DQ.ADD q a x");
    p.run("DQ.POP q");
    p.says("DQ.ACK q a", "1");
    wait_until("the timer", PATIENCE, || {
        p.server.number("dq", "dq_jobs_done") == 0
    });
    assert!(p.events().iter().all(|event| !event.contains("del")));
}

fn kept_for(ms: u64) -> Terms<'static> {
    Terms {
        rest: Attrs::NONE.with_number(Attr::Keep, ms),
        ..TERMS
    }
}

const PAST: u64 = 1 << 42;

type Change = fn(&mut DoneJob<'static>);

/// A job that a queue may have, but for this.
fn changed(change: Change) -> DoneJob<'static> {
    let mut job = DoneJob {
        id: b"a",
        payload: b"x",
        result: Some(b"r"),
        notes: b"\x05\x01p",
        group: Some(b"g"),
        terms: kept_for(7),
        seq: 1,
        due: 5,
        attempts: 2,
        started: 6,
        finished: 8,
        until: 4_000_000_000_000,
    };
    change(&mut job);
    job
}

const AS_IT_IS: Change = |_| {};

/// What makes it another job.
const OTHERS: [Change; 12] = [
    |it| it.id = b"b",
    |it| it.payload = b"y",
    |it| it.result = None,
    |it| it.result = Some(b""),
    |it| it.notes = b"",
    |it| it.group = None,
    |it| it.terms = kept_for(8),
    |it| it.due = 4,
    |it| it.attempts = 3,
    |it| it.started = 5,
    |it| it.finished = 9,
    |it| it.until = 0,
];

/// What makes it one that no queue can have.
const WRONG: [Change; 16] = [
    |it| it.id = b"",
    |it| it.id = &[b'x'; 1025],
    |it| it.group = Some(b""),
    |it| it.group = Some(&[b'g'; 257]),
    |it| it.terms = kept_for(PAST),
    |it| it.seq = u64::MAX,
    |it| it.notes = b"\x05\x02p",
    |it| it.notes = b"\x05\x00\x05\x00",
    |it| it.notes = b"\x86\x02\x00\x05\x00",
    |it| it.notes = b"\x8e\x02\x00",
    |it| it.notes = b"\x10\x01n",
    |it| it.due = PAST,
    |it| it.started = PAST,
    |it| it.finished = PAST,
    |it| it.until = PAST,
    |it| it.until = 7,
];

/// The order of ending, and every field, are part of the digest.
#[test]
fn each_field_is_in_the_digest() {
    let server = Server::start();
    let mut client = server.raw();
    let mut digest = |change: Change| {
        let stored = Effect::Done(OfDone::Stored(changed(change)));
        let payload = forged(&mut client, &[stored]);
        assert_eq!(
            restore(&mut client, b"q", &payload),
            Reply::Simple("OK".into())
        );
        client.ask("DEBUG DIGEST-VALUE q")
    };
    let first = digest(AS_IT_IS);
    let mut distinct: Vec<String> = OTHERS.map(&mut digest).into();
    distinct.push(first.clone());
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), OTHERS.len() + 1);
    assert_eq!(digest(AS_IT_IS), first);
}

/// Nothing is left of them.
#[test]
fn forged_ones_are_refused() {
    let server = Server::start();
    let mut client = server.raw();
    let stored = |change| Effect::Done(OfDone::Stored(changed(change)));
    let gone = Effect::Done(OfDone::Gone { id: b"a" });
    let trimmed = Effect::Done(OfDone::Trimmed { count: 1 });
    let twice = vec![stored(AS_IT_IS), stored(|it| it.seq = 2)];
    let same_seq = vec![stored(AS_IT_IS), stored(|it| it.id = b"b")];
    let mut all = Vec::from_iter(WRONG.map(|change| vec![stored(change)]));
    all.extend([twice, same_seq, vec![gone], vec![stored(AS_IT_IS), trimmed]]);
    for effects in all {
        let payload = forged(&mut client, &effects);
        let reply = restore(&mut client, b"q", &payload);
        assert!(matches!(reply, Reply::Error(_)), "{effects:?} -> {reply:?}");
        client.says("EXISTS q", "0");
    }
    let payload = forged(&mut client, &[stored(AS_IT_IS)]);
    assert_eq!(
        restore(&mut client, b"q", &payload),
        Reply::Simple("OK".into())
    );
    client.says("DQ.LEN q DONE", "1");
    server.assert_no_crash();
}

/// Very many are removed in steps, by their time and by a limit, and leave nothing.
#[test]
fn many_go_in_steps_and_leave_nothing() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONELEN 100000");
    p.run("DQ.ADD q first x");
    p.run("DQ.DEL q first");
    let before = p.int("MEMORY USAGE q");
    let fill = |p: &mut Probe| {
        for id in 0..6000 {
            p.run(&format!("DQ.ADD q {id} some-payload"));
        }
        p.run("DQ.POP q COUNT 6000");
        let ids: Vec<String> = (0..6000).map(|id| id.to_string()).collect();
        p.says(&format!("DQ.ACK q {}", ids.join(" ")), "6000");
    };
    fill(&mut p);
    p.says("DQ.LEN q DONE", "6000");
    p.run("DQ.CFGSET q DONELEN 10");
    p.until("DQ.LEN q DONE", "10");
    p.run("DQ.CFGSET q DONELEN 100000 DONETTL 300");
    fill(&mut p);
    p.until("DQ.LEN q DONE", "0");
    fill(&mut p);
    p.run("DQ.CFGSET q DONELEN 0 DONETTL 0");
    p.until("DQ.LEN q DONE", "0");
    // They are freed in steps, too.
    wait_until("nothing is left of them", PATIENCE, || {
        p.int("MEMORY USAGE q") < before + 2000
    });
    p.server.assert_no_crash();
}

/// A replica keeps what its master keeps, whatever its own clock is.
#[test]
fn a_replica_waits_for_its_master() {
    let (server, replica) = pair(Server::builder());
    let mut client = server.raw();
    client.says("DQ.CFGSET q DONETTL 100", "+OK");
    client.says("DQ.ADD q a x", "'a'");
    client.words("DQ.POP q");
    client.says("DQ.ACK q a", "1");
    wait_until("the master says so", PATIENCE, || {
        replica.raw().int("DQ.LEN q DONE") == 0 && client.int("DQ.LEN q DONE") == 0
    });
    server.assert_followed_by(&[&replica]);
}
