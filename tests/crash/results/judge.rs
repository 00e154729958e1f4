//! Judges whether a queue has what was answered and reported in the life before.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use redis::{cmd, Value};

use super::keeper::{report, Line, Report};
use super::model::{Job, Model, Op, Policy, State, What};
use crate::clock::Clock;
use crate::cmd;
use crate::link::{bytes, number, text};
use crate::support::{Client, Reply};

/// A job as DQ.GET shows it.
#[derive(Clone, Debug)]
pub struct SeenJob {
    pub fields: BTreeMap<String, String>,
}

impl SeenJob {
    fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.field(name)
            .map(|digits| digits.parse().expect("digits"))
    }
}

/// What clients see of a queue after the server has restarted.
#[derive(Clone, Debug)]
pub struct Seen {
    from_ms: u64,
    to_ms: u64,
    pub jobs: BTreeMap<String, SeenJob>,
    /// Ids and instants of DQ.PEEK DONE.
    pub done: Vec<(String, u64)>,
    /// Replies of DQ.AWAIT for jobs that have ended.
    pub reports: Vec<Report>,
}

impl Seen {
    /// A queue with one job that has these fields.
    pub fn of(id: &str, fields: &[(&str, &str)]) -> Seen {
        let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let fields: BTreeMap<_, _> = fields.iter().map(own).collect();
        let finished = fields.get("finished");
        let finished = finished.map(|digits| digits.parse().expect("digits"));
        Seen {
            from_ms: 0,
            to_ms: 10,
            done: finished.into_iter().map(|at| (id.to_owned(), at)).collect(),
            reports: Vec::new(),
            jobs: [(id.to_owned(), SeenJob { fields })].into(),
        }
    }

    pub fn tokens(&self) -> BTreeMap<String, String> {
        let with_token = |(id, job): (&String, &SeenJob)| {
            let token = job.field("token")?;
            Some((id.clone(), token.to_owned()))
        };
        self.jobs.iter().filter_map(with_token).collect()
    }
}

#[derive(Debug)]
pub struct Found(String);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads all ids that ever existed.
pub fn look(client: &mut Client, queue: &str, before: &Model, line: &Line) -> Seen {
    let clock = Clock::new();
    let from_ms = clock.stamp().wall_ms();
    let Value::Array(done) = cmd!(client, "DQ.PEEK", queue, "DONE", "COUNT", 100_000) else {
        panic!("DQ.PEEK");
    };
    let place = |job: &Value| match job {
        Value::Array(job) => (text(&job[0]), number(&job[2])),
        other => panic!("DQ.PEEK -> {other:?}"),
    };
    let added = line.ops.iter().filter_map(|op| match &op.what {
        What::Add { id, .. } => Some(id),
        _ => None,
    });
    let ids: BTreeSet<&String> = before.jobs.keys().chain(added).collect();
    let mut jobs = BTreeMap::new();
    for &id in &ids {
        if let Some(job) = seen_job(cmd!(client, "DQ.GET", queue, id)) {
            jobs.insert(id.clone(), job);
        }
    }
    let has_ended = |id: &&&String| {
        let state = jobs.get(**id).and_then(|job| job.field("state"));
        matches!(state, None | Some("done" | "dead"))
    };
    let reports = ids.iter().filter(has_ended).map(|id| {
        let reply = client.call(cmd("DQ.AWAIT").arg(queue).arg(60).arg(id));
        report(id, 0, &raw(&reply))
    });
    Seen {
        done: done.iter().map(place).collect(),
        reports: reports.collect(),
        from_ms,
        to_ms: clock.stamp().wall_ms_up(),
        jobs,
    }
}

fn seen_job(reply: Value) -> Option<SeenJob> {
    let Value::Array(words) = reply else {
        return None;
    };
    let mut fields = BTreeMap::new();
    for pair in words.chunks_exact(2) {
        let value = match &pair[1] {
            Value::Int(_) => Some(number(&pair[1]).to_string()),
            value => bytes(value).map(|bytes| String::from_utf8(bytes).expect("text")),
        };
        fields.extend(value.map(|value| (text(&pair[0]), value)));
    }
    Some(SeenJob { fields })
}

fn raw(value: &Value) -> Reply {
    match value {
        Value::Array(items) => Reply::Array(items.iter().map(raw).collect()),
        Value::Int(number) => Reply::Integer(*number),
        Value::Nil => Reply::Null,
        other => Reply::Bulk(bytes(other).expect("bytes")),
    }
}

/// Finds out how many of the commands were carried out; returns that and the queue's state after
/// them.
pub fn judge(
    policy: Policy,
    before: &Model,
    line: &Line,
    seen: &Seen,
) -> Result<(usize, Model), Found> {
    let mut least = line.answered;
    for report in &line.reports {
        let end = line.end(&report.id, report.since);
        let end = end.ok_or_else(|| Found(format!("{report:?}, and nobody ended it")))?;
        least = least.max(end + 1);
    }
    let mut model = before.clone();
    let mut first = None;
    for carried_out in 0..=line.ops.len() {
        if carried_out >= least {
            match compare(&model, line, carried_out, seen) {
                Ok(()) => return Ok((carried_out, without_gone(model, seen))),
                Err(fault) => _ = first.get_or_insert(fault),
            }
        }
        if let Some(op) = line.ops.get(carried_out) {
            check_reports(&model, policy, line, carried_out)?;
            model.carry_out(policy, op);
        }
    }
    let fault = first.expect("one prefix at least");
    let (answered, sent) = (line.answered, line.ops.len());
    Err(Found(format!(
        "{fault}, after {least} commands; {answered} of {sent} were answered"
    )))
}

/// The model without the jobs that are gone.
fn without_gone(mut model: Model, seen: &Seen) -> Model {
    for id in model.ids(|_| true) {
        if !seen.jobs.contains_key(&id) {
            model.remove(&id);
        }
    }
    model
}

/// Checks the reports of ends that this command caused.
fn check_reports(before: &Model, policy: Policy, line: &Line, at: usize) -> Result<(), Found> {
    let op = &line.ops[at];
    let mut after = None;
    let is_its = |it: &&Report| line.end(&it.id, it.since) == Some(at);
    for report in line.reports.iter().filter(is_its) {
        let after = after.get_or_insert_with(|| {
            let mut after = before.clone();
            after.carry_out(policy, op);
            after
        });
        // The wait began after the end, when the job was not kept, or no longer.
        if report.outcome == "unknown" && is_gone_since(after, policy, &line.ops[at + 1..], report)
        {
            continue;
        }
        let (outcome, value) = match &op.what {
            What::Ack(jobs) => {
                let (_, result) = jobs.iter().find(|it| it.0 == report.id).expect("its end");
                ("done", result.as_ref())
            }
            What::Fatal { reason, .. } => ("dead", Some(reason)),
            _ => ("deleted", None),
        };
        let attempts = before.jobs[&report.id].attempts;
        let is_so = report.outcome == outcome
            && report.value.as_ref() == value
            && report.attempts == Some(attempts)
            && report.at.is_some_and(|ms| ms >= op.sent_ms);
        if !is_so {
            return Err(Found(format!("{report:?} of {op:?}")));
        }
    }
    Ok(())
}

fn is_gone_since(after: &Model, policy: Policy, ops: &[Op], report: &Report) -> bool {
    let mut model = after.clone();
    let mut ops = ops.iter();
    loop {
        match (model.jobs.contains_key(&report.id), ops.next()) {
            (false, _) => return true,
            (true, Some(op)) => model.carry_out(policy, op),
            (true, None) => return false,
        }
    }
}

fn compare(model: &Model, line: &Line, carried_out: usize, seen: &Seen) -> Result<(), String> {
    for (id, job) in &model.jobs {
        let seen_job = seen.jobs.get(id);
        compare_job(job, seen_job, seen).map_err(|what| format!("{id}: {what}"))?;
    }
    if let Some(id) = seen.jobs.keys().find(|id| !model.jobs.contains_key(*id)) {
        return Err(format!("{id} is there"));
    }
    compare_order(model, seen)?;
    for report in &seen.reports {
        compare_report(report, model, seen)?;
    }
    // The instant that was reported must be that of the file.
    let ended = &line.ops[..carried_out];
    for report in line.reports.iter().filter(|it| it.outcome == "done") {
        let last = ended.iter().rposition(|op| match &op.what {
            What::Kick(id) => *id == report.id,
            what => what.ends(&report.id),
        });
        let finished = seen.jobs.get(&report.id);
        let finished = finished.and_then(|job| job.number("finished"));
        let is_last = last == line.end(&report.id, report.since);
        if is_last && finished.is_some_and(|ms| Some(ms) != report.at) {
            return Err(format!("{report:?}, and finished {finished:?}"));
        }
    }
    Ok(())
}

fn compare_job(job: &Job, seen_job: Option<&SeenJob>, seen: &Seen) -> Result<(), String> {
    let kept_until = |since: u64| match job.state {
        State::Done { kept_ms, .. } => kept_ms.map(|ms| since + ms),
        _ => None,
    };
    let Some(seen_job) = seen_job else {
        let may_be_over = match job.state {
            State::Done { since_ms, .. } => kept_until(since_ms).is_some_and(|ms| ms <= seen.to_ms),
            _ => false,
        };
        return match may_be_over {
            true => Ok(()),
            false => Err(format!("{:?}, and is not there", job.state)),
        };
    };
    let finished = seen_job.number("finished");
    let (result, reason, is_within) = match &job.state {
        State::Ready | State::Reserved => (None, None, finished.is_none()),
        State::Dead { reason } => (None, Some(reason.as_str()), finished.is_none()),
        State::Done {
            result, since_ms, ..
        } => {
            // It is kept from the next full millisecond on.
            let is_within = finished.is_some_and(|ms| {
                ms >= *since_ms && kept_until(ms).is_none_or(|end| end >= seen.from_ms)
            });
            (result.as_deref(), None, is_within)
        }
    };
    // A job that was kicked keeps the reason of its death.
    let reason_fits = match &job.state {
        State::Ready | State::Reserved => true,
        _ => seen_job.field("reason") == reason,
    };
    let is_so = seen_job.field("state") == Some(job.state.name())
        && seen_job.field("result") == result
        && seen_job.number("attempts") == Some(job.attempts)
        && reason_fits
        && is_within;
    match is_so {
        true => Ok(()),
        false => Err(format!("{job:?}, and is {:?}", seen_job.fields)),
    }
}

/// DQ.PEEK DONE lists them in the order of ending, with the same instants as DQ.GET.
fn compare_order(model: &Model, seen: &Seen) -> Result<(), String> {
    let finished = |id: &String| seen.jobs.get(id).and_then(|job| job.number("finished"));
    let expected: Vec<(String, u64)> = model
        .done
        .iter()
        .filter_map(|id| Some((id.clone(), finished(id)?)))
        .collect();
    // Some may have been removed between the two commands.
    let shown = seen.done.iter().filter(|(id, _)| finished(id).is_some());
    let shown: Vec<(String, u64)> = shown.cloned().collect();
    match shown == expected {
        true => Ok(()),
        false => Err(format!("PEEK DONE shows {shown:?}, not {expected:?}")),
    }
}

fn compare_report(report: &Report, model: &Model, seen: &Seen) -> Result<(), String> {
    let job = seen.jobs.get(&report.id);
    let may_go = match model.jobs.get(&report.id).map(|job| &job.state) {
        Some(State::Done {
            since_ms, kept_ms, ..
        }) => kept_ms.is_some_and(|ms| since_ms + ms <= seen.to_ms),
        _ => false,
    };
    if report.outcome == "unknown" && (job.is_none() || may_go) {
        return Ok(());
    }
    let is_so = job.is_some_and(|job| {
        let (value, at) = match report.outcome.as_str() {
            "done" => ("result", "finished"),
            _ => ("reason", "failed"),
        };
        job.field("state") == Some(&report.outcome)
            && job.field(value) == report.value.as_deref()
            && job.number(at) == report.at
            && job.number("attempts") == report.attempts
    });
    match is_so {
        true => Ok(()),
        false => Err(format!("{report:?}, and is {job:?}")),
    }
}

type Falsify = fn(&mut Line, &mut Seen) -> bool;

/// Faults that a judge must notice. A function returns false if a life has nothing to falsify.
pub const FAULTS: [(&str, Falsify); 9] = [
    ("a job that is done is missing", |_, seen| {
        let Some(id) = a_done(seen) else {
            return false;
        };
        seen.done.retain(|(done, _)| *done != id);
        seen.reports.retain(|report| report.id != id);
        seen.jobs.remove(&id).is_some()
    }),
    ("another result", |_, seen| {
        change(seen, "result", "another")
    }),
    ("no result", |_, seen| {
        let Some(id) = a_done(seen) else {
            return false;
        };
        let job = seen.jobs.get_mut(&id).expect("a job");
        seen.reports.retain(|report| report.id != id);
        job.fields.remove("result").is_some()
    }),
    ("another instant", |_, seen| change(seen, "finished", "1")),
    ("more attempts", |_, seen| change(seen, "attempts", "7")),
    ("it is reserved again", |_, seen| {
        let Some(id) = a_done(seen) else {
            return false;
        };
        seen.done.retain(|(done, _)| *done != id);
        seen.reports.retain(|report| report.id != id);
        let job = seen.jobs.get_mut(&id).expect("a job");
        job.fields.remove("finished");
        job.fields.remove("result");
        job.fields.insert("state".into(), "reserved".into());
        true
    }),
    ("another order", |_, seen| {
        let last = seen.done.len().saturating_sub(1);
        seen.done.swap(0, last);
        last > 0 && seen.done[0].0 != seen.done[last].0
    }),
    ("DQ.AWAIT answers with another result", |_, seen| {
        let mut reports = seen.reports.iter_mut();
        let done = reports.find(|report| report.outcome == "done" && report.value.is_some());
        done.map(|report| report.value = None).is_some()
    }),
    ("a waiter was told another result", |line, _| {
        let mut reports = line.reports.iter_mut();
        let done = reports.find(|report| report.outcome == "done" && report.value.is_some());
        done.map(|report| report.value = Some("another".into()))
            .is_some()
    }),
];

/// A done job with a result that is kept for long.
fn a_done(seen: &Seen) -> Option<String> {
    let stays = |job: &SeenJob| job.field("result").is_some() && job.field("keep") != Some("40");
    let mut done = seen.jobs.iter();
    done.find(|(_, job)| stays(job)).map(|(id, _)| id.clone())
}

fn change(seen: &mut Seen, field: &str, value: &str) -> bool {
    let Some(id) = a_done(seen) else {
        return false;
    };
    seen.reports.retain(|report| report.id != id);
    let job = seen.jobs.get_mut(&id).expect("a job");
    job.fields.insert(field.into(), value.into());
    true
}
