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

#[test]
fn of_jobs_that_are_not_ready() {
    let mut p = start();
    for line in [
        "DQ.CFGSET q DONELEN 9 BACKOFF 1 700",
        "DQ.MADD q 6 done x dead x waits x told x retry x way x",
        "DQ.POP q COUNT 9",
        "DQ.ACK q done",
        "DQ.NACK q dead FATAL",
        "DQ.NACK q waits SILENT AWAIT paid",
        "DQ.NACK q told SILENT AWAIT paid DELAY 50",
        "DQ.NACK q retry",
        "DQ.ADD q both x AFTER 2 way retry",
        "DQ.ADD q of x GROUP g",
        "DQ.ADD q behind x AFTER GROUP g",
    ] {
        p.run(line);
    }
    p.talk(
        "> DQ.EXPLAIN q done
        [ [ 'done' nil$ nil$ ] ]
        > DQ.EXPLAIN q dead
        [ [ 'dead' nil$ nil$ ] ]
        > DQ.EXPLAIN q waits
        [ [ 'signal' nil$ nil$ ] ]
        > DQ.EXPLAIN q told
        [ [ 'signal' nil$ 4000000000050 ] ]
        > DQ.EXPLAIN q retry
        [ [ 'delayed' nil$ 4000000000700 ] ]
        > DQ.EXPLAIN q way
        [ [ 'reserved' nil$ 4000000060000 ] ]
        > DQ.EXPLAIN q both
        [ [ 'blocked' 2 nil$ ] ]
        > DQ.EXPLAIN q behind
        [ [ 'blocked' 1 nil$ ] ]
        > DQ.EXPLAIN q none
        nil$",
    );
}

#[test]
fn of_a_rate_by_the_job_whose_turn_it_is() {
    let mut p = start();
    p.run("DQ.CFGSET q RATE 3 1000");
    p.run("DQ.MADD q 3 a x b x c x");
    p.run("DQ.ADD q dear x COST 2");
    p.run("DQ.ADD q cheap x");
    p.talk(
        "> DQ.POP q COUNT 2
        [ ...
        > DQ.CLOCK ADVANCE 100
        4000000000100
        > DQ.EXPLAIN q dear
        [ [ 'behind' 1 nil$ ] ]
        > DQ.EXPLAIN q cheap
        [ [ 'behind' 2 nil$ ] [ 'idle' 3 nil$ ] ]
        > DQ.EXPLAIN q
        [ [ 'idle' 3 nil$ ] ]
        > DQ.POP q
        [ 'c' ...
        > DQ.EXPLAIN q
        [ [ 'rate' 3 4000000001000 ] ]
        > DQ.EXPLAIN q cheap
        [ [ 'behind' 1 nil$ ] [ 'rate' 3 4000000001000 ] ]
        > DQ.CLOCK ADVANCE 900
        4000000001000
        > DQ.EXPLAIN q
        [ [ 'idle' 2 nil$ ] ]
        > DQ.POP q
        [ 'dear' ...
        > DQ.EXPLAIN q
        [ [ 'rate' 3 4000000001100 ] ]",
    );
}

/// RATE lets this job go, though not the dearer one whose turn it is.
#[test]
fn a_job_that_goes_by_its_id_alone_is_idle() {
    let mut p = start();
    p.run("DQ.CFGSET q RATE 3 1000");
    p.run("DQ.MADD q 2 a x b x");
    p.run("DQ.ADD q dear x COST 2");
    p.run("DQ.ADD q cheap x");
    p.run("DQ.POP q COUNT 2");
    p.talk(
        "> DQ.EXPLAIN q
        [ [ 'rate' 2 4000000001000 ] ]
        > DQ.POP q
        nil*
        > DQ.EXPLAIN q cheap
        [ [ 'behind' 1 nil$ ] [ 'rate' 2 4000000001000 ] [ 'idle' 2 nil$ ] ]
        > DQ.POP q ID cheap
        [ 'cheap' ...",
    );
}

/// RATE lets the job go whose turn it is, though not this one, which leads its group.
#[test]
fn a_dear_job_that_nothing_named_holds_is_idle() {
    let mut p = start();
    p.run("DQ.CFGSET q RATE 3 1000");
    p.run("DQ.ADD q a x");
    p.run("DQ.ADD q dear x COST 5");
    p.run("DQ.ADD q c x GROUP C");
    p.run("DQ.POP q");
    p.talk(
        "> DQ.EXPLAIN q
        [ [ 'idle' 2 nil$ ] ]
        > DQ.EXPLAIN q dear
        [ [ 'idle' 2 nil$ ] ]
        > DQ.POP q ID dear
        nil*",
    );
}

#[test]
fn of_groups() {
    let mut p = start();
    p.run("DQ.CFGSET q GROUPMAX 1 GROUPRATE 2 1000");
    p.run("DQ.MADD q 2 a1 x a2 x GROUP a");
    p.talk(
        "> DQ.EXPLAIN q a2
        [ [ 'behind' 1 nil$ ] [ 'idle' 2 nil$ ] ]
        > DQ.POP q
        [ 'a1' ...
        > DQ.EXPLAIN q
        [ [ 'groups' 1 nil$ ] ]
        > DQ.EXPLAIN q a2
        [ [ 'group-max' 1 nil$ ] ]
        > DQ.ACK q a1
        1
        > DQ.EXPLAIN q
        [ [ 'idle' 1 nil$ ] ]
        > DQ.CLOCK ADVANCE 100
        4000000000100
        > DQ.POP q
        [ 'a2' ...
        > DQ.MADD q 2 a3 x a4 x GROUP a
        [ 'a3' 'a4' ]
        > DQ.ADD q b1 x GROUP b DELAY 10
        'b1'
        > DQ.EXPLAIN q
        [ [ 'groups' 2 nil$ ] ]
        > DQ.EXPLAIN q a4
        [ [ 'group-max' 1 nil$ ] [ 'group-rate' 2 4000000001000 ] [ 'behind' 1 nil$ ] ]
        > DQ.ACK q a2
        1
        > DQ.EXPLAIN q
        [ [ 'groups' 2 4000000001000 ] ]
        > DQ.ADD q own x
        'own'
        > DQ.EXPLAIN q
        [ [ 'idle' 3 nil$ ] ]
        > DQ.EXPLAIN q own
        [ [ 'idle' 3 nil$ ] ]
        > DQ.CFGSET q GROUPMAX 0 GROUPRATE 0 0 GROUPFIFO 1
        +OK
        > DQ.EXPLAIN q a4
        [ [ 'group-fifo' nil$ nil$ ] ]
        > DQ.EXPLAIN q a3
        [ [ 'idle' 3 nil$ ] ]
        > DQ.RESCHEDULE q DELAY 50 a3
        1
        > DQ.DEL q own
        1
        > DQ.EXPLAIN q
        [ [ 'groups' 1 nil$ ] ]",
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
