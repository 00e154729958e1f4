//! DQ.EXPLAIN: each code, its number and its instant, on a clock that stands still.

use crate::probe::Probe;
use crate::scene::{Lines, Scene};
use crate::turned::builder;

const START: &str = "DQ.CLOCK SET 4000000000000";

fn start() -> Probe {
    let mut p = Probe::of(builder());
    p.run(START);
    p
}

#[test]
fn of_a_queue_without_ready_jobs() {
    let mut p = start();
    p.says("DQ.EXPLAIN q", "nil$");
    p.says3("DQ.EXPLAIN q", "nil");
    p.says3("DQ.EXPLAIN q a", "nil");
    p.talk(
        "> DQ.CFGSET q
        +OK
        > DQ.EXPLAIN q
        [ [ 'empty' nil$ nil$ ] ]
        3> DQ.EXPLAIN q
        [ [ 'empty' nil nil ] ]
        > DQ.EXPLAIN q a
        nil$
        > DQ.ADD q late x DELAY 500
        'late'
        > DQ.ADD q last x AT 4398046511103
        'last'
        > DQ.ADD q after x AFTER 1 late
        'after'
        > DQ.EXPLAIN q
        [ [ 'delayed' 2 4000000000500 ] [ 'blocked' 1 nil$ ] ]
        > DQ.ADD q now x
        'now'
        > DQ.EXPLAIN q
        [ [ 'idle' 1 nil$ ] ]
        > DQ.POP q TTR 1000
        [ 'now' ? ? 1 ? ]
        > DQ.CFGSET q MAXRESERVED 1
        +OK
        > DQ.PAUSE q 100
        +OK
        > DQ.EXPLAIN q
        [ [ 'paused' nil$ 4000000000100 ] [ 'maxreserved' 1 nil$ ] [ 'delayed' 2 4000000000500 ] \
        [ 'blocked' 1 nil$ ] [ 'reserved' 1 4000000001000 ] ]
        > DQ.PAUSE q
        +OK
        > DQ.DEL q late last after
        3
        > DQ.EXPLAIN q
        [ [ 'paused' nil$ nil$ ] [ 'maxreserved' 1 nil$ ] [ 'reserved' 1 4000000001000 ] ]
        > DQ.EXPLAIN q now
        [ [ 'reserved' nil$ 4000000001000 ] ]
        > DQ.CLOCK ADVANCE 1000
        4000000001000
        > DQ.EXPLAIN q
        [ [ 'paused' nil$ nil$ ] ]
        > DQ.EXPLAIN q now
        [ [ 'paused' nil$ nil$ ] ]",
    );
}

/// It is served at once: until then, in a transaction, nothing is said.
#[test]
fn a_client_that_waits_leaves_nothing_idle() {
    let mut p = start();
    p.run("DQ.PAUSE q");
    p.run("DQ.ADD q a x");
    let mut waiting = p.server.waiting("DQ.BPOP q 0");
    p.says("DQ.EXPLAIN q", "[ [ 'paused' nil$ nil$ ] ]");
    p.talk(
        "> MULTI
        +OK
        > DQ.RESUME q
        +QUEUED
        > DQ.EXPLAIN q
        +QUEUED
        > DQ.EXPLAIN q a
        +QUEUED
        > EXEC
        [ +OK [ ] [ ] ]",
    );
    assert_eq!(waiting.delivery().id, "a");
    p.says("DQ.EXPLAIN q", "[ [ 'reserved' 1 4000000060000 ] ]");
}

/// On a replica, what the master said last.
#[test]
fn a_replica_answers() {
    let mut p = start();
    p.run("DQ.ADD q a x DELAY 500");
    p.run("DQ.ADD q b x");
    p.run("DQ.POP q");
    let replica = crate::support::Server::start();
    replica.replica_of(&p.server);
    let told = "[ [ 'delayed' 1 4000000000500 ] [ 'reserved' 1 4000000060000 ] ]";
    replica.raw().says("DQ.EXPLAIN q", told);
    replica
        .raw()
        .says("DQ.EXPLAIN q a", "[ [ 'delayed' nil$ 4000000000500 ] ]");
}

#[test]
fn of_the_first_window_that_lets_its_job_go() {
    let mut p = start();
    p.run("DQ.CFGSET q GROUPRATE 10 1000");
    for (group, cost, later) in [("a", 1, 200), ("b", 10, 300), ("a", 9, 100)] {
        p.run(&format!("DQ.ADD q * x GROUP {group} COST {cost}"));
        p.run("DQ.POP q NOACK");
        p.run(&format!("DQ.CLOCK ADVANCE {later}"));
    }
    p.run("DQ.ADD q dear x GROUP a COST 10");
    p.run("DQ.ADD q cheap x GROUP b");
    p.talk(
        "> DQ.EXPLAIN q
        [ [ 'groups' 2 4000000001200 ] ]
        > DQ.CLOCK ADVANCE 600
        4000000001200
        > DQ.POP q
        [ 'cheap' ...",
    );
}
