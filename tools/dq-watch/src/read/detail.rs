//! What is asked for while one queue, or one job, is on the screen.

use std::collections::HashMap;

use redis::{Cmd, Value};

pub use super::records::{
    first_few, After, Attempt, Cut, Ended, Group, Job, PeekedJob, Rule, Settings, Step, When,
    IN_LIST,
};
use super::why::{self, Of};
use super::{reply, said};
use crate::model::{stats, QueueKey};

/// Bytes of a payload that are shown of one job.
const IN_VIEW: usize = 64 * 1024;

/// Runs of a recurring job that are shown ahead.
const NEXT_RUNS: usize = 5;

/// How many ready or blocked jobs can be paged through. They are in the order of delivery or of adding, where no
/// instant says where to continue: each page is read with all those before it.
pub const IN_LINE_MAX: usize = 1000;

/// Of the jobs due in one millisecond, at most so many are skipped to continue after them.
pub const SAME_INSTANT_MAX: usize = 2000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Delayed,
    Ready,
    Reserved,
    Dead,
    Blocked,
    Done,
}

/// In the order of `stats::STATES`.
pub const STATES: [State; 6] = [
    State::Delayed,
    State::Ready,
    State::Reserved,
    State::Dead,
    State::Blocked,
    State::Done,
];

impl State {
    pub fn named(name: &str) -> Option<State> {
        STATES.into_iter().find(|state| state.word() == name)
    }

    pub fn word(self) -> &'static str {
        stats::STATES[self as usize]
    }

    /// Whether its jobs are not in the order of an instant.
    fn is_in_line(self) -> bool {
        matches!(self, State::Ready | State::Blocked)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    pub key: QueueKey,
    pub part: Part,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Settings,
    Jobs {
        state: State,
        page: Page,
        count: usize,
        /// Whether each of them is read, too, without its payload.
        read: bool,
    },
    Job(Vec<u8>),
}

/// Where a page of jobs begins: at `from_ms`, after `skip` jobs of that instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub from_ms: i64,
    pub skip: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    Settings(Box<Settings>),
    Jobs(Vec<PeekedJob>),
    /// With what was read of them, by id.
    Read(Vec<PeekedJob>, HashMap<Vec<u8>, Job>),
    Job(Box<Job>),
    /// There is no such queue or job.
    Nothing,
    Refused(String),
}

/// DQ.GET, of each value so much that one sees whether it is longer than `longest`.
pub fn get(key: &[u8], id: &[u8], longest: usize) -> Cmd {
    let mut get = redis::cmd("DQ.GET");
    get.arg(key).arg(id).arg("PREFIX").arg(longest + 1);
    get
}

impl Detail {
    /// The commands that this asks in one packet.
    pub fn commands(&self) -> Vec<Cmd> {
        let key = &self.key.name;
        match &self.part {
            Part::Settings => {
                let settings = redis::cmd("DQ.CFGGET").arg(key).to_owned();
                let why = why::commands(key, Of::Queue);
                std::iter::once(settings).chain(why).collect()
            }
            Part::Job(id) => {
                let mut next = redis::cmd("DQ.NEXT");
                next.arg(key).arg(id).arg("COUNT").arg(NEXT_RUNS);
                let why = why::commands(key, Of::Job(id));
                [get(key, id, IN_VIEW), next]
                    .into_iter()
                    .chain(why)
                    .collect()
            }
            Part::Jobs {
                state, page, count, ..
            } => vec![self.peek(*state, *page, *count)],
        }
    }

    /// The commands that it asks once it has these replies.
    pub fn more(&self, values: &[Value]) -> Vec<Cmd> {
        let key = &self.key.name;
        let page = match &self.part {
            Part::Settings => return why::more(key, values.get(1..).unwrap_or_default()),
            Part::Job(_) => return why::more(key, values.get(2..).unwrap_or_default()),
            Part::Jobs { read: false, .. } => return Vec::new(),
            Part::Jobs { page, .. } => page,
        };
        let jobs = values.first().and_then(|value| reply::peeked(value, 0));
        let jobs = jobs.into_iter().flatten().skip(page.skip);
        jobs.map(|job| get(key, &job.id, 0)).collect()
    }

    fn peek(&self, state: State, page: Page, count: usize) -> Cmd {
        let mut peek = redis::cmd("DQ.PEEK");
        peek.arg(&self.key.name).arg(state.word());
        if page.from_ms > 0 {
            peek.arg("FROM").arg(page.from_ms);
        }
        peek.arg("COUNT").arg(page.skip + count);
        peek.arg("PREFIX").arg(IN_LIST).to_owned()
    }

    /// What the replies to its commands say.
    pub fn found(&self, values: &[Value]) -> Found {
        let Some(value) = values.first() else {
            return Found::Nothing;
        };
        // Who works on a job is said by DQ.GET alone.
        let is_read = matches!(
            self.part,
            Part::Jobs {
                state: State::Reserved,
                ..
            }
        );
        let all = [Some(value), values.get(1).filter(|_| is_read)];
        if let Some(error) = all.into_iter().flatten().find_map(reply::error) {
            return Found::Refused(error);
        }
        let found = match &self.part {
            // Without DQ.EXPLAIN (older modules, users who may not call it) nothing is said.
            Part::Settings => reply::settings(value).map(|mut settings| {
                let why = why::read(&values[1..], Of::Queue, Some(&settings));
                settings.why = why.ok().flatten();
                Found::Settings(settings.into())
            }),
            Part::Job(id) => reply::job(value, IN_VIEW).map(|mut job| {
                let why = values.get(2..).map(|it| why::read(it, Of::Job(id), None));
                job.why = why.and_then(Result::ok).flatten();
                if let (Some(why), Some(After::Group(name))) = (&mut job.why, &job.after) {
                    why.awaited = Some(name.clone());
                }
                // Without DQ.NEXT (older modules, users who may not call it) the next runs are left out.
                let next = values.get(1).and_then(reply::instants);
                if let (Some(rule), Some(next)) = (&mut job.rule, next) {
                    rule.next_ms = next;
                }
                Found::Job(Box::new(job))
            }),
            Part::Jobs { page, read, .. } => reply::peeked(value, IN_LIST).map(|jobs| {
                let jobs = jobs.into_iter().skip(page.skip).collect();
                let all = values[1..].iter().filter_map(|value| reply::job(value, 0));
                match read {
                    true => Found::Read(jobs, all.map(|job| (job.id.clone(), job)).collect()),
                    false => Found::Jobs(jobs),
                }
            }),
        };
        match (found, value) {
            (Some(found), _) => found,
            (None, Value::Nil) => Found::Nothing,
            (None, _) => {
                Found::Refused("this program does not understand the server's reply".to_owned())
            }
        }
    }
}

impl Found {
    /// Bytes of payloads and results in the server's reply: what is heavy is not asked for every second.
    pub fn weight(&self) -> usize {
        match self {
            Found::Jobs(jobs) | Found::Read(jobs, _) => {
                jobs.iter().map(|job| job.payload.bytes.len()).sum()
            }
            Found::Job(job) => job.weight(),
            _ => 0,
        }
    }
}

/// Jobs at work that one step reads; the others are counted, by the figures of the queue.
pub const AT_WORK: usize = 500;

/// Of reserved jobs those that still are, each with what was read of it. Those of one client are side by side, in their
/// order; where it is not known they come last.
pub fn by_client(jobs: Vec<PeekedJob>, read: &mut HashMap<Vec<u8>, Job>) -> Vec<(PeekedJob, Job)> {
    let at_work = |it: PeekedJob| {
        let job = read.remove(&it.id)?;
        (job.state == State::Reserved.word()).then_some((it, job))
    };
    let mut all: Vec<_> = jobs.into_iter().filter_map(at_work).collect();
    all.sort_by(|(_, a), (_, b)| {
        let place = |job: &Job| (job.client.is_none(), job.client.clone());
        place(a).cmp(&place(b))
    });
    all
}

impl Job {
    pub fn weight(&self) -> usize {
        let values = self.results.iter().filter_map(|ended| ended.value.as_ref());
        let steps = self.steps.iter().map(|step| &step.value);
        let results = self.result.iter().chain(values).chain(steps);
        self.payload.bytes.len() + results.map(|cut| cut.length).sum::<usize>()
    }

    /// What kind of job it is.
    pub fn label(&self) -> Option<&[u8]> {
        let mut texts = self.said.iter().filter(|said| said.name == "label");
        match &texts.next()?.value {
            said::Value::Text(label) => Some(label),
            _ => None,
        }
    }

    /// For how long it is kept when it is done, if that was said of it.
    pub fn keep_ms(&self) -> Option<u64> {
        let mut said = self.said.iter().filter(|said| said.name == "keep");
        match said.next()?.value {
            said::Value::Millis(ms) => Some(ms),
            _ => None,
        }
    }

    /// The instant by which jobs of its state are listed.
    pub fn at_ms(&self) -> Option<i64> {
        match self.state.as_str() {
            "dead" => self.failed_ms.or(self.due_ms),
            "done" => self.finished_ms,
            "reserved" => self.deadline_ms,
            _ => self.due_ms,
        }
    }

    /// Since when it has been in its state; a future instant if it is not due yet.
    pub fn since_ms(&self) -> Option<i64> {
        match self.state.as_str() {
            "reserved" => self.started_ms,
            _ => self.at_ms(),
        }
    }

    /// How long the delivery took that ended with the job done.
    pub fn ran_ms(&self) -> Option<u64> {
        let ran = self.finished_ms? - self.started_ms?;
        Some(ran.max(0) as u64)
    }
}

impl Page {
    /// The page after this one, whose jobs are `jobs`; None if there can be none.
    pub fn next(self, state: State, jobs: &[PeekedJob], count: usize) -> Option<Page> {
        let last = jobs.last()?;
        if jobs.len() < count {
            return None;
        }
        if state.is_in_line() {
            let skip = self.skip + jobs.len();
            return (skip < IN_LINE_MAX).then_some(Page { from_ms: 0, skip });
        }
        let last_ms = last.at_ms?;
        let at_last = jobs
            .iter()
            .rev()
            .take_while(|job| job.at_ms == last.at_ms)
            .count();
        let skip = match at_last == jobs.len() && last_ms == self.from_ms {
            true => self.skip + at_last,
            false => at_last,
        };
        Some(match skip > SAME_INSTANT_MAX {
            true => Page {
                from_ms: last_ms + 1,
                skip: 0,
            },
            false => Page {
                from_ms: last_ms,
                skip,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: usize, at_ms: i64) -> PeekedJob {
        PeekedJob {
            id: id.to_string().into_bytes(),
            payload: Cut::of(b"", 0),
            at_ms: Some(at_ms),
            attempts: 0,
            priority: 0,
        }
    }

    /// What DQ.PEEK replies with FROM and COUNT, without the jobs that the page skips.
    fn peek(all: &[PeekedJob], page: Page, count: usize) -> Vec<PeekedJob> {
        let from = all.iter().filter(|job| job.at_ms >= Some(page.from_ms));
        from.take(page.skip + count)
            .skip(page.skip)
            .cloned()
            .collect()
    }

    #[test]
    fn pages_have_every_job_once_even_where_many_are_due_at_once() {
        let instants = [1, 1, 2, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6, 7, 7, 7, 9];
        let all: Vec<PeekedJob> = instants
            .iter()
            .enumerate()
            .map(|(id, &at)| job(id, at))
            .collect();
        for count in 1..=20 {
            let mut shown = Vec::new();
            let mut page = Some(Page::default());
            while let Some(here) = page {
                let jobs = peek(&all, here, count);
                page = here.next(State::Delayed, &jobs, count);
                shown.extend(jobs);
            }
            assert_eq!(shown, all, "{count} a page");
        }
    }

    #[test]
    fn ready_and_blocked_jobs_go_by_their_place_in_line() {
        let jobs = [job(0, 900), job(1, 3)];
        let second = Page::default().next(State::Ready, &jobs, 2);
        assert_eq!(
            second,
            Some(Page {
                from_ms: 0,
                skip: 2
            })
        );
        let far = Page {
            from_ms: 0,
            skip: IN_LINE_MAX,
        };
        assert_eq!(far.next(State::Ready, &jobs, 2), None);
        assert_eq!(
            Page::default().next(State::Ready, &jobs, 3),
            None,
            "that was the last"
        );
        let blocked = jobs.map(|job| PeekedJob { at_ms: None, ..job });
        assert_eq!(Page::default().next(State::Blocked, &blocked, 2), second);
    }

    #[test]
    fn a_state_is_counted_where_it_is_listed() {
        for (place, state) in STATES.into_iter().enumerate() {
            assert_eq!(state as usize, place);
            assert_eq!(State::named(stats::STATES[place]), Some(state));
        }
    }

    #[test]
    fn a_crowd_at_one_instant_is_left_behind_at_last() {
        let jobs = [job(0, 5)];
        let crowd = Page {
            from_ms: 5,
            skip: SAME_INSTANT_MAX,
        };
        assert_eq!(
            crowd.next(State::Dead, &jobs, 1),
            Some(Page {
                from_ms: 6,
                skip: 0
            })
        );
    }
}
