//! Why nothing is delivered, or not this job: what DQ.EXPLAIN says, in words.

use super::{escape, units};

/// The server counts no more jobs before another one.
const BEFORE_MAX: u64 = 1000;

/// One thing that holds: as the server names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    pub code: String,
    pub number: u64,
    pub until_ms: Option<i64>,
}

/// All that holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Why {
    pub reasons: Vec<Reason>,
    pub is_of_job: bool,
    pub groupmax: u64,
    pub grouprate: (u64, u64),
    pub groupfifo: bool,
    pub first_lease_ms: Option<i64>,
    /// Groups at GROUPMAX, if they were counted.
    pub full_groups: Option<usize>,
}

impl Why {
    /// All of it in one line.
    pub fn line(&self, now_ms: i64) -> String {
        let words = self.reasons.iter().map(|reason| match self.is_of_job {
            true => of_job(reason, now_ms),
            false => self.of_queue(reason, now_ms),
        });
        match (self.reasons.is_empty(), self.is_of_job) {
            (true, true) => "a client waits, and gets it at once".to_owned(),
            (true, false) => "clients wait, and are served at once".to_owned(),
            (false, _) => words.collect::<Vec<_>>().join("; "),
        }
    }

    fn of_queue(&self, reason: &Reason, now_ms: i64) -> String {
        let number = reason.number;
        let first = |what: &str| match (reason.until_ms, number) {
            (None, _) => String::new(),
            (Some(at), 1) => format!(", {} {what} {}", "it", until(at, now_ms)),
            (Some(at), _) => format!(", the first {what} {}", until(at, now_ms)),
        };
        match reason.code.as_str() {
            "delayed" => format!("{} delayed{}", are(number), first("is due")),
            "blocked" => format!("{} blocked, after others", are(number)),
            "reserved" => {
                let lease = reason.until_ms.or(self.first_lease_ms);
                format!("{} reserved{}", are(number), next_lease(lease, now_ms))
            }
            "empty" => "no job is to be delivered".to_owned(),
            "groups" => {
                let opens = reason.until_ms.map(|at| until(at, now_ms));
                let opens = opens.map_or(String::new(), |at| format!("; the next can go {at}"));
                let lease = next_lease(self.first_lease_ms, now_ms).replacen(',', ";", 1);
                let held = self.held_by_groups(number);
                format!("{} ready; {held}{opens}{lease}", are(number))
            }
            _ => of_either(reason, now_ms),
        }
    }

    /// What keeps the groups of these ready jobs.
    fn held_by_groups(&self, jobs: u64) -> String {
        let (groupmax, (most, ms), groupfifo) = (self.groupmax, self.grouprate, self.groupfifo);
        let their = if jobs == 1 { "its" } else { "their" };
        if groupmax > 0 && most == 0 && !groupfifo {
            return match self.full_groups {
                Some(1) => format!("{their} group is at GROUPMAX {groupmax}"),
                Some(count) if count > 1 => {
                    format!("{their} {count} groups are at GROUPMAX {groupmax}")
                }
                _ if jobs == 1 => format!("its group is at GROUPMAX {groupmax}"),
                _ => format!("their groups are at GROUPMAX {groupmax}"),
            };
        }
        let limits = [
            (groupmax > 0).then(|| format!("GROUPMAX {groupmax}")),
            (most > 0)
                .then(|| format!("GROUPRATE {most} in {}", units::spaced(&units::millis(ms)))),
            groupfifo.then(|| "GROUPFIFO".to_owned()),
        ];
        let limits: Vec<String> = limits.into_iter().flatten().collect();
        let by = match limits.is_empty() {
            true => String::new(),
            false => format!(" by {}", limits.join(", ")),
        };
        match jobs {
            1 => format!("its group is held{by}"),
            _ => format!("their groups are held{by}"),
        }
    }
}

fn of_job(reason: &Reason, now_ms: i64) -> String {
    let at = reason.until_ms.map(|at| until(at, now_ms));
    let with = |words: &str| match &at {
        Some(at) => format!(", {words} {at}"),
        None => String::new(),
    };
    let number = reason.number;
    match reason.code.as_str() {
        "done" => "it is done".to_owned(),
        "dead" => "it is dead, until it is kicked".to_owned(),
        "reserved" => format!("a worker has it{}", with("its lease ends")),
        "blocked" if number == 1 => "it waits for one other job, or for a group".to_owned(),
        "blocked" => format!("it waits for {} other jobs", units::full(number)),
        "signal" => format!("it waits for a signal{}", with("and goes on without it")),
        "delayed" => format!("it is due {}", at.unwrap_or_default()),
        "group-paused" => format!("its group is paused{}", paused(reason, now_ms)),
        "group-max" => format!("its group has {} reserved, as many as it may", jobs(number)),
        "group-rate" => format!("its group's rate is used up{}", with("it fits")),
        "group-fifo" => "an earlier job of its group has not ended".to_owned(),
        "behind" if number >= BEFORE_MAX => {
            format!(
                "{} ready jobs or more come before it",
                units::full(BEFORE_MAX)
            )
        }
        "behind" if number == 1 => "1 ready job comes before it".to_owned(),
        "behind" => format!("{} ready jobs come before it", units::full(number)),
        "idle" => "it could be delivered, and no client asks for it".to_owned(),
        _ => of_either(reason, now_ms),
    }
}

/// What is said of a queue and of its ready jobs.
fn of_either(reason: &Reason, now_ms: i64) -> String {
    let number = reason.number;
    match reason.code.as_str() {
        "paused" => format!("the queue is paused{}", paused(reason, now_ms)),
        "maxreserved" => format!("{} reserved, as many as MAXRESERVED allows", are(number)),
        "rate" => {
            let at = reason.until_ms.map(|at| until(at, now_ms));
            let at = at.map_or(String::new(), |at| format!(", the next job fits {at}"));
            format!("RATE is used up{at}")
        }
        "fill" => {
            let at = reason.until_ms.map(|at| until(at, now_ms));
            let at = at.map_or(String::new(), |at| {
                format!(", and the first takes what is there {at}")
            });
            match number {
                1 => format!("1 client waits for a full batch{at}"),
                _ => format!("{} clients wait for a full batch{at}", units::full(number)),
            }
        }
        "idle" => format!("{} ready, and no client asks for any", are(number)),
        // Of a newer server.
        code => {
            let at = reason.until_ms.map(|at| until(at, now_ms));
            let at = at.map_or(String::new(), |at| format!(" until {at}"));
            let number = (number > 0).then(|| format!(" {}", units::full(number)));
            format!(
                "{}{}{at}",
                escape::line(code.as_bytes()),
                number.unwrap_or_default()
            )
        }
    }
}

fn paused(reason: &Reason, now_ms: i64) -> String {
    match reason.until_ms {
        Some(at) => format!(", it goes on {}", until(at, now_ms)),
        None => " until it is resumed".to_owned(),
    }
}

fn next_lease(at: Option<i64>, now_ms: i64) -> String {
    at.map_or(String::new(), |at| {
        format!(", the next lease ends {}", until(at, now_ms))
    })
}

fn until(at_ms: i64, now_ms: i64) -> String {
    match at_ms.saturating_sub(now_ms) {
        past if past <= 0 => "now".to_owned(),
        left => format!("in {}", units::spaced(&units::millis(left as u64))),
    }
}

fn jobs(count: u64) -> String {
    match count {
        1 => "1 job".to_owned(),
        many => format!("{} jobs", units::full(many)),
    }
}

fn are(count: u64) -> String {
    format!("{} {}", jobs(count), if count == 1 { "is" } else { "are" })
}
