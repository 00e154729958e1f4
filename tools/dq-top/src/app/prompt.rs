//! Prompts: confirmation before anything is changed, and typed input.

use std::sync::{Arc, Weak};

use dq_watch::model::QueueKey;
use dq_watch::read::acts::{Act, OnJob};
use dq_watch::read::blocked::Doomed;
use dq_watch::read::deaths::Told;
use dq_watch::read::detail::{Job, State};
use dq_watch::text::{escape, units};

const LOOKING: &str = "Looking for blocked jobs that die of it ...";

pub struct Prompt {
    pub title: &'static str,
    /// What happens if the user confirms.
    pub lines: Vec<String>,
    pub kind: Kind,
    pub typed: String,
    /// While it is not known which blocked jobs die of it: what is to go, and what the answer is for.
    pub doomed: Option<(Doomed, Arc<()>)>,
}

pub enum Kind {
    /// `y` confirms.
    Confirm {
        key: QueueKey,
        act: Act,
    },
    /// Typing this word confirms.
    ConfirmWord {
        word: &'static str,
        key: QueueKey,
        act: Act,
    },
    /// Asks how long until the job is due.
    Delay {
        key: QueueKey,
        id: Vec<u8>,
        state: Option<State>,
    },
    /// Asks how long the pause is; empty: until resumed.
    Pause {
        key: QueueKey,
    },
    Filter,
}

impl Prompt {
    fn new(title: &'static str, lines: Vec<String>, kind: Kind) -> Prompt {
        Prompt {
            title,
            lines,
            kind,
            typed: String::new(),
            doomed: None,
        }
    }

    /// Has it looked up which blocked jobs die, before anything can be confirmed.
    fn looks_for(mut self, doomed: Doomed) -> Prompt {
        self.lines.push(LOOKING.to_owned());
        self.doomed = Some((doomed, Arc::default()));
        self
    }

    /// Takes what was looked up.
    pub fn hear_dying(&mut self, wanted: &Weak<()>, dying: Result<Told, String>) {
        let is_ours = |(_, own): &(Doomed, Arc<()>)| wanted.as_ptr() == Arc::as_ptr(own);
        if !self.doomed.as_ref().is_some_and(is_ours) {
            return;
        }
        self.doomed = None;
        self.lines.retain(|line| line != LOOKING);
        self.lines.extend(match dying {
            Ok((0, _)) => vec!["No blocked job dies of it.".to_owned()],
            Ok((count, first)) => dying_lines(count, &first),
            Err(why) => vec![
                "Blocked jobs may die of it; which, is not known:".to_owned(),
                escape::fit(&escape::line(why.as_bytes()), 60),
            ],
        });
    }

    pub fn filter(current: &str) -> Prompt {
        let lines = vec![
            "Only queues whose name contains this; with * or ? a".to_owned(),
            "pattern of the whole name. Nothing typed: all.".to_owned(),
        ];
        let mut prompt = Prompt::new("Filter", lines, Kind::Filter);
        prompt.typed = current.to_owned();
        prompt
    }

    /// None: a job in this state is not kicked.
    pub fn kick(key: QueueKey, id: Vec<u8>, state: &str) -> Option<Prompt> {
        let what = match State::named(state)? {
            State::Dead => "becomes ready now, with no attempts used.",
            State::Done => "runs again: ready now, no attempts used, without its result.",
            State::Blocked => "becomes ready now, whatever it waits for.",
            _ => return None,
        };
        let lines = vec![
            format!("The {state} job {}", quoted(&id)),
            format!("of queue {}", quoted(&key.name)),
            what.to_owned(),
        ];
        let act = Act::on_job(OnJob::Kick, id, State::named(state));
        let kind = Kind::Confirm { key, act };
        Some(Prompt::new("Kick a job", lines, kind))
    }

    pub fn kick_dead(key: QueueKey, count: u64) -> Prompt {
        let lines = vec![
            format!("{} of queue {}", jobs(count, "dead"), quoted(&key.name)),
            format!("{} ready now, with no attempts used.", become_(count)),
        ];
        let act = Act::KickDead { count };
        Prompt::new("Kick all dead jobs", lines, Kind::Confirm { key, act })
    }

    pub fn run_now(key: QueueKey, id: Vec<u8>, state: &str) -> Prompt {
        let lines = vec![
            format!("The job {}", quoted(&id)),
            format!("of queue {}", quoted(&key.name)),
            "is due now: a worker gets it as soon as its turn comes.".to_owned(),
        ];
        let now = OnJob::Reschedule { delay_ms: 0 };
        let act = Act::on_job(now, id, State::named(state));
        Prompt::new("Run a job now", lines, Kind::Confirm { key, act })
    }

    pub fn reschedule(key: QueueKey, id: Vec<u8>, state: &str) -> Prompt {
        let lines = vec![
            format!("The job {}", quoted(&id)),
            format!("of queue {}", quoted(&key.name)),
            "becomes due after this time (500ms, 30s, 5m, 2h, 1d):".to_owned(),
        ];
        let state = State::named(state);
        Prompt::new("Reschedule a job", lines, Kind::Delay { key, id, state })
    }

    /// `blocked`: whether the queue has blocked jobs.
    pub fn delete(key: QueueKey, id: Vec<u8>, state: &str, blocked: bool) -> Prompt {
        let mut lines = vec![
            format!("The {state} job {}", quoted(&id)),
            format!("is deleted from queue {}.", quoted(&key.name)),
        ];
        if state == State::Reserved.word() {
            lines.push("A worker has it and can no longer acknowledge it.".to_owned());
        }
        let doomed = Doomed::Job(id.clone());
        let act = Act::on_job(OnJob::Delete, id, State::named(state));
        let prompt = Prompt::new("Delete a job", lines, Kind::Confirm { key, act });
        // Of a job that is done nothing waits.
        match blocked && state != State::Done.word() {
            true => prompt.looks_for(doomed),
            false => prompt,
        }
    }

    /// None: nobody works on the job.
    pub fn give_back(key: QueueKey, job: &Job) -> Option<Prompt> {
        let token = job.token.clone()?;
        let who = job
            .client
            .as_deref()
            .map(|name| format!(" ({})", escape::fit(&escape::line(name), 40)));
        let lines = vec![
            format!("The delivery {token} of the job {}", quoted(&job.id)),
            format!(
                "of queue {} ends, and counts as no attempt;",
                quoted(&key.name)
            ),
            "another worker may get the job at once.".to_owned(),
            format!(
                "The handler{} goes on until it hears of it:",
                who.unwrap_or_default()
            ),
            "what it has done stays done, but it can no longer acknowledge the job.".to_owned(),
            "If the job has been delivered again by then, nothing happens.".to_owned(),
        ];
        let id = job.id.clone();
        let act = Act::GiveBack { id, token };
        Some(Prompt::new(
            "Give a job back now",
            lines,
            Kind::Confirm { key, act },
        ))
    }

    pub fn pause(key: QueueKey) -> Prompt {
        let lines = vec![
            format!("The queue {} delivers nothing", quoted(&key.name)),
            "for this time (30s, 5m, 2h), or until it is resumed if no time is".to_owned(),
            "given. Jobs can still be added and acknowledged; leases expire.".to_owned(),
        ];
        Prompt::new("Pause a queue", lines, Kind::Pause { key })
    }

    pub fn resume(key: QueueKey) -> Prompt {
        let lines = vec![format!("The queue {} delivers again.", quoted(&key.name))];
        Prompt::new(
            "Resume a queue",
            lines,
            Kind::Confirm {
                key,
                act: Act::Resume,
            },
        )
    }

    /// `count`: how many jobs there are, as far as known; `blocked`: whether there are blocked ones.
    pub fn purge(key: QueueKey, state: Option<State>, count: u64, blocked: bool) -> Prompt {
        let which = state.map_or(String::new(), |state| format!("{} ", state.word()));
        let lines = vec![
            format!("All {which}jobs ({count})"),
            format!("of queue {} are removed.", quoted(&key.name)),
            "This cannot be undone.".to_owned(),
        ];
        let act = Act::Purge { state };
        let kind = Kind::ConfirmWord {
            word: "purge",
            key,
            act,
        };
        let prompt = Prompt::new("Purge a queue", lines, kind);
        match state {
            Some(State::Blocked | State::Done) | None => prompt,
            Some(_) if !blocked => prompt,
            Some(state) => prompt.looks_for(Doomed::AllOf(state)),
        }
    }

    /// How the prompt is answered.
    pub fn hint(&self) -> String {
        match &self.kind {
            _ if self.doomed.is_some() => "Esc  cancel".to_owned(),
            Kind::Confirm { .. } => "y  do it     any other key  cancel".to_owned(),
            Kind::ConfirmWord { word, .. } => {
                format!("type {word} and Enter to do it     Esc  cancel")
            }
            Kind::Delay { .. } => "Enter  reschedule     Esc  cancel".to_owned(),
            Kind::Pause { .. } => "Enter  pause     Esc  cancel".to_owned(),
            Kind::Filter => "Enter  keep     Esc  show all".to_owned(),
        }
    }

    pub fn has_input(&self) -> bool {
        !matches!(self.kind, Kind::Confirm { .. })
    }

    /// The action of Enter, if the typed text is valid.
    pub fn entered(&self) -> Result<(QueueKey, Act), String> {
        let typed = self.typed.trim();
        match &self.kind {
            Kind::Confirm { .. } | Kind::Filter => Err(String::new()),
            Kind::ConfirmWord { word, key, act } if typed == *word => {
                Ok((key.clone(), act.clone()))
            }
            Kind::ConfirmWord { word, .. } => Err(format!("not done: {word} was not typed")),
            Kind::Pause { key } if typed.is_empty() => Ok((key.clone(), Act::Pause { ms: None })),
            Kind::Pause { key } => match units::parse_millis(typed) {
                Some(ms) if ms > 0 => Ok((key.clone(), Act::Pause { ms: Some(ms) })),
                _ => Err(format!("{typed} is not a duration, such as 30s")),
            },
            Kind::Delay { key, id, state } => match units::parse_millis(typed) {
                Some(delay_ms) => Ok((
                    key.clone(),
                    Act::on_job(OnJob::Reschedule { delay_ms }, id.clone(), *state),
                )),
                None => Err(format!("{typed} is not a duration, such as 30s")),
            },
        }
    }
}

/// Long names are cut: the box is small.
fn quoted(name: &[u8]) -> String {
    format!("\"{}\"", escape::fit(&escape::name(name), 40))
}

fn dying_lines(count: usize, first: &[Vec<u8>]) -> Vec<String> {
    let what = match count {
        1 => "1 blocked job dies of it:".to_owned(),
        _ => format!("{count} blocked jobs die of it:"),
    };
    let ids = first.iter().map(|id| format!("  {}", quoted(id)));
    let more = count - first.len();
    let more = (more > 0).then(|| format!("  and {more} more"));
    std::iter::once(what).chain(ids).chain(more).collect()
}

fn jobs(count: u64, state: &str) -> String {
    match count {
        1 => format!("The one {state} job"),
        _ => format!("All {count} {state} jobs"),
    }
}

fn become_(count: u64) -> &'static str {
    match count {
        1 => "becomes",
        _ => "become",
    }
}
