//! How much later than asked a wait ends on an idle server.

use super::host::Host;
use super::jobs::scattered;
use super::machine::{now_ns, sleep_until_ns};
use super::plan::Plan;
use super::report::{Goal, Part, Row};
use super::rounds::Samples;
use super::stats::percentile;
use super::wire::Connection;

struct Waits {
    plan: Plan,
    client: Connection,
    number: u64,
}

pub fn measure(plan: Plan) -> Part {
    let host = Host::start();
    let waits = &mut Waits {
        plan,
        client: host.connect(),
        number: 0,
    };
    let samples = Samples::take(
        waits,
        plan.slow_rounds,
        &[
            ("DQ.BPOP", |waits| waits.overshoot(b"DQ.BPOP")),
            ("BLPOP", |waits| waits.overshoot(b"BLPOP")),
        ],
    );
    let row = |what, goal, part: fn(&(f64, f64)) -> f64| {
        let pair = (
            &samples.map("DQ.BPOP", part)[..],
            &samples.map("BLPOP", part)[..],
        );
        Row::paired(what, "", "ms", goal, pair)
    };
    let bounded = samples.map("DQ.BPOP", |overshoot| overshoot.1);
    Part {
        rows: vec![
            Row::alone("BPOP timeout overshoot, idle, p99", "ms", Goal::Below(2.0, 1.0), &bounded),
            row("BPOP timeout overshoot against BLPOP's, p50", Goal::Told, |overshoot| overshoot.0),
        ],
        how: format!(
            "  One client, nothing to pop, timeouts of 5 to 25 ms, from any moment: reply read - command sent - timeout. {} of each a\n\
             \x20 round, percentiles within the round (with less than 100 the p99 is the worst), median of {} rounds.\n",
            plan.timeouts_a_round, plan.slow_rounds
        ),
        ..Part::default()
    }
}

impl Waits {
    /// p50 and p99, in ms.
    fn overshoot(&mut self, command: &[u8]) -> (f64, f64) {
        let waits = 0..self.plan.timeouts_a_round;
        let late: Vec<f64> = waits.map(|_| self.wait(command)).collect();
        (percentile(&late, 0.5), percentile(&late, 0.99))
    }

    fn wait(&mut self, command: &[u8]) -> f64 {
        self.number += 1;
        let random = scattered(self.number);
        sleep_until_ns(now_ns() + random % 1_000_000);
        let timeout_ms = 5 + (random >> 32) % 21;
        let timeout = format!("{}", timeout_ms as f64 / 1e3);
        let sent = now_ns();
        self.client.call(&[command, b"nothing", timeout.as_bytes()]);
        (now_ns() - sent) as f64 / 1e6 - timeout_ms as f64
    }
}
