//! A delivery, as the server sent it.

use crate::envelope::Envelope;
use crate::guard::clean;
use crate::values;
use redis::Value;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The step that counts the deliveries to workers that did not know the job's kind.
pub(crate) const UNKNOWN_KIND: &[u8] = b"dq:unknown";

const KIND_BYTES: usize = 100;

/// Names a job on one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct JobKey {
    pub key: Arc<[u8]>,
    pub id: Arc<[u8]>,
}

/// The job's own terms, or else those of its queue's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub ttr: Duration,
    /// 0: no limit.
    pub max_attempts: u32,
    /// The wait after a failure of this delivery; `None`: neither the job nor its queue has a backoff.
    pub wait: Option<Duration>,
}

/// How a job ended that this job came after: id, outcome, value.
pub(crate) type Before = (Vec<u8>, Option<String>, Option<Vec<u8>>);

#[derive(Debug)]
pub(crate) struct Delivered {
    pub job: JobKey,
    pub token: Vec<u8>,
    pub payload: Vec<u8>,
    pub attempt: u32,
    pub deadline_ms: i64,
    pub due_ms: i64,
    pub results: Vec<Before>,
    pub steps: Vec<(Vec<u8>, Vec<u8>)>,
    pub terms: Terms,
    envelope: OnceLock<Option<Envelope>>,
}

impl PartialEq for Delivered {
    fn eq(&self, other: &Self) -> bool {
        self.job == other.job && self.token == other.token
    }
}

impl Delivered {
    pub fn new(job: JobKey, payload: Vec<u8>, terms: Terms) -> Self {
        Delivered {
            job,
            token: Vec::new(),
            payload,
            attempt: 1,
            deadline_ms: 0,
            due_ms: 0,
            results: Vec::new(),
            steps: Vec::new(),
            terms,
            envelope: OnceLock::new(),
        }
    }

    /// A row of `DQ.BPOP ... WITHDUE WITHRESULTS WITHSTEPS WITHTERMS`.
    pub fn read(key: &Arc<[u8]>, row: Value) -> Option<Self> {
        let Value::Array(row) = row else { return None };
        let [id, payload, token, attempt, deadline, due, results, steps, terms] =
            <[Value; 9]>::try_from(row).ok()?;
        let job = JobKey {
            key: key.clone(),
            id: values::bytes(id)?.into(),
        };
        Some(Delivered {
            token: values::bytes(token)?,
            attempt: values::int(&attempt) as u32,
            deadline_ms: values::int(&deadline),
            due_ms: values::int(&due),
            results: values::list(results)
                .into_iter()
                .filter_map(before)
                .collect(),
            steps: values::pairs(steps),
            ..Delivered::new(job, values::bytes(payload)?, self::terms(&terms)?)
        })
    }

    /// How many deliveries went to workers that did not know the kind.
    pub fn unknown(&self) -> u32 {
        let mut kept = self.steps.iter().filter(|(name, _)| name == UNKNOWN_KIND);
        let count = kept
            .next()
            .and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse().ok());
        count.unwrap_or(0).min(self.attempt.saturating_sub(1))
    }

    /// Its kind for a log or a reason: it may be as long as a payload.
    pub fn shown_kind(&self) -> String {
        let kind = self.envelope().and_then(|it| it.kind.clone());
        clean(kind.unwrap_or_default(), KIND_BYTES)
    }

    pub fn envelope(&self) -> Option<&Envelope> {
        let opened = self.envelope.get_or_init(|| Envelope::read(&self.payload));
        opened.as_ref()
    }
}

pub(crate) fn before(row: Value) -> Option<Before> {
    let [id, outcome, value] = <[Value; 3]>::try_from(values::list(row)).ok()?;
    Some((
        values::bytes(id)?,
        values::text(outcome),
        values::bytes(value),
    ))
}

pub(crate) fn terms(value: &Value) -> Option<Terms> {
    let Value::Array(row) = value else {
        return None;
    };
    let [ttr, max_attempts, wait] = row.as_slice() else {
        return None;
    };
    Some(Terms {
        ttr: values::duration(ttr),
        max_attempts: values::int(max_attempts) as u32,
        wait: (!matches!(wait, Value::Nil)).then(|| values::duration(wait)),
    })
}
