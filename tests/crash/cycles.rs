//! SIGKILL at random moments, again and again, under every way of keeping data.
//!
//! What a killed process has passed to the kernel remains, whether it was written to the disk or not. So each setting
//! promises this here:
//!
//! | setting | an answered command is there, if |
//! |---|---|
//! | `appendfsync always` | always |
//! | `appendfsync everysec` | it was answered before a moment at which the AOF's buffer was empty: the server writes before it answers, except while the disk is busy with an fsync, then up to two seconds later |
//! | RDB | it was answered before the begin of a BGSAVE that has put its file in place |
//! | AOF while it is rewritten | always, with `appendfsync always` |

use std::time::Duration;

use crate::actor::set_bounds;
use crate::clock::Clock;
use crate::cmd;
use crate::history::{check, End, Kept, Rule, Tally};
use crate::report::{seeds, Report};
use crate::rng::Rng;
use crate::support::audit::{assert_faultless, trace};
use crate::support::{poll, wait_until, Builder, Client, Server, PATIENCE};
use crate::workload::{builder, Workload};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    Always,
    EverySecond,
    Rdb,
    Rewrite { preamble: bool },
}

impl Setting {
    pub const ALL: [Setting; 5] = [
        Setting::Always,
        Setting::EverySecond,
        Setting::Rdb,
        Setting::Rewrite { preamble: true },
        Setting::Rewrite { preamble: false },
    ];

    /// The name of the test that runs it.
    pub fn test(self) -> &'static str {
        match self {
            Setting::Always => "killed_with_appendfsync_always",
            Setting::EverySecond => "killed_with_appendfsync_everysec",
            Setting::Rdb => "killed_with_rdb_only",
            Setting::Rewrite { preamble: true } => "killed_while_rewriting_with_preamble",
            Setting::Rewrite { preamble: false } => "killed_while_rewriting_without_preamble",
        }
    }

    fn builder(self) -> Builder {
        // Saving is slowed down, so that kills happen in the middle of it.
        let slow = |builder: Builder| builder.config("rdb-key-save-delay", 2000);
        match self {
            Setting::Always => builder().aof(),
            Setting::EverySecond => builder().aof().config("appendfsync", "everysec"),
            Setting::Rdb => slow(builder()),
            Setting::Rewrite { preamble } => {
                let preamble = if preamble { "yes" } else { "no" };
                slow(builder().aof()).config("aof-use-rdb-preamble", preamble)
            }
        }
    }
}

/// `cycles` lives of a server, each ended by SIGKILL, and a last one in which everything is checked.
#[track_caller]
pub fn run(setting: Setting, seed: u64, cycles: u64) -> Tally {
    let (server, workload, killed_saving) = kill(setting, seed, cycles);
    if matches!(setting, Setting::Always | Setting::EverySecond) {
        let file = server.folder().join("appendonlydir");
        for queue in ["plain", "shared"] {
            trace(&file, queue, setting.test());
        }
    }
    let mut tally = workload.judge(&server);
    server.assert_no_crash();
    tally.killed_saving += killed_saving;
    tally
}

/// Also returns how many servers were killed while they saved.
#[track_caller]
pub fn kill(setting: Setting, seed: u64, cycles: u64) -> (Server, Workload, u64) {
    let mut rng = Rng::new(seed ^ 0x006b_696c_6c65_640a);
    let mut workload = Workload::new(setting.test(), seed);
    let mut server = setting.builder().start();
    set_bounds(&mut server.connect());
    keep(setting, &mut server.connect());
    for number in 0..30 {
        cmd!(server.connect(), "SET", format!("ballast{number}"), "x");
    }
    let mut killed_saving = 0;
    for _ in 0..cycles {
        let (life_ms, more_ms) = (rng.within(30, 250), rng.below(200));
        let clock = workload.clock;
        let saved_before = saved(&server);
        let (mut kept, saves, saving) = workload.play(&mut server, |server| {
            let mut client = server.connect();
            let life = Duration::from_millis(life_ms);
            let outcome = match setting {
                Setting::Always => {
                    poll(life, || None::<()>);
                    (Kept::All, Vec::new(), false)
                }
                Setting::EverySecond => {
                    let kept = last_empty_buffer(&mut client, clock, life);
                    (Kept::Before(kept), Vec::new(), false)
                }
                Setting::Rdb => {
                    let (saves, saving) = save(&mut client, clock, life);
                    (Kept::Before(0), saves, saving)
                }
                Setting::Rewrite { .. } => {
                    poll(life, || None::<()>);
                    // A rewrite takes about 80 ms; kills near its end matter, too.
                    let saving = rewrite(&mut client, Duration::from_millis(more_ms));
                    (Kept::All, Vec::new(), saving)
                }
            };
            server.kill();
            outcome
        });
        server.wait_for_orphan();
        if setting == Setting::Rdb {
            let ended = saved(&server) - saved_before;
            let last = saves.iter().take(ended).next_back();
            kept = Kept::Before(last.copied().unwrap_or(0));
        }
        killed_saving += u64::from(saving);
        workload.ends(kept, End::Crash);
        // A file that was cut in a transaction may continue within it: see `a_cut_transaction_is_healed_by_a_rewrite`.
        if setting != Setting::Rdb && !server.log().contains("Truncating the AOF") {
            assert_faultless(&server.folder().join("appendonlydir"));
        }
        server.restart();
    }
    (server, workload, killed_saving)
}

/// Makes sure that what was written survives any crash from now on.
fn keep(setting: Setting, client: &mut Client) {
    if setting == Setting::Rdb {
        cmd!(client, "SAVE");
    } else {
        wait_until("the AOF is written", PATIENCE, || {
            persistence(client, "aof_buffer_length") == "0"
        });
    }
}

/// How many saves have put their file in place, of this server and of earlier ones.
fn saved(server: &Server) -> usize {
    server.log().matches("DB saved on disk").count()
}

/// The last moment at which the whole AOF was known to be passed to the kernel.
fn last_empty_buffer(client: &mut Client, clock: Clock, time: Duration) -> u64 {
    let mut kept = 0;
    poll(time, || {
        let sent = clock.stamp().at_us;
        if persistence(client, "aof_buffer_length") == "0" {
            kept = sent;
        }
        None::<()>
    });
    kept
}

/// Saves, one after the other: when each save began, and whether the last one is still running.
fn save(client: &mut Client, clock: Clock, time: Duration) -> (Vec<u64>, bool) {
    let mut begun = Vec::new();
    poll(time, || {
        if persistence(client, "rdb_bgsave_in_progress") == "0" {
            begun.push(clock.stamp().at_us);
            cmd!(client, "BGSAVE");
        }
        None::<()>
    });
    let saving = persistence(client, "rdb_bgsave_in_progress") == "1";
    (begun, saving)
}

/// Begins to rewrite the AOF; returns whether that is still running after `time`.
fn rewrite(client: &mut Client, time: Duration) -> bool {
    cmd!(client, "BGREWRITEAOF");
    poll(time, || None::<()>);
    persistence(client, "aof_rewrite_in_progress") == "1"
}

#[track_caller]
fn persistence(client: &mut Client, field: &str) -> String {
    let value = client.info("persistence", field);
    value.unwrap_or_else(|| panic!("INFO persistence has no {field}"))
}

fn gate(setting: Setting, runs: u64, cycles: u64) {
    let mut report = Report::default();
    for seed in seeds(runs) {
        report.add(cycles, &run(setting, seed, cycles));
    }
    println!("{setting:?}: {report}");
}

#[test]
fn killed_with_appendfsync_always() {
    gate(Setting::Always, 2, 6);
}

#[test]
fn killed_with_appendfsync_everysec() {
    gate(Setting::EverySecond, 2, 6);
}

#[test]
fn killed_with_rdb_only() {
    gate(Setting::Rdb, 2, 6);
}

#[test]
fn killed_while_rewriting_with_preamble() {
    gate(Setting::Rewrite { preamble: true }, 2, 6);
}

#[test]
fn killed_while_rewriting_without_preamble() {
    gate(Setting::Rewrite { preamble: false }, 2, 6);
}

/// A history that promises more than the server keeps is noticed: not in each run, as a server may die right after a
/// save.
#[test]
fn canary_rdb_does_not_keep_everything() {
    let mut unseen = vec![Rule::Lost, Rule::Finished, Rule::TwoLeases];
    for seed in 1..=40 {
        let (server, workload, _) = kill(Setting::Rdb, seed, 4);
        let mut history = workload.drained(&server);
        check(&history).assert_clean(&history);
        for life in &mut history.lives {
            life.kept = Kept::All;
        }
        let verdict = check(&history);
        unseen.retain(|rule| verdict.faults.iter().all(|it| it.rule != *rule));
        if unseen.is_empty() {
            return;
        }
    }
    panic!("never seen: {unseen:?}");
}
