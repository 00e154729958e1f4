//! Links and masters that fail in the middle of the traffic. What WAIT confirmed is not lost, whatever happens to the
//! master. FAILOVER loses nothing at all. A replica that has caught up has the same data.

use std::time::Duration;

use crate::actor::set_bounds;
use crate::clock::Clock;
use crate::history::{End, Kept, Tally};
use crate::report::{seeds, Report};
use crate::rng::Rng;
use crate::support::{poll, wait_until, Builder, Server, PATIENCE};
use crate::workload::{builder, Workload};
use crate::{cmd, try_cmd};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// SIGKILL of the master; the replica is promoted.
    Killed,
    /// The FAILOVER command moves the master's role.
    Asked,
    /// The link to the replica is cut, and writing is paused; the master stays.
    Links,
}

impl Way {
    pub const ALL: [Way; 3] = [Way::Killed, Way::Asked, Way::Links];

    /// The name of the test that runs it.
    fn test(self) -> &'static str {
        match self {
            Way::Killed => "the_master_is_killed",
            Way::Asked => "failover_by_command",
            Way::Links => "links_that_are_cut",
        }
    }
}

struct Pair {
    master: Server,
    replica: Server,
}

impl Pair {
    fn start(builder: Builder) -> Pair {
        let (master, replica) = (builder.clone().start(), builder.start());
        set_bounds(&mut master.connect());
        replica.replica_of(&master);
        Pair { master, replica }
    }

    fn swap(&mut self) {
        std::mem::swap(&mut self.master, &mut self.replica);
    }

    /// Asserts equal data, while nothing is written.
    #[track_caller]
    fn assert_equal(&self) {
        cmd!(self.master.connect(), "CLIENT", "PAUSE", 60_000, "WRITE");
        self.replica.assert_same_data_as(&self.master);
        cmd!(self.master.connect(), "CLIENT", "UNPAUSE");
    }
}

#[track_caller]
pub fn run(way: Way, seed: u64, cycles: u64) -> Tally {
    let mut rng = Rng::new(seed ^ 0x6f76_6572);
    let mut workload = Workload::new(way.test(), seed).waiting_for_replicas();
    let mut pair = Pair::start(builder().config("repl-backlog-size", "64mb"));
    for cycle in 0..cycles {
        match way {
            Way::Killed => kill_master(&mut pair, &mut workload, &mut rng),
            Way::Asked => ask_for_failover(&mut pair, &mut workload, &mut rng),
            Way::Links => cut_link(&mut pair, &mut workload, &mut rng, cycle % 2 == 1),
        }
        pair.assert_equal();
    }
    if way == Way::Links {
        let count = |field| pair.master.info("stats", field).parse::<u64>().unwrap_or(0);
        // The first full synchronization is the replica's start.
        assert!(count("sync_full") > cycles / 2);
        assert!(count("sync_partial_ok") >= cycles.div_ceil(2));
    }
    let tally = workload.judge(&pair.master);
    pair.assert_equal();
    pair.master.assert_no_crash();
    pair.replica.assert_no_crash();
    tally
}

fn kill_master(pair: &mut Pair, workload: &mut Workload, rng: &mut Rng) {
    let (clock, replica) = (workload.clock, &pair.replica);
    let moment = Duration::from_millis(rng.within(50, 400));
    let kept = workload.play(&mut pair.master, |master| {
        let kept = last_caught_up(master, replica, clock, moment);
        master.kill();
        kept
    });
    workload.ends(Kept::Before(kept), End::Failover);
    stays_as_it_is(replica);
    replica.promote();
    pair.swap();
    pair.replica.restart();
    pair.replica.replica_of(&pair.master);
}

/// The last moment at which the replica was known to have everything.
fn last_caught_up(master: &Server, replica: &Server, clock: Clock, moment: Duration) -> u64 {
    let (mut here, mut there) = (master.connect(), replica.connect());
    let mut kept = 0;
    poll(moment, || {
        let sent = clock.stamp().at_us;
        let offset = |text: Option<String>| text.and_then(|text| text.parse::<u64>().ok());
        let written = offset(here.info("replication", "master_repl_offset"));
        let applied = offset(there.info("replication", "slave_repl_offset"));
        if written.is_some() && applied >= written {
            kept = sent;
        }
        None::<()>
    });
    kept
}

/// Leases end and jobs become due meanwhile, and a replica without a master changes nothing.
#[track_caller]
fn stays_as_it_is(replica: &Server) {
    wait_until("the link is down", PATIENCE, || {
        replica.info("replication", "master_link_status") == "down"
    });
    let digest = replica.digest();
    poll(Duration::from_millis(60), || None::<()>);
    assert_eq!(replica.digest(), digest, "a replica changed by itself");
}

fn ask_for_failover(pair: &mut Pair, workload: &mut Workload, rng: &mut Rng) {
    let replica = &pair.replica;
    let moment = Duration::from_millis(rng.within(50, 300));
    workload.play(&mut pair.master, |master| {
        poll(moment, || None::<()>);
        let (mut client, port) = (master.connect(), replica.port());
        wait_until("they have changed places", PATIENCE, || {
            let is = |server: &Server, role: &str| server.info("replication", "role") == role;
            let state = client.info("replication", "master_failover_state");
            if is(master, "master") && state.as_deref() == Some("no-failover") {
                // Refused until the master knows, too, that the replica is connected.
                let _ = try_cmd!(client, "FAILOVER", "TO", "127.0.0.1", port, "TIMEOUT", 5000);
            }
            is(replica, "master") && is(master, "slave")
        });
    });
    workload.ends(Kept::All, End::Failover);
    pair.swap();
    pair.replica.wait_for_link();
}

fn cut_link(pair: &mut Pair, workload: &mut Workload, rng: &mut Rng, full: bool) {
    let replica = &pair.replica;
    let pause_ms = rng.within(1, 60);
    let moment = Duration::from_millis(rng.within(20, 150));
    workload.play(&mut pair.master, |master| {
        let mut client = master.connect();
        let field = if full { "sync_full" } else { "sync_partial_ok" };
        let before = client.info("stats", field);
        poll(moment, || None::<()>);
        cmd!(client, "CLIENT", "PAUSE", pause_ms, "WRITE");
        poll(moment, || None::<()>);
        if full {
            cmd!(client, "DEBUG", "CHANGE-REPL-ID");
        }
        cmd!(client, "CLIENT", "KILL", "TYPE", "replica");
        wait_until(format!("another one in {field}"), PATIENCE, || {
            client.info("stats", field) != before
        });
        replica.wait_for_link();
        poll(moment, || None::<()>);
    });
}

fn gate(way: Way, runs: u64, cycles: u64) {
    let mut report = Report::default();
    for seed in seeds(runs) {
        report.add(cycles, &run(way, seed, cycles));
    }
    println!("{way:?}: {report}");
}

#[test]
fn the_master_is_killed() {
    gate(Way::Killed, 1, 6);
}

#[test]
fn failover_by_command() {
    gate(Way::Asked, 1, 5);
}

#[test]
fn links_that_are_cut() {
    gate(Way::Links, 1, 4);
}
