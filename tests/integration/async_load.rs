//! `repl-diskless-load swapdb`: a replica loads its master's data beside its own, serves its own meanwhile, and
//! switches to the new data when it is complete.

use crate::scene::{Lines, Scene};
use crate::support::{wait_until, Builder, Server, PATIENCE};

const QUEUES: u64 = 400;
/// Queues in the data that the replica loads.
const NEW_QUEUES: u64 = QUEUES / 2 + 3;

fn builder() -> Builder {
    Server::builder()
        .config("repl-diskless-sync", "yes")
        .config("repl-diskless-load", "swapdb")
        .config("repl-backlog-size", "16kb")
        .config("rdbcompression", "no")
        .config("loading-process-events-interval-bytes", 1024)
        // A replica held up counts as connected until the test says otherwise.
        .config("repl-timeout", 600)
}

/// A replica with its master's old data, while it loads the new data.
struct Load {
    master: Server,
    replica: Server,
    old_digest: String,
}

impl Load {
    fn begun() -> Load {
        Load::begun_on(builder())
    }

    fn begun_on(builder: Builder) -> Load {
        let (master, replica) = (builder.clone().start(), builder.start());
        replica.replica_of(&master);
        let mut client = master.raw();
        for number in 0..QUEUES {
            client.run(&format!("DQ.ADD old{number} a x DELAY 600000"));
        }
        client.run("DQ.ADD both old x DELAY 600000");
        client.run("SELECT 1");
        client.run("DQ.ADD elsewhere a x DELAY 600000");
        replica.assert_same_data_as(&master);
        let old_digest = replica.digest();
        replica.raw().says("CONFIG SET key-load-delay 30000", "+OK");
        replica.signal("STOP");
        // Of the same history, but further ahead than the backlog reaches.
        client.run("CLIENT KILL TYPE replica");
        client.run("FLUSHALL");
        client.run("SELECT 0");
        for number in 0..QUEUES / 2 {
            // More than fits into socket buffers: a master that dies has not sent all of it.
            let payload = "x".repeat(100_000);
            client.run(&format!("DQ.ADD new{number} a {payload} DELAY 600000"));
        }
        client.run("DQ.ADD both new x DELAY 600000");
        client.run("SELECT 1");
        client.run("DQ.ADD both other x DELAY 600000");
        client.run("DQ.ADD brief a x DELAY 700000 TTL 600000");
        replica.signal("CONT");
        let load = Load {
            master,
            replica,
            old_digest,
        };
        wait_until("the replica loads beside its data", PATIENCE, || {
            load.is_loading()
        });
        load
    }

    fn is_loading(&self) -> bool {
        self.replica.number("persistence", "async_loading") == 1
    }

    /// What clients see of the old data.
    #[track_caller]
    fn assert_old_data_are_served(&self) {
        let mut client = self.replica.raw();
        assert_eq!(self.replica.number("dq", "dq_queues"), QUEUES + 2);
        assert_eq!(self.replica.number("dq", "dq_jobs_delayed"), QUEUES + 2);
        client.says("DQ.LEN old7", "1");
        client.says("DQ.LEN new7", "0");
        let job = client.ask("DQ.GET both old");
        assert!(job.contains("'x'"), "{job}");
        let refused = client.ask("DQ.POP both");
        assert!(refused.starts_with("-READONLY "), "{refused}");
    }
}

#[test]
fn old_data_are_served_until_new_ones_are_whole() {
    let load = Load::begun();
    load.assert_old_data_are_served();
    assert!(load.is_loading(), "all of it was seen on the way");
    let (master, replica) = (&load.master, &load.replica);
    replica.raw().says("CONFIG SET key-load-delay 0", "+OK");
    replica.wait_for_link();
    replica.assert_same_data_as(master);
    let log = replica.log();
    assert!(log.contains("Swapping active DB with loaded DB"), "{log}");
    wait_until("all names are in their places", PATIENCE, || {
        replica.number("dq", "dq_queues") == NEW_QUEUES
    });
    assert_eq!(replica.number("dq", "dq_jobs_delayed"), NEW_QUEUES);
    // The replication stream continues.
    let mut client = master.raw();
    client.run("DQ.ADD new3 late x");
    client.run("DEL new4 old4");
    client.run("DQ.ADD soon a x DELAY 600000");
    replica.assert_same_data_as(master);
    assert_eq!(replica.number("dq", "dq_queues"), NEW_QUEUES);
    assert_serves_in_its_place(replica, "soon", "a");
}

/// For every key that is loaded beside the old data, older servers say that it is in database 0.
#[test]
fn new_data_of_all_databases_have_their_timer() {
    // So that it takes the timer many turns.
    let load = Load::begun_on(builder().module_arguments("timer-steps 10 test-clock yes"));
    let (master, replica) = (&load.master, &load.replica);
    // Carried out by the replica before its timer can have looked at all names.
    master.raw().says("SWAPDB 0 1", "+OK");
    replica.raw().says("CONFIG SET key-load-delay 0", "+OK");
    replica.wait_for_link();
    replica.assert_same_data_as(master);
    wait_until("all names are in their places", PATIENCE, || {
        replica.number("dq", "dq_queues") == NEW_QUEUES
    });
    replica.promote();
    let mut client = replica.raw();
    client.int("DQ.CLOCK ADVANCE 600000");
    // The switch may come to this name last.
    wait_until("the job is gone, and its queue", PATIENCE, || {
        client.int("EXISTS both brief") == 1
    });
    assert_eq!(replica.number("dq", "dq_expired_total"), 1);
    assert_eq!(replica.number("dq", "dq_jobs_ready"), NEW_QUEUES - 1);
}

#[test]
fn an_aborted_load_leaves_the_old_data() {
    let mut load = Load::begun();
    load.assert_old_data_are_served();
    load.master.kill();
    wait_until("the load is given up", PATIENCE, || !load.is_loading());
    assert_eq!(load.replica.digest(), load.old_digest);
    load.assert_old_data_are_served();
    assert_serves_in_its_place(&load.replica, "both", "old");
    // The next master that it follows sends all of its data.
    load.master.restart();
    // If the master keeps an AOF, it still has its data.
    load.master.raw().run("FLUSHALL");
    load.replica.replica_of(&load.master);
    load.replica.assert_same_data_as(&load.master);
    assert_eq!(load.replica.number("dq", "dq_queues"), 0);
}

/// The server loads this data beside the old one, too, but serves neither meanwhile.
#[test]
fn data_of_another_history_take_their_place() {
    let (other, load) = (builder().start(), Load::begun());
    let mut client = other.raw();
    for number in 0..QUEUES {
        client.run(&format!("DQ.ADD other{number} a x DELAY 600000"));
    }
    load.replica
        .raw()
        .says("CONFIG SET key-load-delay 0", "+OK");
    load.replica.wait_for_link();
    load.replica.replica_of(&other);
    load.replica.assert_same_data_as(&other);
    assert_eq!(load.replica.number("dq", "dq_queues"), QUEUES);
    client.run("DQ.ADD new9 now x DELAY 600000");
    load.replica.wait_for_offset_of(&other);
    assert_serves_in_its_place(&load.replica, "new9", "now");
}

/// After promotion its timer knows the queues: it makes the job due and delivers it to a waiting client.
#[track_caller]
fn assert_serves_in_its_place(replica: &Server, queue: &str, id: &str) {
    replica.promote();
    let mut client = replica.raw();
    let mut waiting = replica.waiting(&format!("DQ.BPOP {queue} 0"));
    client.run(&format!("DQ.RESCHEDULE {queue} DELAY 300 {id}"));
    assert_eq!(waiting.delivery().id, id);
}
