//! Done jobs that are kept: DONELEN, DONETTL, DONEBYTES, results, and what happens to these jobs.

use crate::payloads::{forged, restore, TERMS};
use crate::probe::Probe;
use crate::scene::{pair, Lines, Scene};
use crate::support::{wait_until, Raw, Reply, Server, PATIENCE};
use dq::queue::attr::{Attr, Attrs};
use dq::queue::effect::{DoneJob, Effect, OfDone};
use dq::queue::job::Terms;

/// Adds, pops and acks a job, with that result.
fn finish(p: &mut Probe, id: &str, payload: &str, result: &str) {
    p.run(&format!("DQ.ADD q {id} {payload} REPLACE"));
    let token = p.pop_token(&format!("DQ.POP q ID {id}"));
    p.says(&format!("DQ.ACK q RESULTS {id} {token} {result}"), "1");
}

fn done(p: &mut Probe) -> (i64, i64) {
    let line = "DQ.STATS q";
    (p.field_int(line, "done"), p.field_int(line, "done-bytes"))
}

#[test]
fn a_done_job_is_shown_with_its_result() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONELEN 10 ATTEMPTS 3 BACKOFF 1 5");
    p.run("DQ.ADD q a load PRIORITY -2 TTL 600000 GROUP g");
    let token = p.pop_token("DQ.POP q");
    let started = p.field_int("DQ.GET q a", "started");
    assert_eq!(started as u64, token >> 20);
    p.says("DQ.ACK q RESULTS b 1 x a 1 x", "0");
    p.raises(&format!("DQ.ACK q RESULTS a {token} yes"), "1", "dq.ack");
    p.says3(
        "DQ.GET q a",
        "{ 'id' 'a' 'payload' 'load' 'state' 'done' 'priority' -2 'due' ? 'deadline' nil 'ttr' 60000 'attempts' 1 \
         'max-attempts' 3 'backoff' [ 5 ] 'expires' nil 'token' nil 'reason' nil 'failed' nil 'history' [ ] 'group' 'g' ...",
    );
    assert_eq!(p.field_int("DQ.GET q a", "started"), started);
    assert!(p.field_int("DQ.GET q a", "finished") >= started);
    assert_eq!(p.field_text("DQ.GET q a", "result"), "'yes'");
    assert_eq!(done(&mut p), (1, 8));
    assert_eq!(p.field_int("DQ.STATS q", "bytes"), 0);
    assert_eq!(p.field_int("DQ.STATS q", "acked"), 1);
    p.talk(
        "> DQ.LEN q
        0
        > DQ.LEN q DONE
        1
        > DQ.PEEK q DONE
        [ [ 'a' 'load' ? 1 -2 ] ]
        > DQ.PEEK q done FROM 4398046511103
        [ ]
        > DQ.SCAN q 0 STATE DONE
        [ '0' [ 'a' ] ]
        > DQ.SCAN q 0 STATE READY
        [ '0' [ ] ]
        > DQ.GROUPS q 0
        [ '0' [ ] ]
        > DQ.POP q
        nil*
        > DQ.ACK q a
        0
        > DQ.NACK q a
        nil$
        > DQ.TOUCH q a
        nil$
        > DQ.RESCHEDULE q DELAY 0 a
        0
        > DQ.NEXT q a
        [ ]",
    );
    // No result, and an empty one.
    p.run("DQ.ADD q b x");
    p.run("DQ.POP q");
    p.says("DQ.ACK q b", "1");
    assert_eq!(p.field_text("DQ.GET q b", "result"), "nil");
    finish(&mut p, "c", "x", "\"\"");
    assert_eq!(p.field_text("DQ.GET q c", "result"), "''");
    finish(&mut p, "d", "x", "\\x00\\xff");
    p.run("DQ.ADD q e x");
    p.says("DQ.POP q NOACK", "...");
    p.says("DQ.GET q e", "nil$");
    assert_eq!(p.server.number("dq", "dq_jobs_done"), 4);
    assert_eq!(p.server.number("dq", "dq_done_bytes"), 8 + 2 + 2 + 4);
}

#[test]
fn without_a_limit_nothing_is_kept() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x");
    let token = p.pop_token("DQ.POP q");
    p.says(&format!("DQ.ACK q RESULTS a {token} yes"), "1");
    p.says("EXISTS q", "0");
    p.talk(
        "> DQ.ACK q RESULTS
        -ERR wrong number of arguments for 'dq.ack' command
        > DQ.ACK q RESULTS a 1
        -ERR wrong number of arguments for 'dq.ack' command
        > DQ.ACK q RESULTS a 1 x b
        -ERR syntax error, ...
        > DQ.ACK q results a 1 x b 2
        -ERR syntax error, ...
        > DQ.ACK q RESULTS a 1 x
        0
        > DQ.LEN q DONE
        0
        > DQ.PEEK q DONE
        [ ]
        > DQ.PURGE q DONE
        0",
    );
    for option in ["DONELEN", "DONETTL", "DONEBYTES"] {
        for value in ["-1", "x", "9223372036854775808"] {
            let line = format!("DQ.CFGSET q {option} {value}");
            p.unseen(&line, "-ERR value is not an integer or out of range");
        }
        p.unseen(&format!("DQ.CFGSET q {option}"), "-ERR syntax error, ...");
        p.unseen(
            &format!("DQ.CFGSET q {option} 1 {option} 1"),
            "-ERR syntax error, ...",
        );
    }
    p.unseen(
        "DQ.CFGSET q DONETTL 4398046511104",
        "-ERR value is not an integer or out of range",
    );
}

/// "each that is on bounds them"; "The longest done go first, at the ACK that is too much".
#[test]
fn limits_bound_them() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONELEN 2");
    for id in ["a", "b", "c"] {
        finish(&mut p, id, "12", "3");
    }
    assert_eq!(done(&mut p), (2, 8));
    p.says("DQ.GET q a", "nil$");
    // A job that is too large alone is not kept, and removes no other.
    p.run("DQ.CFGSET q DONELEN 0 DONEBYTES 12");
    finish(&mut p, "d", "1234567890", "12");
    assert_eq!(done(&mut p), (2, 8));
    finish(&mut p, "e", "1", "2");
    assert_eq!(done(&mut p), (3, 11));
    finish(&mut p, "f", "1", "\"\"");
    assert_eq!(done(&mut p), (3, 9));
    p.says("DQ.GET q b", "nil$");
    finish(&mut p, "g", "12345", "123456");
    p.says("DQ.PEEK q DONE COUNT 9", "[ [ 'g' ... ] ]");
    assert_eq!(done(&mut p), (1, 12));
    // Limits apply as soon as they are set.
    p.run("DQ.CFGSET q DONELEN 5 DONEBYTES 0");
    for id in ["h", "i", "j"] {
        finish(&mut p, id, "x", "y");
    }
    p.seen("DQ.CFGSET q DONELEN 3", "+OK");
    assert_eq!(done(&mut p).0, 3);
    p.seen("DQ.CFGSET q DONEBYTES 5", "+OK");
    assert_eq!(done(&mut p), (1, 3));
    // When no limit is set any more, all done jobs are removed.
    p.seen("DQ.CFGSET q DONELEN 0 DONEBYTES 0", "+OK");
    assert_eq!(done(&mut p), (0, 0));
    // What a limit removes is in no total, and raises no event.
    assert_eq!(p.field_int("DQ.STATS q", "deleted"), 0);
    assert_eq!(p.field_int("DQ.STATS q", "expired"), 0);
}

/// The end of its time is fixed when it is done, and comes without any command.
#[test]
fn they_go_by_their_time() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONETTL 3600000");
    finish(&mut p, "long", "x", "y");
    p.run("DQ.CFGSET q DONETTL 200");
    finish(&mut p, "a", "x", "y");
    let finished = p.field_int("DQ.GET q a", "finished") as u64;
    p.run("DQ.CFGSET q DONETTL 7200000");
    p.until("DQ.LEN q DONE", "1");
    assert!(
        p.time_ms() >= finished + 200,
        "no time is shorter than asked"
    );
    p.says("DQ.GET q a", "nil$");
    p.says("DQ.GET q long", "...");
    // Nobody has to ask.
    p.run("DQ.CFGSET q DONETTL 50");
    finish(&mut p, "b", "x", "y");
    wait_until("the timer", PATIENCE, || {
        p.server.number("dq", "dq_jobs_done") == 1
    });
    assert!(p.events().iter().all(|event| !event.contains("del")));
}

#[test]
fn conditions_and_done_jobs() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONELEN 9 MAXLEN 1 MAXBYTES 4");
    finish(&mut p, "a", "12", "long-enough");
    // It occupies no place in the queue, and does not stop NX or NEXT.
    p.says("DQ.ADD q a 12", "'a'");
    p.says("DQ.LEN q DONE", "0");
    assert_eq!(p.field_int("DQ.STATS q", "deleted"), 0);
    p.run("DQ.POP q");
    p.says("DQ.ACK q a", "1");
    p.says("DQ.ADD q b 12", "'b'");
    // Replacing it makes the queue longer; if refused, it stays as it was.
    p.unseen("DQ.ADD q a 1 XX", "-MAXLEN queue is full");
    p.unseen("DQ.ADD q a 1 REPLACE", "-MAXLEN queue is full");
    p.says("DQ.LEN q DONE", "1");
    p.run("DQ.DEL q b");
    p.unseen("DQ.ADD q a 123456 XX", "-MAXBYTES queue is full");
    p.says("DQ.ADD q a 12 XX", "'a'");
    p.says("DQ.LEN q DONE", "0");
    p.unseen("DQ.ADD q c 12 XX", "nil$");
    p.run("DQ.POP q");
    p.run("DQ.ACK q a");
    p.says("DQ.ADD q a 12 NEXT", "'a'");
    // DEDUPE does hinder.
    p.run("DQ.CFGSET q DEDUPE 60000");
    p.run("DQ.POP q");
    p.run("DQ.ACK q a");
    p.unseen("DQ.ADD q a 1", "nil$");
    p.says("DQ.LEN q DONE", "1");
    p.says("DQ.ADD q a 1 XX", "'a'");
}

#[test]
fn a_job_with_a_successor_is_not_kept() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONELEN 9");
    p.run("DQ.ADD q a 1");
    let token = p.pop_token("DQ.POP q");
    p.run("DQ.ADD q a 2 NEXT");
    p.says(&format!("DQ.ACK q RESULTS a {token} yes"), "1");
    p.says("DQ.LEN q DONE", "0");
    assert_eq!(p.field_text("DQ.GET q a", "payload"), "'2'");
}

#[test]
fn occurrences_are_kept_as_jobs_of_their_own() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONELEN 9");
    p.run("DQ.ADD q r x EVERY 3600000 TIMES 2 AT 1000");
    let token = p.pop_token("DQ.POP q");
    p.says(&format!("DQ.ACK q RESULTS r {token} one"), "1");
    assert_eq!(p.field_text("DQ.GET q r@1000", "result"), "'one'");
    assert_eq!(p.field_text("DQ.GET q r@1000", "state"), "'done'");
    assert_eq!(p.field_text("DQ.GET q r@1000", "every"), "nil");
    assert_eq!(p.field_text("DQ.GET q r", "state"), "'delayed'");
    p.run("DQ.RESCHEDULE q DELAY 0 r");
    p.run("DQ.POP q");
    p.says("DQ.ACK q r", "1");
    p.says("DQ.GET q r", "nil$");
    p.says("DQ.LEN q DONE", "2");
    p.says("DQ.KICK q IDS 1 r@1000", "1");
    p.says("DQ.POP q", "[ 'r@1000' 'x' ... ]");
    // If that id is taken, the occurrence is not kept.
    p.run("DQ.ADD q s x EVERY 3600000 AT 1000");
    p.run("DQ.ADD q s@1000 other DELAY 60000");
    p.run("DQ.POP q");
    p.says("DQ.ACK q s", "1");
    assert_eq!(p.field_text("DQ.GET q s@1000", "payload"), "'other'");
}

#[test]
fn they_are_deleted_purged_and_kicked() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONELEN 9");
    for id in ["a", "b", "c", "d"] {
        finish(&mut p, id, "x", "y");
    }
    p.raises("DQ.DEL q a nobody", "1", "dq.del");
    p.says("DQ.KICK q COUNT 9", "0");
    p.raises("DQ.KICK q IDS 2 b nobody", "1", "");
    p.says3(
        "DQ.GET q b",
        "{ 'id' 'b' 'payload' 'x' 'state' 'ready' 'priority' 0 'due' ? 'deadline' nil 'ttr' 60000 'attempts' 0 ...",
    );
    assert_eq!(p.field_text("DQ.GET q b", "result"), "nil");
    assert_eq!(p.field_text("DQ.GET q b", "finished"), "nil");
    assert_eq!(p.field_text("DQ.GET q b", "started"), "nil");
    assert_eq!(p.field_int("DQ.STATS q", "deleted"), 1);
    p.raises("DQ.PURGE q DONE", "2", "dq.del");
    p.says("DQ.LEN q", "1");
    finish(&mut p, "c", "x", "y");
    p.raises("DQ.PURGE q ALL", "2", "dq.del");
    assert_eq!(p.field_int("DQ.STATS q", "deleted"), 5);
    p.unseen("DQ.PURGE q DONE", "0");
    p.unseen("DQ.DEL q c", "0");
    p.unseen("DQ.KICK q IDS 1 c", "0");
}

/// A waiting client gets a done job that is kicked.
#[test]
fn a_kicked_one_is_served() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONELEN 9");
    finish(&mut p, "a", "x", "y");
    let mut waiting = p.server.waiting("DQ.BPOP q 0");
    p.says("DQ.KICK q IDS 1 a", "1");
    assert_eq!(waiting.delivery().id, "a");
}

#[test]
fn scan_leaves_out_others() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONELEN 9");
    finish(&mut p, "a", "mail:1", "y");
    p.run("DQ.ADD q b mail:2 GROUP g");
    p.run("DQ.ADD q c other GROUP g");
    p.talk(
        "> DQ.SCAN q 0 PAYLOAD mail:* STATE DONE
        [ '0' [ 'a' ] ]
        > DQ.SCAN q 0 payload mail* group g
        [ '0' [ 'b' ] ]
        > DQ.SCAN q 0 GROUP none
        [ '0' [ ] ]
        > DQ.SCAN q 0 GROUP
        -ERR syntax error, ...
        > DQ.SCAN q 0 PAYLOAD x PAYLOAD y
        -ERR syntax error, ...",
    );
    let Reply::Array(all) = p.run("DQ.SCAN q 0 MATCH ?") else {
        panic!("no scan");
    };
    assert!(matches!(&all[1], Reply::Array(ids) if ids.len() == 3));
}

/// A scan shows every job that exists throughout, while jobs become done, are kicked and are replaced.
#[test]
fn a_scan_sees_jobs_that_become_done_meanwhile() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONELEN 100000");
    for id in 0..2000 {
        p.run(&format!("DQ.ADD q {id} x"));
    }
    p.run("DQ.POP q COUNT 1000");
    let (mut seen, mut cursor, mut next) = (vec![0; 2000], "0".to_string(), 0);
    loop {
        let Reply::Array(step) = p.run(&format!("DQ.SCAN q {cursor} COUNT 20")) else {
            panic!("no scan");
        };
        let Reply::Array(ids) = &step[1] else {
            panic!("no ids");
        };
        for id in ids {
            let id: usize = crate::probe::plain(id).parse().expect("a number");
            seen[id] += 1;
        }
        cursor = crate::probe::plain(&step[0]);
        for _ in 0..10 {
            p.run(&format!("DQ.ACK q {}", next % 1000));
            p.run(&format!("DQ.KICK q IDS 1 {}", (next + 500) % 1000));
            next += 1;
        }
        if cursor == "0" {
            break;
        }
    }
    assert!(seen.iter().all(|&times| times >= 1));
}

/// An unconfigured key goes with its last done job, also when a limit removes it.
#[test]
fn they_hold_the_key() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONELEN 9");
    finish(&mut p, "a", "x", "y");
    p.says("TYPE q", "+dq-queue1");
    p.says("DQ.LEN q DONE", "1");
    p.says("DEL q", "1");
    wait_until("the sums", PATIENCE, || {
        p.server.number("dq", "dq_jobs_done") == 0
    });
}

/// A queue with done jobs of every kind; the instants are far.
fn furnish(client: &mut Raw) {
    for line in [
        "DQ.CFGSET q DONELEN 1000 DONETTL 3600000 DONEBYTES 100000",
        "DQ.ADD q plain x",
        "DQ.ADD q grouped x GROUP g PRIORITY -3 BACKOFF 2 5 6",
        "DQ.ADD q recurring x EVERY 86400000",
        "DQ.RESCHEDULE q DELAY 0 recurring",
        "DQ.POP q COUNT 3",
        "DQ.ACK q plain grouped recurring",
        "DQ.CFGSET q DONETTL 7200000",
        "DQ.ADD q live x DELAY 60000",
        "DQ.ADD q long x",
    ] {
        let reply = client.ask(line);
        assert!(!reply.starts_with('-'), "{line} -> {reply}");
    }
    for number in 0..40 {
        client.run(&format!(
            "DQ.ADD q job-{number} {}",
            "x".repeat(number * 30 + 1)
        ));
        let popped = client.words(&format!("DQ.POP q ID job-{number}"));
        let result = ["\"\"", "r", "result"][number % 3];
        let line = format!("DQ.ACK q RESULTS job-{number} {} {result}", popped[2]);
        client.says(&line, "1");
    }
    let long = client.words("DQ.POP q ID long");
    let result = "r".repeat(5000);
    client.says(&format!("DQ.ACK q RESULTS long {} {result}", long[2]), "1");
    client.says("DQ.KICK q IDS 1 job-3", "1");
    client.says("DQ.LEN q DONE", "43");
}

fn shown(client: &mut Raw) -> String {
    client.ask("DQ.PEEK q DONE COUNT 1000") + &client.ask("DQ.GET q grouped")
}

#[test]
fn they_are_data() {
    let (server, replica) = pair(Server::builder().aof());
    let mut client = server.raw();
    furnish(&mut client);
    server.assert_followed_by(&[&replica]);
    let all = shown(&mut client);
    assert_eq!(shown(&mut replica.raw()), all);
    let digest = client.ask("DEBUG DIGEST-VALUE q");
    for way in [
        "DEBUG RELOAD",
        "DEBUG LOADAOF",
        "BGREWRITEAOF|DEBUG LOADAOF",
        "COPY q p|DEL q|RENAME p q",
        "MOVE q 1|SWAPDB 0 1",
        "RENAME q p|RENAME p q",
    ] {
        for line in way.split('|') {
            let reply = client.ask(line);
            assert!(!reply.starts_with('-'), "{line} -> {reply}");
            wait_until("the rewrite", PATIENCE, || {
                ["in_progress", "scheduled"]
                    .iter()
                    .all(|what| server.info("persistence", &format!("aof_rewrite_{what}")) == "0")
            });
        }
        assert_eq!(client.ask("DEBUG DIGEST-VALUE q"), digest, "{way}");
        assert_eq!(shown(&mut client), all, "{way}");
        assert_eq!(server.number("dq", "dq_jobs_done"), 43, "{way}");
        server.assert_followed_by(&[&replica]);
    }
    let Reply::Bulk(payload) = client.run("DUMP q") else {
        panic!("no dump");
    };
    client.says("DEL q", "1");
    assert_eq!(server.number("dq", "dq_jobs_done"), 0);
    assert_eq!(
        restore(&mut client, b"q", &payload),
        Reply::Simple("OK".into())
    );
    assert_eq!(client.ask("DEBUG DIGEST-VALUE q"), digest);
    server.assert_followed_by(&[&replica]);
}

fn kept_for(ms: u64) -> Terms<'static> {
    Terms {
        rest: Attrs::NONE.with_number(Attr::Keep, ms),
        ..TERMS
    }
}

/// The order of ending, and every field, are part of the digest.
#[test]
fn each_field_is_in_the_digest() {
    let server = Server::start();
    let mut client = server.raw();
    let job = || DoneJob {
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
    let mut digest = |job: DoneJob<'_>| {
        let payload = forged(&mut client, &[Effect::Done(OfDone::Stored(job))]);
        assert_eq!(
            restore(&mut client, b"q", &payload),
            Reply::Simple("OK".into())
        );
        client.ask("DEBUG DIGEST-VALUE q")
    };
    let others = [
        DoneJob { id: b"b", ..job() },
        DoneJob {
            payload: b"y",
            ..job()
        },
        DoneJob {
            result: None,
            ..job()
        },
        DoneJob {
            result: Some(b""),
            ..job()
        },
        DoneJob {
            notes: b"",
            ..job()
        },
        DoneJob {
            group: None,
            ..job()
        },
        DoneJob {
            terms: kept_for(8),
            ..job()
        },
        DoneJob { due: 4, ..job() },
        DoneJob {
            attempts: 3,
            ..job()
        },
        DoneJob {
            started: 5,
            ..job()
        },
        DoneJob {
            finished: 9,
            ..job()
        },
        DoneJob { until: 0, ..job() },
    ];
    let digests: Vec<String> = [job()].into_iter().chain(others).map(&mut digest).collect();
    let mut distinct = digests.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), digests.len());
    assert_eq!(digest(job()), digests[0]);
}

/// Done jobs that no queue can have are refused, and nothing is left of them.
#[test]
fn forged_ones_are_refused() {
    let server = Server::start();
    let mut client = server.raw();
    let past = 1 << 42;
    let job = || DoneJob {
        id: b"a",
        payload: b"x",
        result: None,
        notes: b"",
        group: None,
        terms: kept_for(7),
        seq: 1,
        due: 5,
        attempts: 2,
        started: 6,
        finished: 8,
        until: 0,
    };
    let wrong = [
        DoneJob { id: b"", ..job() },
        DoneJob {
            id: &[b'x'; 1025],
            ..job()
        },
        DoneJob {
            group: Some(b""),
            ..job()
        },
        DoneJob {
            group: Some(&[b'g'; 257]),
            ..job()
        },
        DoneJob {
            terms: kept_for(past),
            ..job()
        },
        DoneJob {
            seq: u64::MAX,
            ..job()
        },
        DoneJob {
            notes: b"\x05\x02p",
            ..job()
        },
        DoneJob {
            notes: b"\x05\x00\x05\x00",
            ..job()
        },
        DoneJob {
            notes: b"\x86\x02\x00\x05\x00",
            ..job()
        },
        DoneJob {
            notes: b"\x8e\x02\x00",
            ..job()
        },
        DoneJob {
            notes: b"\x10\x01n",
            ..job()
        },
        DoneJob { due: past, ..job() },
        DoneJob {
            started: past,
            ..job()
        },
        DoneJob {
            finished: past,
            ..job()
        },
        DoneJob {
            until: past,
            ..job()
        },
        DoneJob { until: 7, ..job() },
    ];
    let stored = |job| Effect::Done(OfDone::Stored(job));
    let gone = Effect::Done(OfDone::Gone { id: b"a" });
    let trimmed = Effect::Done(OfDone::Trimmed { count: 1 });
    let twice = vec![stored(job()), stored(DoneJob { seq: 2, ..job() })];
    let same_seq = vec![stored(job()), stored(DoneJob { id: b"b", ..job() })];
    let mut all: Vec<_> = wrong.into_iter().map(|job| vec![stored(job)]).collect();
    all.extend([twice, same_seq, vec![gone], vec![stored(job()), trimmed]]);
    for effects in all {
        let payload = forged(&mut client, &effects);
        let reply = restore(&mut client, b"q", &payload);
        assert!(matches!(reply, Reply::Error(_)), "{effects:?} -> {reply:?}");
        client.says("EXISTS q", "0");
    }
    let payload = forged(&mut client, &[stored(job())]);
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
