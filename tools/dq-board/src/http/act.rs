//! The actions that visitors ask for.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::Extension;
use dq_watch::model::QueueKey;
use dq_watch::read::acts::{Act, Job, NewRule, OnJob};
use dq_watch::read::cli;
use dq_watch::read::detail::State as JobState;
use dq_watch::read::reply;
use dq_watch::read::shares::OnGroup;
use dq_watch::text::escape;
use serde::Deserialize;
use serde_json::{json, Value};

use super::site::{Shared, Site};
use crate::audit::record;
use crate::board::Board;
use crate::core::access::{Role, Visitor};
use crate::core::failure::Failure;
use crate::core::filter::Filter;
use crate::core::wire;
use dq_serve::answer::json_text;

/// Ids that one step of a search looks at.
const STEP: usize = 500;

#[derive(Deserialize)]
pub struct Asked {
    queue: String,
    pub act: String,
    #[serde(default)]
    id: String,
    /// Several jobs instead of one.
    #[serde(default)]
    ids: Vec<String>,
    /// The state of each, if they are not all in `state`.
    #[serde(default)]
    states: Vec<String>,
    #[serde(default)]
    ms: Option<u64>,
    /// What is purged, or the state in which the visitor saw the job.
    #[serde(default)]
    state: String,
    #[serde(default)]
    payload: String,
    /// The queue's name, which a purge requires as confirmation.
    #[serde(default)]
    pub typed: String,
    /// Where jobs are moved to: a queue of the same database.
    #[serde(default)]
    to: String,
    /// The rule of a recurring job: milliseconds, or an expression and its zone.
    #[serde(default)]
    every: Option<u64>,
    #[serde(default)]
    cron: String,
    #[serde(default)]
    tz: String,
    #[serde(default)]
    group: String,
    /// What the group may have of its own; empty: as it is.
    #[serde(default)]
    weight: String,
    #[serde(default)]
    max: String,
    #[serde(default)]
    maxlen: String,
    /// Deliveries, and the milliseconds in `ms`.
    #[serde(default)]
    rate: String,
    /// What a queue's setting is to be; empty: as it is.
    #[serde(default)]
    attempts: String,
    #[serde(default)]
    maxreserved: String,
    #[serde(default)]
    groupmax: String,
    #[serde(default)]
    donelen: String,
    #[serde(default)]
    history: String,
    /// Milliseconds, parted by commas or spaces; empty: the server's. None: as it is.
    #[serde(default)]
    backoff: Option<String>,
    /// All jobs that a filter selects, in the words of a question.
    #[serde(default)]
    pub filter: String,
    /// The name of a signal, of which the payload is the value.
    #[serde(default)]
    signal: String,
    /// Which delivery of the job is given back.
    #[serde(default)]
    token: String,
    /// With a count: what is to be done to the jobs, of which it is told what comes.
    #[serde(default)]
    pub foresees: String,
}

impl Asked {
    fn act(&self) -> Result<Act, Failure> {
        let id = wire::decoded(&self.id);
        let state = JobState::named(&self.state);
        if self.act == "signal" {
            return self.signalled();
        }
        if !self.ids.is_empty() {
            let (what, jobs) = (self.on_job()?, self.jobs()?);
            return Ok(Act::OnJobs { what, jobs });
        }
        Ok(match self.act.as_str() {
            "pause" => Act::Pause { ms: self.ms },
            "resume" => Act::Resume,
            "configure" => self.configured()?,
            "purge" if state.is_none() && self.state != "all" => {
                return Err(Failure::asked("Which jobs?"))
            }
            "purge" => Act::Purge { state },
            "give-back" if self.token.is_empty() => {
                return Err(Failure::asked("Which delivery of the job?"))
            }
            "give-back" => Act::GiveBack {
                id,
                token: self.token.clone(),
            },
            "group-set" | "group-clear" | "group-pause" | "group-resume" => Act::OnGroup {
                name: self.group()?,
                what: self.on_group()?,
            },
            "add" if self.id.is_empty() => return Err(Failure::asked("A job needs an id.")),
            "add" => Act::Add {
                id,
                payload: self.payload.clone().into_bytes(),
                delay_ms: self.ms.unwrap_or(0),
            },
            "add-rule" if self.id.is_empty() => return Err(Failure::asked("A job needs an id.")),
            "add-rule" => Act::Rule {
                id,
                payload: Some(self.payload.clone().into_bytes()),
                rule: self.rule()?,
            },
            "set-rule" => Act::Rule {
                id,
                payload: None,
                rule: self.rule()?,
            },
            _ => Act::OnJobs {
                what: self.on_job()?,
                jobs: self.jobs()?,
            },
        })
    }

    fn signalled(&self) -> Result<Act, Failure> {
        let name = wire::decoded(&self.signal);
        let ids = match self.ids.is_empty() {
            true => vec![wire::decoded(&self.id)],
            false => self.named(),
        };
        match name.is_empty() || ids.iter().any(Vec::is_empty) {
            true => Err(Failure::asked("Which signal, to which job?")),
            false => Ok(Act::Signal {
                ids,
                name,
                value: self.payload.clone().into_bytes(),
            }),
        }
    }

    fn group(&self) -> Result<Vec<u8>, Failure> {
        let name = wire::decoded(&self.group);
        match name.is_empty() {
            true => Err(Failure::asked("Which group?")),
            false => Ok(name),
        }
    }

    fn on_group(&self) -> Result<OnGroup, Failure> {
        Ok(match self.act.as_str() {
            "group-clear" => OnGroup::Clear,
            "group-pause" => OnGroup::Pause { ms: self.ms },
            "group-resume" => OnGroup::Resume,
            _ => {
                let set = OnGroup::Set {
                    weight: number(&self.weight)?,
                    max: number(&self.max)?,
                    rate: self.rate()?,
                    maxlen: number(&self.maxlen)?,
                };
                let none = OnGroup::Set {
                    weight: None,
                    max: None,
                    rate: None,
                    maxlen: None,
                };
                match set == none {
                    true => return Err(Failure::asked("Give a weight or a limit.")),
                    false => set,
                }
            }
        })
    }

    /// Deliveries in milliseconds; none are in no time.
    fn rate(&self) -> Result<Option<(u64, u64)>, Failure> {
        let ms = self.ms.unwrap_or(0);
        let rate = number(&self.rate)?;
        Ok(rate.map(|count| (count, if count == 0 { 0 } else { ms })))
    }

    fn configured(&self) -> Result<Act, Failure> {
        let mut options = Vec::new();
        for (option, said) in [
            ("ATTEMPTS", &self.attempts),
            ("MAXRESERVED", &self.maxreserved),
            ("GROUPMAX", &self.groupmax),
            ("DONELEN", &self.donelen),
            ("HISTORY", &self.history),
        ] {
            if let Some(value) = number(said)? {
                options.extend([option.to_owned(), value.to_string()]);
            }
        }
        if let Some((count, ms)) = self.rate()? {
            options.extend(["RATE".to_owned(), count.to_string(), ms.to_string()]);
        }
        if let Some(backoff) = &self.backoff {
            options.push("BACKOFF".to_owned());
            let waits = backoff.split([',', ' ']).filter(|wait| !wait.is_empty());
            let waits: Vec<String> = waits
                .map(|wait| Ok(number(wait)?.unwrap_or_default().to_string()))
                .collect::<Result<_, Failure>>()?;
            match waits.as_slice() {
                [] => options.push("DEFAULT".to_owned()),
                // No wait at all.
                [none] if none == "0" => options.push("0".to_owned()),
                waits => {
                    options.push(waits.len().to_string());
                    options.extend(waits.iter().cloned());
                }
            }
        }
        match options.is_empty() {
            true => Err(Failure::asked("Nothing is to be changed.")),
            false => Ok(Act::Configure { options }),
        }
    }

    /// What is done to jobs.
    pub fn on_job(&self) -> Result<OnJob, Failure> {
        let ms = || {
            self.ms
                .ok_or_else(|| Failure::asked("In how many milliseconds?"))
        };
        Ok(match self.act.as_str() {
            "kick" => OnJob::Kick,
            "now" => OnJob::Reschedule { delay_ms: 0 },
            "reschedule" => OnJob::Reschedule { delay_ms: ms()? },
            "cancel" => OnJob::Cancel,
            "delete" => OnJob::Delete,
            "move" => OnJob::Move {
                to: self.to()?.name,
            },
            _ => return Err(Failure::asked("There is no such action.")),
        })
    }

    /// What acts on all jobs of the filter: the search for them, and the action on those that it finds.
    fn for_cli(&self, key: &QueueKey) -> Result<Value, Failure> {
        let filter = self.filter()?;
        let act = Act::on_job(self.on_job()?, b"ID".to_vec(), None);
        let mut scan = redis::cmd("DQ.SCAN");
        scan.arg(&key.name).arg(0).arg("COUNT").arg(STEP);
        filter.scan(&mut scan);
        let here = QueueKey::new(0, key.name.clone());
        let (sent, is_script) = (act.for_cli(&here), act.is_script());
        let (line, script) = if is_script {
            (None, Some(sent))
        } else {
            (Some(sent), None)
        };
        let lines = std::iter::once(cli::line(&scan)).chain(line);
        Ok(json!({ "commands": cli::in_db(key.db, lines), "script": script }))
    }

    pub fn filter(&self) -> Result<Filter, Failure> {
        let words = wire::query(&self.filter);
        let filter = Filter::of(|name| words.get(name).map_or(&[], Vec::as_slice));
        filter.ok_or_else(|| Failure::asked("This is not a filter."))
    }

    /// The ids of the jobs that are named.
    pub fn named(&self) -> Vec<Vec<u8>> {
        self.ids.iter().map(|id| wire::decoded(id)).collect()
    }

    /// The jobs, each with the state in which the visitor saw it: in another one nothing is done to it.
    fn jobs(&self) -> Result<Vec<Job>, Failure> {
        let job = |id: &String, state: &String| {
            let state = JobState::named(state);
            let state = state.ok_or_else(|| Failure::asked("In which state is the job?"))?;
            let id = wire::decoded(id);
            Ok(Job {
                id,
                state: Some(state),
            })
        };
        if self.ids.is_empty() {
            return Ok(vec![job(&self.id, &self.state)?]);
        }
        if ["reschedule", "move"].contains(&self.act.as_str()) {
            return Err(Failure::asked("That cannot be done to several jobs."));
        }
        let states = match self.states.len() == self.ids.len() {
            true => self.states.clone(),
            false => vec![self.state.clone(); self.ids.len()],
        };
        let jobs = self
            .ids
            .iter()
            .zip(&states)
            .map(|(id, state)| job(id, state));
        jobs.collect()
    }

    fn rule(&self) -> Result<NewRule, Failure> {
        match (self.every, self.cron.is_empty()) {
            (Some(ms), true) => Ok(NewRule::Every(ms)),
            (None, false) => Ok(NewRule::Cron {
                expression: self.cron.clone(),
                zone: if self.tz.is_empty() { "UTC" } else { &self.tz }.to_owned(),
            }),
            _ => Err(Failure::asked(
                "Give either an interval or a cron expression.",
            )),
        }
    }

    /// The queue that jobs are moved to, by a name typed as it is shown.
    fn to(&self) -> Result<QueueKey, Failure> {
        let key = wire::key_of(&self.queue).ok_or_else(|| Failure::asked("Which queue?"))?;
        let name = wire::decoded(&self.to);
        match name.is_empty() || name == key.name {
            true => Err(Failure::asked("Which other queue?")),
            false => Ok(QueueKey::new(key.db, name)),
        }
    }

    /// Checks that all queues concerned are shown.
    pub fn is_shown(&self, board: &Board, key: &QueueKey) -> Result<(), Failure> {
        board.shows(key)?;
        match self.act.as_str() {
            "move" => board.shows(&self.to()?),
            _ => Ok(()),
        }
    }

    /// The action as the audit log has it.
    pub fn told(&self, key: &QueueKey) -> Value {
        let name = |id: &String| escape::name(&wire::decoded(id));
        let mut told =
            json!({ "db": key.db, "queue": escape::name(&key.name), "action": self.act });
        if !self.id.is_empty() {
            told["id"] = name(&self.id).into();
        }
        if !self.ids.is_empty() {
            told["ids"] = self.ids.iter().map(name).collect();
        }
        if !self.state.is_empty() {
            told["state"] = self.state.as_str().into();
        }
        if let Some(ms) = self.ms {
            told["ms"] = ms.into();
        }
        if !self.to.is_empty() {
            told["to"] = name(&self.to).into();
        }
        let own = [
            ("weight", &self.weight),
            ("max", &self.max),
            ("maxlen", &self.maxlen),
            ("rate", &self.rate),
            ("attempts", &self.attempts),
            ("maxreserved", &self.maxreserved),
            ("groupmax", &self.groupmax),
            ("donelen", &self.donelen),
            ("history", &self.history),
        ];
        for (word, said) in own.into_iter().filter(|(_, said)| !said.is_empty()) {
            told[word] = said.as_str().into();
        }
        if !self.signal.is_empty() {
            told["signal"] = name(&self.signal).into();
        }
        if let Some(backoff) = &self.backoff {
            told["backoff"] = backoff.as_str().into();
        }
        if !self.group.is_empty() {
            told["group"] = name(&self.group).into();
        }
        if let Ok(rule) = self.rule() {
            told["rule"] = rule.told().into();
        }
        told
    }
}

/// None: left empty.
fn number(text: &str) -> Result<Option<u64>, Failure> {
    match text.trim() {
        "" => Ok(None),
        text => text
            .parse()
            .map(Some)
            .map_err(|_| Failure::asked("These are whole numbers, or left empty.")),
    }
}

pub fn read(body: &Bytes) -> Result<(Asked, QueueKey), Failure> {
    let asked = serde_json::from_slice::<Asked>(body);
    let asked = asked.map_err(|_| Failure::asked("Not understood."))?;
    let key = wire::key_of(&asked.queue).ok_or_else(|| Failure::asked("Which queue?"))?;
    Ok((asked, key))
}

fn asked(body: &Bytes) -> Result<(Asked, QueueKey, Act), Failure> {
    let (asked, key) = read(body)?;
    let act = asked.act()?;
    Ok((asked, key, act))
}

/// The commands that an action would send; they are not sent. Those of a script that only the server can tell come with
/// the script.
pub async fn commands(
    State(site): Shared,
    Extension(visitor): Extension<Visitor>,
    body: Bytes,
) -> Response {
    match told(&site, &visitor, &body).await {
        // A dialog asks while it is filled in.
        Err(Failure::Asked(why)) => json_text(json!({ "wrong": why }).to_string()),
        Err(failure) => failure.into_response(),
        Ok(told) => json_text(told.to_string()),
    }
}

async fn told(site: &Site, visitor: &Visitor, body: &Bytes) -> Result<Value, Failure> {
    let (asked, key) = read(body)?;
    if !asked.filter.is_empty() {
        return asked.for_cli(&key);
    }
    let act = asked.act()?;
    let sent = act.for_cli(&key);
    if act.is_script() {
        return Ok(json!({ "commands": "", "script": sent }));
    }
    let Some(ask) = act.ask_command(&key.name) else {
        return Ok(json!({ "commands": sent }));
    };
    may_act(visitor).and_then(|()| asked.is_shown(&site.board, &key))?;
    let values = site.board.connections.ask(key.clone(), vec![ask]).await?;
    let words = values.first().and_then(reply::array).unwrap_or_default();
    let words: Vec<Vec<u8>> = words.iter().filter_map(reply::bytes).collect();
    let Some((name, rest)) = words.split_first() else {
        return Ok(json!({ "commands": sent }));
    };
    let mut command = redis::Cmd::new();
    command.arg(name).arg(rest);
    let line = cli::in_db(key.db, [cli::line(&command)]);
    Ok(json!({ "commands": line, "script": sent }))
}

/// Carries out an action if the visitor may, and records it whatever its result.
pub async fn act(
    State(site): Shared,
    Extension(visitor): Extension<Visitor>,
    body: Bytes,
) -> Response {
    let (asked, key, act) = match asked(&body) {
        Ok(asked) => asked,
        Err(failure) => return failure.into_response(),
    };
    let allowed = may_act(&visitor)
        .and_then(|()| asked.is_shown(&site.board, &key))
        .and_then(|()| match act {
            Act::Purge { .. } => is_typed(&asked, &key),
            _ => Ok(()),
        });
    let done = match allowed {
        Ok(()) => site.board.connections.act(key.clone(), act).await,
        Err(failure) => Err(failure),
    };
    let mut told = asked.told(&key);
    match &done {
        Ok(done) => {
            (told["count"], told["outcome"]) = (done.changed.into(), done.said.clone().into())
        }
        Err(failure) => told["refused"] = failure.why().into(),
    }
    record(&site.guard.audit, &visitor, "action", told);
    match done {
        Ok(done) => json_text(json!({ "done": done.said }).to_string()),
        Err(failure) => failure.into_response(),
    }
}

pub fn may_act(visitor: &Visitor) -> Result<(), Failure> {
    match visitor.role {
        Role::Operate => Ok(()),
        Role::Look => Err(Failure::Forbidden(
            "You may only look: actions need --allow-actions, or the role \"operate\".".to_owned(),
        )),
    }
}

pub fn is_typed(asked: &Asked, key: &QueueKey) -> Result<(), Failure> {
    match asked.typed == escape::name(&key.name) {
        true => Ok(()),
        false => Err(Failure::asked("The name typed is not the queue's.")),
    }
}
