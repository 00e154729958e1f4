//! WITHTERMS and LEASE: what worker libraries need of DQ.POP and DQ.BPOP.

use crate::probe::{fits, packed, show, Probe};
use crate::scene::Scene;
use crate::support::{Reply, Server};
use std::collections::HashSet;

#[test]
fn withterms_tells_ttr_attempts_and_the_next_wait() {
    let mut p = Probe::start();
    p.talk(
        "> DQ.ADD q a x
        'a'
        > DQ.POP q WITHTERMS
        [ 'a' 'x' ? 1 ? [ 60000 0 nil$ ] ]
        > DQ.ADD q b x AT 2000 TTR 700000 ATTEMPTS 9 BACKOFF 2 1000 5000
        'b'
        > DQ.POP q WITHTERMS WITHDUE
        [ 'b' 'x' ? 1 ? 2000 [ 700000 9 1000 ] ]
        > DQ.NACK q b DELAY 0
        'ready'
        3> DQ.POP q COUNT 3 withterms
        [ [ 'b' 'x' ? 2 ? [ 700000 9 5000 ] ] ]
        > DQ.NACK q b SILENT DELAY 0
        'ready'
        > DQ.BPOP q 0 COUNT 1 WITHTERMS
        [ 'q' [ [ 'b' 'x' ? 2 ? [ 700000 9 5000 ] ] ] ]
        > DQ.NACK q b DELAY 0
        'ready'
        > DQ.BPOP none q 0 WITHTERMS NOACK WITHDUE
        [ 'q' 'b' 'x' nil$ 3 nil$ ? [ 700000 9 5000 ] ]
        > DQ.ADD q c x EVERY 1000 DELAY 0 TTR 50000
        'c'
        3> DQ.POP q NOACK WITHTERMS
        [ 'c' 'x' nil 1 nil [ 50000 0 nil ] ]",
    );
    p.unseen("DQ.POP q WITHTERMS WITHTERMS", "-ERR syntax error, ...");
}

/// The wait in the reply is the one that a NACK then uses.
#[test]
fn the_wait_is_that_of_the_nack_which_follows() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x BACKOFF 3 100000 200000 300000");
    for step in [100_000, 200_000, 300_000, 300_000] {
        p.says(
            "DQ.POP q WITHTERMS",
            &format!("[ 'a' 'x' ? ? ? [ 60000 0 {step} ] ]"),
        );
        let before = p.time_ms();
        p.says("DQ.NACK q a", "'delayed'");
        let waits = p.field_int("DQ.GET q a", "due") as u64 - before;
        assert!((step..step + 50_000).contains(&waits), "{waits}");
        p.run("DQ.RESCHEDULE q DELAY 0 a");
    }
}

/// The length of the lease that a POP has given.
fn lease(p: &mut Probe, line: &str) -> u64 {
    let before = p.time_us();
    let Reply::Array(words) = p.run(line) else {
        panic!("no job")
    };
    let Some(Reply::Integer(deadline)) = words.last() else {
        panic!("{words:?}")
    };
    // Up to the half minute: no test takes as long.
    (*deadline as u64 * 1000 - before) / 30_000_000 * 30_000
}

#[test]
fn lease_is_in_place_of_the_servers_default_alone() {
    let mut p = Probe::start();
    p.run("DQ.ADD q plain x");
    p.run("DQ.ADD q own x TTR 120000");
    p.run("DQ.ADD q own2 x TTR 120000");
    p.run("DQ.CFGSET q TTR 240000");
    p.run("DQ.ADD q queues x");
    assert_eq!(lease(&mut p, "DQ.POP q ID plain LEASE 480000"), 480_000);
    // A heartbeat without TTR keeps that length.
    let before = p.time_us();
    let touched = p.int("DQ.TOUCH q plain") as u64;
    assert!(touched * 1000 >= before + 480_000_000);
    assert_eq!(lease(&mut p, "DQ.POP q ID own LEASE 480000"), 120_000);
    assert_eq!(lease(&mut p, "DQ.POP q ID queues LEASE 480000"), 240_000);
    assert_eq!(lease(&mut p, "DQ.BPOP q 0 LEASE 480000"), 120_000);
    p.run("DQ.ADD r a x");
    assert_eq!(lease(&mut p, "DQ.BPOP none r 0 LEASE 480000"), 480_000);
    p.run("DQ.ADD r a x REPLACE");
    p.says("DQ.POP r NOACK LEASE 5", "[ 'a' 'x' nil$ 1 nil$ ]");
}

#[test]
fn the_default_is_that_of_the_delivery() {
    let mut p = Probe::start();
    let mut waiting = p.server.raw();
    waiting.send(&packed("DQ.BPOP q 0 LEASE 480000"));
    p.server.wait_for_blocked(1);
    p.run("CONFIG SET dq.default-ttr 90000");
    let before = p.time_us();
    p.run("DQ.ADD q a x");
    let Reply::Array(words) = waiting.read() else {
        panic!("no job")
    };
    let Some(Reply::Integer(deadline)) = words.last() else {
        panic!("{words:?}")
    };
    assert!(*deadline as u64 * 1000 >= before + 480_000_000);
    p.run("DQ.ADD q b x TTR 60000");
    assert_eq!(lease(&mut p, "DQ.POP q LEASE 480000"), 60_000);
}

#[test]
fn a_waiting_client_gets_terms_from_the_command_and_from_the_timer() {
    let mut p = Probe::start();
    let mut waiting = p.server.raw();
    for (options, add, expected) in [
        // Handed over by the command itself, and by the timer.
        ("", "", "[ 'q' 'a' 'x' ? 1 ? [ 70000 0 5 ] ]"),
        ("COUNT 2", "", "[ 'q' [ [ 'a' 'x' ? 1 ? [ 70000 0 5 ] ] ] ]"),
        (
            "NOACK",
            "DELAY 1",
            "[ 'q' 'a' 'x' nil$ 1 nil$ [ 70000 0 5 ] ]",
        ),
    ] {
        waiting.send(&packed(&format!("DQ.BPOP q 0 WITHTERMS {options}")));
        p.server.wait_for_blocked(1);
        p.run(&format!("DQ.ADD q a x TTR 70000 BACKOFF 1 5 {add}"));
        let reply = show(&waiting.read());
        assert!(fits(&reply, expected), "{reply}");
        p.run("DQ.ACK q a");
    }
}

const LADDER: [i64; 3] = [100_000, 200_000, 300_000];

/// A server with this ladder, whose clock stands still.
fn of_servers_ladder() -> Probe {
    let ladder = LADDER.map(|ms| ms.to_string()).join(" ");
    let arguments = format!("default-backoff {ladder} test-clock yes");
    Probe::of(Server::builder().module_arguments(&arguments))
}

/// Lets the job fail once; how long it has to wait then. It does not.
fn wait(p: &mut Probe, id: &str) -> i64 {
    let token = p.pop_token(&format!("DQ.POP q ID {id}"));
    let reply = match token.is_multiple_of(2) {
        true => p.ask(&format!("DQ.NACK q {id}")),
        false => p.ask(&format!("DQ.NACK q IDS 1 {id} {token}")),
    };
    let get = format!("DQ.GET q {id}");
    let wait = p.field_int(&get, "due") - p.field_int(&get, "failed");
    let state = if wait == 0 { "'ready'" } else { "'delayed'" };
    assert!(
        [state.to_owned(), format!("[ {state} ]")].contains(&reply),
        "{reply}"
    );
    p.run(&format!("DQ.RESCHEDULE q DELAY 0 {id}"));
    wait
}

fn is_servers(wait: i64, step: i64) -> bool {
    (step..=step + step / 10).contains(&wait)
}

#[test]
fn without_a_ladder_the_servers_holds_a_tenth_longer_at_most() {
    let mut p = of_servers_ladder();
    let ids: Vec<String> = (0..40).map(|number| format!("job{number}")).collect();
    let pairs: Vec<String> = ids.iter().map(|id| format!("{id} x")).collect();
    p.run(&format!("DQ.MADD q {} {}", ids.len(), pairs.join(" ")));
    let round = |p: &mut Probe| ids.iter().map(|id| wait(p, id)).collect::<Vec<_>>();
    let rounds = [LADDER[0], LADDER[1], LADDER[2], LADDER[2]].map(|step| {
        let waits = round(&mut p);
        assert!(
            waits.iter().all(|&wait| is_servers(wait, step)),
            "{waits:?}"
        );
        assert!(waits.iter().collect::<HashSet<_>>().len() > 20, "{waits:?}");
        waits
    });
    assert_ne!(rounds[2], rounds[3]);
    // The same for the same ids and attempts.
    p.run("DQ.PURGE q ALL");
    ids.iter()
        .for_each(|id| drop(p.run(&format!("DQ.ADD q {id} x"))));
    assert_eq!([round(&mut p), round(&mut p)], rounds[..2]);
}

#[test]
fn the_setting_of_the_moment_counts() {
    let mut p = of_servers_ladder();
    p.run("DQ.ADD q a x");
    for (setting, step) in [("5000", 5000), ("20,7000", 7000), ("0", 0), ("9000", 9000)] {
        p.says(&format!("CONFIG SET dq.default-backoff {setting}"), "+OK");
        let wait = wait(&mut p, "a");
        assert!(is_servers(wait, step), "{setting}: {wait}");
    }
}

#[test]
fn a_ladder_of_ones_own_is_kept_to_the_millisecond() {
    let mut p = of_servers_ladder();
    p.talk(
        "> DQ.ADD q own x BACKOFF 1 50000
        'own'
        > DQ.ADD q zero x BACKOFF 0
        'zero'
        > DQ.CFGSET q BACKOFF 2 60000 70000
        +OK
        > DQ.ADD q of_queue x
        'of_queue'
        > DQ.CFGSET q BACKOFF 0
        +OK
        > DQ.ADD q of_queue_zero x
        'of_queue_zero'",
    );
    assert_eq!(p.field_text("DQ.CFGGET q", "backoff"), "[ 0 ]");
    p.says("DQ.CFGSET q backoff default MAXLEN 0", "+OK");
    assert_eq!(p.field_text("DQ.CFGGET q", "backoff"), "[ ]");
    p.run("DQ.ADD q none x");
    p.run("DQ.ADD q rule x EVERY 100000000 DELAY 0");
    for (id, shown, waits) in [
        ("own", "[ 50000 ]", [50_000, 50_000]),
        ("zero", "[ 0 ]", [0, 0]),
        ("of_queue", "[ 60000 70000 ]", [60_000, 70_000]),
        ("of_queue_zero", "[ 0 ]", [0, 0]),
    ] {
        assert_eq!(p.field_text(&format!("DQ.GET q {id}"), "backoff"), shown);
        assert_eq!([(); 2].map(|()| wait(&mut p, id)), waits, "{id}");
    }
    for id in ["none", "rule"] {
        assert_eq!(p.field_text(&format!("DQ.GET q {id}"), "backoff"), "[ ]");
        let waits = [(); 2].map(|()| wait(&mut p, id));
        let are_servers = is_servers(waits[0], LADDER[0]) && is_servers(waits[1], LADDER[1]);
        assert!(are_servers, "{id}: {waits:?}");
    }
    for line in [
        "BACKOFF DEFAULT 1",
        "BACKOFF 1 DEFAULT",
        "BACKOFF DEFAULT BACKOFF 0",
        "BACKOFF",
    ] {
        let refused = p.ask(&format!("DQ.CFGSET q {line}"));
        assert!(refused.starts_with("-ERR "), "{line}: {refused}");
    }
    let refused = p.ask("DQ.ADD q more x BACKOFF DEFAULT");
    assert!(refused.starts_with("-ERR "), "{refused}");
}

#[test]
fn what_does_not_wait_by_it() {
    let mut p = of_servers_ladder();
    p.talk(
        "> DQ.ADD q a x ATTEMPTS 5
        'a'
        > DQ.POP q TTR 1000 WITHTERMS
        [ 'a' 'x' ? 1 ? [ 60000 5 nil$ ] ]
        > DQ.CLOCK ADVANCE 1000
        ?
        > DQ.POP q WITHTERMS
        [ 'a' 'x' ? 2 ? [ 60000 5 nil$ ] ]
        > DQ.NACK q a SILENT
        'ready'
        > DQ.POP q ID a
        [ 'a' 'x' ? 2 ? ]
        > DQ.NACK q a DELAY 0
        'ready'
        > DQ.POP q ID a
        [ 'a' 'x' ? 3 ? ]
        > DQ.NACK q a FATAL
        'dead'
        > DQ.ADD q zero x BACKOFF 0
        'zero'
        > DQ.POP q WITHTERMS
        [ 'zero' 'x' ? 1 ? [ 60000 0 0 ] ]",
    );
}

/// The master decides: what its replica and its AOF are set to does not matter.
#[test]
fn all_copies_have_the_masters_waits() {
    let builder = || Server::builder().aof();
    let mut p = Probe::of(builder().module_arguments("default-backoff 50000 1000000"));
    let replica = builder().module_arguments("default-backoff 7").start();
    replica.replica_of(&p.server);
    for id in ["a", "b", "c"] {
        p.run(&format!("DQ.ADD q {id} x"));
        p.run("DQ.POP q");
        p.says(&format!("DQ.NACK q {id}"), "'delayed'");
    }
    replica.assert_same_data_as(&p.server);
    let digest = p.server.digest();
    p.run("CONFIG SET dq.default-backoff 9");
    for again in ["DEBUG LOADAOF", "DEBUG RELOAD"] {
        p.says(again, "+OK");
        assert_eq!(p.server.digest(), digest, "{again}");
    }
}
