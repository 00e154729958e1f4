//! What an attempt knows of its steps, and how it waits.

use crate::core::Before as Row;
use crate::error::Error;
use crate::result::{decode, JobResult};
use crate::values;
use base64::engine::{general_purpose::STANDARD, Engine};
use std::collections::{BTreeMap, HashSet};

/// What an attempt knows of its steps.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    pub kept: BTreeMap<String, Vec<u8>>,
    used: HashSet<String>,
    /// How many waits for jobs it has reached.
    pub waits: u32,
    pub has_ended: bool,
}

impl Attempt {
    pub fn of(steps: &[(Vec<u8>, Vec<u8>)]) -> Self {
        let kept = steps
            .iter()
            .map(|(name, value)| (values::lossy(name.clone()), value.clone()))
            .collect();
        Attempt {
            kept,
            ..Attempt::default()
        }
    }

    /// Reaches a step, and returns its kept value. A name may be used once in each attempt.
    pub fn enter(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        if name.starts_with("dq:") {
            return Err(Error::Usage(format!(
                "names of steps that begin with dq: are the library's, not {name:?}"
            )));
        }
        if !self.used.insert(name.to_owned()) {
            return Err(Error::Usage(format!(
                "the step {name:?} was used before in this attempt: give each its own name"
            )));
        }
        Ok(self.kept.get(name).cloned())
    }

    /// Whether the name was not used in this attempt. It is from now on.
    pub fn claim(&mut self, name: String) -> bool {
        self.used.insert(name)
    }
}

/// What a job does if a job that it is after dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnDead {
    /// It waits, as the dead job may be kicked. If that is deleted, the job dies.
    Wait,
    /// It runs: [`crate::Job::results`] says how the others ended.
    #[default]
    Run,
    /// It dies.
    Die,
}

impl OnDead {
    pub(crate) fn word(self) -> &'static str {
        match self {
            OnDead::Wait => "WAIT",
            OnDead::Run => "RUN",
            OnDead::Die => "DIE",
        }
    }
}

/// Options of [`crate::Job::wait_for`] and [`crate::Job::spawn`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WaitFor {
    pub(crate) name: Option<String>,
    pub(crate) on_dead: OnDead,
}

impl WaitFor {
    /// The defaults: the wait is named by its number in the attempt, and a job that dies has ended.
    pub fn new() -> Self {
        WaitFor::default()
    }

    /// Names the wait, for handlers that do not always wait in the same order.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// What happens if one of the jobs dies.
    pub fn on_dead(mut self, on_dead: OnDead) -> Self {
        self.on_dead = on_dead;
        self
    }
}

type Written = (String, Option<String>, Option<String>);

pub(crate) fn write_results(results: &[Row]) -> Vec<u8> {
    let row = |(id, outcome, value): &Row| -> Written {
        (
            values::lossy(id.clone()),
            outcome.clone(),
            value.as_ref().map(|value| STANDARD.encode(value)),
        )
    };
    let rows: Vec<Written> = results.iter().map(row).collect();
    serde_json::to_vec(&rows).unwrap_or_default()
}

pub(crate) fn read_results(kept: &[u8]) -> Result<Vec<JobResult>, Error> {
    let rows: Vec<Written> = decode(kept)?;
    let read = |(id, outcome, value): Written| {
        let value = value.map(|value| STANDARD.decode(value)).transpose();
        let value = value.map_err(|error| Error::Decode(error.to_string()))?;
        Ok(JobResult::of(&(id.into_bytes(), outcome, value)))
    };
    rows.into_iter().map(read).collect()
}
