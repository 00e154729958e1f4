//! How far a pass has come, its rate, and the time left: a bar on a terminal, plain lines
//! elsewhere.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

use crate::output::aside;

pub struct Progress {
    bar: ProgressBar,
    what: &'static str,
    /// When the next plain line is due. None on a terminal.
    next_line: Option<Instant>,
    start: Instant,
}

const BETWEEN_LINES: Duration = Duration::from_secs(5);

impl Progress {
    pub fn new(what: &'static str, total: u64) -> Progress {
        let start = Instant::now();
        let terminal = std::io::stderr().is_terminal();
        let bar = match terminal {
            true => ProgressBar::new(total),
            false => ProgressBar::hidden(),
        };
        bar.set_length(total);
        if let Ok(style) = ProgressStyle::with_template(
            "{msg:9} {wide_bar} {human_pos}/{human_len} {rate} a second, {eta} left",
        ) {
            bar.set_style(
                style.with_key("rate", |state: &ProgressState, out: &mut dyn Write| {
                    let _ = write!(out, "{:.0}", state.per_sec());
                }),
            );
        }
        bar.set_message(what);
        Progress {
            bar,
            what,
            next_line: (!terminal).then_some(start + BETWEEN_LINES),
            start,
        }
    }

    pub fn advance(&mut self, items: u64) {
        self.bar.inc(items);
        let now = Instant::now();
        if self.next_line.is_some_and(|due| now >= due) {
            self.next_line = Some(now + BETWEEN_LINES);
            self.line();
        }
    }

    fn line(&self) {
        let (done, total) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let rate = done as f64 / self.start.elapsed().as_secs_f64().max(1e-3);
        let left = Duration::from_secs_f64(total.saturating_sub(done) as f64 / rate.max(1e-3));
        let (what, left) = (self.what, HumanDuration(left));
        aside(format_args!(
            "{what}: {done} of {total}, {rate:.0} a second, {left} left"
        ));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        if self.next_line.is_some() {
            let seconds = self.start.elapsed().as_secs_f64();
            let (what, done) = (self.what, self.bar.position());
            aside(format_args!("{what}: {done} in {seconds:.1} s"));
        }
    }
}
