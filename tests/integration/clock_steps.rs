//! A clock that is set forward and back while the server runs: that of the test's servers alone.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::scene::{let_pass, Delivery, Lines, Scene};
use crate::support::place::{new_folder, preloaded};
use crate::support::{wait_until, Builder, Raw, Server, PATIENCE};

const HOUR: i64 = 3_600_000;

/// The clock of the servers that it builds: see clock_steps.c.
struct Clock {
    folder: PathBuf,
    library: PathBuf,
    ahead_ms: i64,
}

impl Clock {
    fn new() -> Clock {
        let folder = new_folder();
        let library = preloaded(include_str!("clock_steps.c"), &folder);
        let clock = Clock {
            folder,
            library,
            ahead_ms: 0,
        };
        fs::write(clock.file(), [[0; 8], (-1_i64).to_ne_bytes()].concat())
            .expect("the folder takes a file");
        clock
    }

    fn file(&self) -> PathBuf {
        self.folder.join("clock")
    }

    fn builder(&self) -> Builder {
        let builder = Server::builder().env("LD_PRELOAD", &self.library);
        builder.env("DQ_CLOCK", self.file())
    }

    fn write(&self, value: i64, at: u64) {
        let file = File::options().write(true).open(self.file());
        let written = file.and_then(|file| file.write_all_at(&value.to_ne_bytes(), at));
        written.expect("a file of our own");
    }

    /// Sets it so many ms on, or back.
    fn step(&mut self, ms: i64) {
        self.ahead_ms += ms;
        self.write(self.ahead_ms, 0);
    }

    /// Sets it back by an hour once the module has read it so many times.
    fn step_back_after(&self, reads: i64) {
        self.write(reads, 8);
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The server reads its clock once for all timers that it fires. A timer that ours creates after the clock was set back
/// would be due by that reading, again and again, for an hour.
#[test]
fn a_step_back_within_the_timers_work() {
    let clock = Clock::new();
    steps_back_amid_a_pause(clock.builder().start(), &clock);
    // On a kernel that does not report that the clock was set.
    steps_back_amid_a_pause(clock.builder().env("DQ_UNTOLD", "").start(), &clock);
}

fn steps_back_amid_a_pause(server: Server, clock: &Clock) {
    let mut client = server.raw();
    let began = time_ms(&mut client);
    let mut waiting = server.waiting("DQ.BPOP q 0");
    let fires = || server.number("dq", "dq_timer_fires_total");
    client.says("MULTI", "+OK");
    client.says("DQ.ADD q first x DELAY 1", "+QUEUED");
    client.says("CLIENT PAUSE 600000 WRITE", "+QUEUED");
    client.run("EXEC");
    for step in 0..30 {
        let before = fires();
        wait_until("the timer looks again and again", PATIENCE, || {
            fires() > before + 2
        });
        // At each place in turn at which the timer's work reads the clock, and before it.
        clock.step_back_after(step % 6);
        wait_until("the clock is set", PATIENCE, || {
            time_ms(&mut client) < began - (step * HOUR) as u64
        });
    }
    client.says("CLIENT UNPAUSE", "+OK");
    client.run("DQ.ADD q second x DELAY 20");
    assert_eq!(waiting.delivery().id, "second");
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

#[test]
fn dues_and_leases_that_a_jump_brings() {
    let mut clock = Clock::new();
    let server = clock.builder().start();
    let mut client = server.raw();
    client.run("DQ.ADD q late x DELAY 3600000");
    let due: u64 = client.words("DQ.GET q late")[9].parse().expect("a due");
    let mut waiting = server.waiting("DQ.BPOP q 0 TTR 3600000");
    clock.step(HOUR - 60_000);
    client.says("DQ.POP q", "nil*");
    assert_eq!(server.blocked(), 1, "its due has not come");
    clock.step(120_000);
    let first = waiting.delivery();
    assert!(first.deadline >= due + HOUR as u64, "{first:?}, due {due}");
    assert!(first.deadline <= time_ms(&mut client) + 1 + HOUR as u64);
    // And the end of its lease.
    waiting.begin("DQ.BPOP q 0 TTR 1000");
    server.wait_for_blocked(1);
    clock.step(HOUR);
    let second = waiting.delivery();
    assert_eq!((second.id.as_str(), second.attempts), ("late", 2));
    assert!(token(&second) > token(&first));
    assert!(time_ms(&mut client) >= first.deadline);
}

#[test]
fn nothing_is_early_after_a_step_back() {
    let mut clock = Clock::new();
    let server = clock.builder().start();
    let mut client = server.raw();
    client.run("DQ.ADD q ready x");
    client.run("DQ.ADD leased a x");
    client.run("DQ.POP leased TTR 60000");
    clock.step(-HOUR);
    for _ in 0..2 {
        client.says("DQ.POP q", "nil*");
        client.says("DQ.LEN q DELAYED", "1");
        client.says("DQ.POP leased", "nil*");
        client.says("DQ.LEN leased RESERVED", "1");
    }
    let mut waiting = ["q", "leased"].map(|key| server.waiting(&format!("DQ.BPOP {key} 0")));
    clock.step(HOUR);
    assert_eq!(waiting[0].delivery().id, "ready");
    assert_eq!(server.blocked(), 1, "the other lease goes on");
    clock.step(60_000);
    assert_eq!(waiting[1].delivery().attempts, 2);
}

#[test]
fn the_timer_goes_on_after_a_step_back() {
    let mut clock = Clock::new();
    let server = clock.builder().start();
    let mut client = server.raw();
    client.run("DQ.ADD q far x DELAY 60000");
    let mut waiting = server.waiting("DQ.BPOP q 0 TTR 100");
    clock.step(-HOUR);
    client.run("DQ.ADD q near x DELAY 100 ATTEMPTS 1");
    let due: u64 = client.words("DQ.GET q near")[9].parse().expect("a due");
    assert_eq!(waiting.delivery().id, "near");
    assert!(time_ms(&mut client) >= due);
    // Its lease expires without any command.
    wait_until("the lease ends", PATIENCE, || {
        server.number("dq", "dq_died_total") == 1
    });
    assert_sleeps(&server, &clock);
}

/// While clients are paused the timer looks again every few milliseconds, with a timer of the server's, which uses this
/// clock, too.
#[test]
fn a_step_back_while_the_timer_waits_for_a_pause_to_end() {
    let mut clock = Clock::new();
    let server = clock.builder().start();
    let mut client = server.raw();
    client.run("DQ.ADD q first x DELAY 60000");
    let mut waiting = server.waiting("DQ.BPOP q 0");
    client.says("CLIENT PAUSE 600000 WRITE", "+OK");
    clock.step(60_000);
    let fires = server.number("dq", "dq_timer_fires_total");
    wait_until("the timer looks again and again", PATIENCE, || {
        server.number("dq", "dq_timer_fires_total") > fires + 5
    });
    clock.step(-HOUR);
    client.says("CLIENT UNPAUSE", "+OK");
    client.run("DQ.ADD q second x DELAY 20");
    assert_eq!(waiting.delivery().id, "second");
    assert_sleeps(&server, &clock);
}

/// Once everything is done it uses no more CPU than an idle server, and its timer does not fire: a timer that spins
/// never stops.
#[track_caller]
fn assert_sleeps(server: &Server, clock: &Clock) {
    let interval = Duration::from_millis(500);
    let idle = clock.builder().start();
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

#[test]
fn ids_and_tokens_grow() {
    let mut clock = Clock::new();
    let server = clock.builder().start();
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
        clock.step(step);
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
