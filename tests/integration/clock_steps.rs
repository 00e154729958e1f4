//! A clock that is set forward and back while the server runs: in a virtual machine, where nothing else uses it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::scene::{let_pass, Delivery, Lines, Scene};
use crate::support::{one_process_at_a_time, wait_until, Builder, Raw, Server, PATIENCE};
use crate::virtual_machine::{self, step_clock};

const HOUR: i64 = 3_600_000;

#[test]
fn the_clock_is_set() {
    if virtual_machine::is_here() {
        let scenes: [(&str, fn()); 6] = [
            ("a jump forward", dues_and_leases_that_a_jump_brings),
            ("a step back", nothing_is_early_after_a_step_back),
            ("after a step back", the_timer_goes_on_after_a_step_back),
            (
                "amid a pause",
                a_step_back_while_the_timer_waits_for_a_pause_to_end,
            ),
            ("ids and tokens", ids_and_tokens_grow),
            ("a restart", tokens_grow_over_a_restart),
        ];
        for (name, scene) in scenes {
            println!("{name}");
            scene();
        }
    } else if let Some(Err(log)) = virtual_machine::run("clock_steps::the_clock_is_set") {
        panic!("in the guest:\n{log}");
    }
}

/// The server reads its clock once for all timers that it fires. A timer that ours creates after the clock was set back
/// would be due by that reading, again and again, for an hour.
#[test]
fn a_step_back_within_the_timers_work() {
    let own = Server::start(); // whose folder goes with it
    let [source, library, file] = ["clock.c", "clock.so", "back"].map(|it| own.folder().join(it));
    fs::write(&source, include_str!("clock_steps.c")).expect("the folder takes a file");
    let compiled = {
        let _lock = one_process_at_a_time();
        Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&library, &source])
            .status()
    };
    assert!(
        compiled.is_ok_and(|it| it.success()),
        "by what cargo links with"
    );
    let builder = || {
        let builder = Server::builder().env("LD_PRELOAD", &library);
        builder.env("DQ_SET_BACK", &file)
    };
    steps_back_amid_a_pause(builder().start(), &file);
    // On a kernel that does not report that the clock was set.
    steps_back_amid_a_pause(builder().env("DQ_UNTOLD", "").start(), &file);
}

/// Writing `file` makes the clock go back after as many reads as the file says.
fn steps_back_amid_a_pause(server: Server, file: &Path) {
    let mut client = server.raw();
    let began = time_ms(&mut client);
    let mut waiting = server.waiting("DQ.BPOP q 0");
    let fires = || server.number("dq", "dq_timer_fires_total");
    client.says("MULTI", "+OK");
    client.says("DQ.ADD q first x DELAY 1", "+QUEUED");
    client.says("CLIENT PAUSE 600000 WRITE", "+QUEUED");
    client.run("EXEC");
    for step in 0..30_u64 {
        let before = fires();
        wait_until("the timer looks again and again", PATIENCE, || {
            fires() > before + 2
        });
        // At each place in turn at which the timer's work reads the clock, and before it.
        let written = file.with_extension("new");
        fs::write(&written, (step % 6).to_string()).expect("the folder takes a file");
        fs::rename(&written, file).expect("the folder takes a file");
        wait_until("the clock is set", PATIENCE, || {
            time_ms(&mut client) < began - step * HOUR as u64
        });
    }
    client.says("CLIENT UNPAUSE", "+OK");
    client.run("DQ.ADD q second x DELAY 20");
    assert_eq!(waiting.delivery().id, "second");
}

/// There is no network in the guest.
fn builder() -> Builder {
    Server::builder().unix_socket()
}

/// The server's clock as clients see it. Valkey 9.1 reports the old time for another millisecond.
#[track_caller]
fn time_ms(client: &mut Raw) -> u64 {
    let_pass(Duration::from_millis(2));
    let words = client.words("TIME");
    let number = |at: usize| words[at].parse::<u64>().expect("digits");
    number(0) * 1000 + number(1) / 1000
}

fn token(delivery: &Delivery) -> u64 {
    delivery.token.parse().expect("digits")
}

fn dues_and_leases_that_a_jump_brings() {
    let server = builder().start();
    let mut client = server.raw();
    client.run("DQ.ADD q late x DELAY 3600000");
    let due: u64 = client.words("DQ.GET q late")[9].parse().expect("a due");
    let mut waiting = server.waiting("DQ.BPOP q 0 TTR 3600000");
    step_clock(HOUR - 60_000);
    client.says("DQ.POP q", "nil*");
    assert_eq!(server.blocked(), 1, "its due has not come");
    step_clock(120_000);
    let first = waiting.delivery();
    assert!(first.deadline >= due + HOUR as u64, "{first:?}, due {due}");
    assert!(first.deadline <= time_ms(&mut client) + 1 + HOUR as u64);
    // And the end of its lease.
    waiting.begin("DQ.BPOP q 0 TTR 1000");
    server.wait_for_blocked(1);
    step_clock(HOUR);
    let second = waiting.delivery();
    assert_eq!((second.id.as_str(), second.attempts), ("late", 2));
    assert!(token(&second) > token(&first));
    assert!(time_ms(&mut client) >= first.deadline);
}

fn nothing_is_early_after_a_step_back() {
    let server = builder().start();
    let mut client = server.raw();
    client.run("DQ.ADD q ready x");
    client.run("DQ.ADD leased a x");
    client.run("DQ.POP leased TTR 60000");
    step_clock(-HOUR);
    for _ in 0..2 {
        client.says("DQ.POP q", "nil*");
        client.says("DQ.LEN q DELAYED", "1");
        client.says("DQ.POP leased", "nil*");
        client.says("DQ.LEN leased RESERVED", "1");
    }
    let mut waiting = ["q", "leased"].map(|key| server.waiting(&format!("DQ.BPOP {key} 0")));
    step_clock(HOUR);
    assert_eq!(waiting[0].delivery().id, "ready");
    assert_eq!(server.blocked(), 1, "the other lease goes on");
    step_clock(60_000);
    assert_eq!(waiting[1].delivery().attempts, 2);
}

fn the_timer_goes_on_after_a_step_back() {
    let server = builder().start();
    let mut client = server.raw();
    client.run("DQ.ADD q far x DELAY 60000");
    let mut waiting = server.waiting("DQ.BPOP q 0 TTR 100");
    step_clock(-HOUR);
    client.run("DQ.ADD q near x DELAY 100 ATTEMPTS 1");
    let due: u64 = client.words("DQ.GET q near")[9].parse().expect("a due");
    assert_eq!(waiting.delivery().id, "near");
    assert!(time_ms(&mut client) >= due);
    // Its lease expires without any command.
    wait_until("the lease ends", PATIENCE, || {
        server.number("dq", "dq_died_total") == 1
    });
    assert_sleeps(&server);
}

/// While clients are paused the timer looks again every few milliseconds, with a timer of the server's, which uses this
/// clock, too.
fn a_step_back_while_the_timer_waits_for_a_pause_to_end() {
    let server = builder().start();
    let mut client = server.raw();
    client.run("DQ.ADD q first x DELAY 60000");
    let mut waiting = server.waiting("DQ.BPOP q 0");
    client.says("CLIENT PAUSE 600000 WRITE", "+OK");
    step_clock(60_000);
    let fires = server.number("dq", "dq_timer_fires_total");
    wait_until("the timer looks again and again", PATIENCE, || {
        server.number("dq", "dq_timer_fires_total") > fires + 5
    });
    step_clock(-HOUR);
    client.says("CLIENT UNPAUSE", "+OK");
    client.run("DQ.ADD q second x DELAY 20");
    assert_eq!(waiting.delivery().id, "second");
    assert_sleeps(&server);
}

/// Once everything is done it uses no more CPU than an idle server, and its timer does not fire: a timer that spins
/// never stops. A guest counts the time that its host took from it as used.
#[track_caller]
fn assert_sleeps(server: &Server) {
    let interval = Duration::from_millis(500);
    let idle = builder().start();
    let state = |server: &Server| (server.number("dq", "dq_timer_fires_total"), server.cpu());
    wait_until("the server sleeps", PATIENCE, || {
        let before = [server, &idle].map(state);
        let_pass(interval);
        let after = [server, &idle].map(state);
        let used = |at: usize| after[at].1 - before[at].1;
        let fired = after[0].0 - before[0].0;
        used(0) < used(1) + interval.as_secs_f64() / 3.0 && fired == 0
    });
}

fn ids_and_tokens_grow() {
    let server = builder().start();
    let mut client = server.raw();
    let mut last = ((0, 0), 0);
    for step in [
        0,
        -HOUR,
        -24 * HOUR,
        25 * HOUR,
        -1000,
        -1000,
        2000,
        HOUR,
        -HOUR,
    ] {
        step_clock(step);
        for _ in 0..2 {
            client.run("DQ.ADD q * x");
            let before = time_ms(&mut client);
            client.begin("DQ.POP q TTR 5000");
            let job = client.delivery();
            let lease = before + 5000..=time_ms(&mut client) + 5001;
            assert!(lease.contains(&job.deadline), "{job:?}, not in {lease:?}");
            let (ms, seq) = job.id.split_once('-').expect("<unix-ms>-<seq>");
            let id: (u64, u64) = (ms.parse().expect("digits"), seq.parse().expect("digits"));
            let now = (id, token(&job));
            assert!(
                now.0 > last.0 && now.1 > last.1,
                "{now:?} after {last:?}, step {step}"
            );
            last = now;
            client.says(&format!("DQ.ACK q {}", job.id), "1");
        }
    }
}

fn tokens_grow_over_a_restart() {
    let mut server = builder().aof().start();
    let mut client = server.raw();
    step_clock(HOUR);
    client.run("DQ.ADD q a x AT 0");
    client.begin("DQ.POP q");
    let before = client.delivery();
    client.says(
        &format!("DQ.NACK q a TOKEN {} SILENT", before.token),
        "'ready'",
    );
    server.stop();
    step_clock(-2 * HOUR);
    server.restart();
    let mut client = server.raw();
    client.begin("DQ.POP q");
    let after = client.delivery();
    assert!(token(&after) > token(&before), "{after:?} after {before:?}");
}
