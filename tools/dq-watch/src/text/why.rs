//! Why nothing is delivered, or not this job: what DQ.EXPLAIN says, in words.

use super::{escape, units};

/// The server counts no more jobs before another one.
const BEFORE_MAX: u64 = 1000;
const BUSY: &str = "all workers are busy";
const HAVE: &str = "clients have jobs, but";
const TAKEN: &str = "clients that do not wait";
const UNSEEN: &str = "is not seen on a replica";

/// One thing that holds: as the server names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    pub code: String,
    pub number: u64,
    pub until_ms: Option<i64>,
}

/// How deliveries of the last minutes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lapses {
    /// Their lease expired before a client said anything.
    pub lapsed: u64,
    pub ended: u64,
}

impl Lapses {
    /// Whether that is how it mostly goes, so that a lease says nothing of work. One alone may be a worker that has died.
    pub fn are_most(self) -> bool {
        self.lapsed > 1 && 2 * self.lapsed > self.ended
    }
}

/// What holds a queue, in a few words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    pub words: String,
    /// The instant at which the queue goes on.
    pub until_ms: Option<i64>,
    /// Nothing but that nobody asks at this moment.
    pub is_idle: bool,
}

/// All that holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Why {
    pub reasons: Vec<Reason>,
    pub is_of_job: bool,
    /// The group that the job waits for.
    pub awaited: Option<Vec<u8>>,
    /// Clients that are not asking at this instant have jobs.
    pub is_busy: bool,
    /// How many of the first of these jobs were delivered before, until the lease expired; 0 unless most were.
    pub taken_before: usize,
    /// How deliveries of the last minutes ended, if a lease expired.
    pub lapses: Option<Lapses>,
    /// Some were delivered jobs lately.
    pub is_taken: bool,
    /// A replica said it: who asks its master is not seen there.
    pub is_of_replica: bool,
    pub groupmax: u64,
    pub grouprate: (u64, u64),
    pub first_lease_ms: Option<i64>,
    /// What holds the first ready jobs back where groups do, and how many jobs were asked about.
    pub held: (Vec<Reason>, usize),
}

impl Why {
    /// All of it in one line.
    pub fn line(&self, now_ms: i64) -> String {
        let words = self.reasons.iter().map(|reason| match self.is_of_job {
            true => self.of_job(reason, now_ms),
            false => self.of_queue(reason, now_ms),
        });
        match (self.reasons.is_empty(), self.is_of_job) {
            (true, true) => "a client waits, and gets it at once".to_owned(),
            (true, false) => "clients wait, and are served at once".to_owned(),
            (false, _) => words.collect::<Vec<_>>().join("; "),
        }
    }

    /// What holds the queue, unless that is its pause: of several, one that time alone does not end.
    pub fn hold(&self) -> Option<Hold> {
        let hold = |reason: &Reason| {
            let words = match reason.code.as_str() {
                "maxreserved" => of_either(reason, 0),
                "groups" => self.held_by_groups(reason.number).0,
                "rate" => "RATE is used up".to_owned(),
                "fill" => "clients wait for a full batch".to_owned(),
                "idle" if self.is_busy && !self.is_of_replica => match self.is_unanswered() {
                    true => "clients have jobs whose leases expire without an ACK".to_owned(),
                    false => BUSY.to_owned(),
                },
                _ => return None,
            };
            Some(Hold {
                words,
                until_ms: reason.until_ms.filter(|_| reason.code == "rate"),
                is_idle: reason.code == "idle",
            })
        };
        let all = self.reasons.iter().filter_map(hold);
        all.min_by_key(|it| it.until_ms.is_some())
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
                let lease = next_lease(lease, now_ms, ", ");
                format!("{} reserved{lease}", are(number))
            }
            "empty" => "no job is to be delivered".to_owned(),
            "groups" => {
                let opens = reason.until_ms.map(|at| until(at, now_ms));
                let opens = opens.map_or(String::new(), |at| format!("; the next can go {at}"));
                let (held, ends) = self.held_by_groups(number);
                let lease = self.first_lease_ms.filter(|_| ends);
                let lease = next_lease(lease, now_ms, "; ");
                format!("{} ready; {held}{opens}{lease}", are(number))
            }
            "idle" if self.is_of_replica => {
                format!("{} ready; who asks for any {UNSEEN}", are(number))
            }
            "idle" if self.is_busy => format!("{} ready; {}", are(number), self.busy()),
            "idle" if self.is_taken => {
                let lapsed = self.lapsed("; ");
                format!("{} ready; {TAKEN} took some lately{lapsed}", are(number))
            }
            "idle" => {
                let lease = next_lease(self.first_lease_ms, now_ms, "; ");
                let lapsed = self.lapsed("; ");
                format!(
                    "{} ready, and no client asks for any{lapsed}{lease}",
                    are(number)
                )
            }
            _ => of_either(reason, now_ms),
        }
    }

    /// Whether clients that have jobs seem to do nothing with them.
    fn is_unanswered(&self) -> bool {
        let of_jobs = || self.taken_before > 0;
        self.lapses.map_or_else(of_jobs, Lapses::are_most)
    }

    /// What clients do that have jobs.
    fn busy(&self) -> String {
        match (self.is_unanswered(), self.lapses, self.taken_before) {
            (false, ..) => format!("{BUSY}{}", self.lapsed("; ")),
            (true, None, before) => {
                format!("{HAVE} the lease of {before} of them has expired before")
            }
            (true, ..) => format!("{HAVE}{}", self.lapsed(" ")),
        }
    }

    fn lapsed(&self, before: &str) -> String {
        let lapses = self.lapses.map(|it| format!("{before}{}", lapsed(it)));
        lapses.unwrap_or_default()
    }

    /// What holds the groups of these ready jobs at this moment, and whether the end of a lease may change it.
    fn held_by_groups(&self, jobs: u64) -> (String, bool) {
        let (held, asked) = &self.held;
        let mut by: Vec<String> = Vec::new();
        let mut ends = held.is_empty();
        for reason in held {
            let (most, ms) = self.grouprate;
            let of_queue = |limit: u64| limit > 0 && reason.number == limit;
            let said = match reason.code.as_str() {
                "group-paused" => "paused".to_owned(),
                "group-max" if of_queue(self.groupmax) => format!("at GROUPMAX {}", self.groupmax),
                "group-max" => "at their own MAX".to_owned(),
                "group-rate" if of_queue(most) => {
                    let ms = units::spaced(&units::millis(ms));
                    format!("at GROUPRATE {most} in {ms}")
                }
                "group-rate" => "at their own RATE".to_owned(),
                _ => "in order, behind a job that has not ended".to_owned(),
            };
            ends |= ["group-max", "group-fifo"].contains(&reason.code.as_str());
            if !by.contains(&said) {
                by.push(said);
            }
        }
        let by = match by.is_empty() {
            true => "held".to_owned(),
            false => by.join(", or "),
        };
        let said = match jobs {
            1 => format!("its group is {}", by.replace("their", "its")),
            _ if !held.is_empty() && jobs > *asked as u64 => {
                format!("the groups of the first {asked} are {by}")
            }
            _ => format!("their groups are {by}"),
        };
        (said, ends)
    }

    fn of_job(&self, reason: &Reason, now_ms: i64) -> String {
        match reason.code.as_str() {
            "blocked" if self.awaited.is_some() => {
                let group = self.awaited.as_deref().unwrap_or_default();
                format!("it waits for the group {}", escape::name(group))
            }
            "idle" if self.is_of_replica => format!("it is ready; who asks for it {UNSEEN}"),
            "idle" if self.is_busy => format!("it could be delivered; {}", self.busy()),
            "idle" if self.is_taken => format!("it could be delivered; {TAKEN} took others lately"),
            _ => of_job(reason, now_ms),
        }
    }
}

/// How many leases expired lately.
pub fn lapsed(it: Lapses) -> String {
    let [lapsed, ended] = [it.lapsed, it.ended].map(units::full);
    format!("{lapsed} of the last {ended} leases expired without an ACK")
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
        "reserved" => {
            let lease = reason.until_ms.map(|at| lease(at, now_ms));
            let lease = lease.map_or(String::new(), |it| format!(", its lease {it}"));
            format!("a worker has it{lease}")
        }
        "blocked" if number == 1 => "it waits for one other job".to_owned(),
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

fn next_lease(at: Option<i64>, now_ms: i64, before: &str) -> String {
    at.map_or(String::new(), |at| {
        format!("{before}the next lease {}", lease(at, now_ms))
    })
}

/// Leases end within moments: that one of a replica has ended it only hears of its master.
const SILENT_MS: i64 = 5000;

fn lease(at_ms: i64, now_ms: i64) -> String {
    match now_ms.saturating_sub(at_ms) {
        past if past < SILENT_MS => format!("ends {}", until(at_ms, now_ms)),
        past => format!(
            "ended {} ago, and the server has not said more",
            units::spaced(&units::millis(past as u64))
        ),
    }
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
