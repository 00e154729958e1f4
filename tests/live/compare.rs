//! Compares everything that a client can see of the queue with the model.

use std::collections::BTreeMap;

use dq::queue::job::State;

use crate::model::{Job, Link, Model, Phase};
use crate::op::Value;
use crate::support::{Raw, Reply};
use crate::wire::ZONE;

type Fields = BTreeMap<String, String>;

fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn show(reply: &Reply) -> String {
    match reply {
        Reply::Bulk(bytes) => text(bytes),
        Reply::Integer(number) => number.to_string(),
        Reply::NullBulk => "nil".to_owned(),
        Reply::Array(items) => format!("{:?}", items.iter().map(show).collect::<Vec<_>>()),
        other => format!("{other:?}"),
    }
}

/// Each job by its id, in the order of ids, as DQ.GET shows it.
pub fn seen(client: &mut Raw) -> Result<Vec<Fields>, String> {
    let mut ids = Vec::new();
    let mut cursor = b"0".to_vec();
    loop {
        let page = client.call(&[b"DQ.SCAN", b"q", &cursor, b"COUNT", b"1000"]);
        let Reply::Array(page) = page else {
            return Err(format!("SCAN: {page:?}"));
        };
        let [Reply::Bulk(next), Reply::Array(shown)] = &page[..] else {
            return Err(format!("SCAN: {page:?}"));
        };
        ids.extend(shown.iter().filter_map(|id| match id {
            Reply::Bulk(id) => Some(id.clone()),
            _ => None,
        }));
        cursor.clone_from(next);
        if cursor == b"0" {
            break;
        }
    }
    ids.sort_unstable();
    ids.iter().map(|id| get(client, id)).collect()
}

fn get(client: &mut Raw, id: &[u8]) -> Result<Fields, String> {
    match client.call(&[b"DQ.GET", b"q", id]) {
        Reply::Array(items) => {
            let pairs = items.chunks(2);
            let mut fields: Fields = pairs.map(|pair| (show(&pair[0]), show(&pair[1]))).collect();
            // No data: the model knows no connections.
            let client = fields.remove("client");
            client.ok_or_else(|| "GET without `client`".to_owned())?;
            Ok(fields)
        }
        other => Err(format!("GET {}: {other:?}", text(id))),
    }
}

/// The jobs of the model, as `seen` has those of the server.
pub fn expected(model: &Model, now_ms: u64) -> Vec<Fields> {
    let mut jobs: Vec<&Job> = model.jobs.iter().chain(&model.done).collect();
    jobs.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    jobs.into_iter().map(|job| fields(job, now_ms)).collect()
}

fn fields(job: &Job, now_ms: u64) -> Fields {
    let or_nil = |value: Option<u64>| value.map_or("nil".to_owned(), |value| value.to_string());
    let or_nil_text = |bytes: Option<&[u8]>| bytes.map_or("nil".to_owned(), text);
    let given = |value: Option<u64>| or_nil(value.filter(|&value| value != 0));
    let deadline = match job.phase {
        Phase::Reserved { deadline, .. } => Some(deadline),
        _ => None,
    };
    let awaits = job.notes.awaits.as_ref();
    let awaits = awaits.filter(|_| job.state(now_ms * 1000) == State::Delayed);
    let (started, end) = match &job.phase {
        Phase::Reserved { .. } => (job.token.map(|token| token >> 20), None),
        Phase::Done {
            started,
            finished,
            result,
            ..
        } => (Some(*started), Some((*finished, result.as_deref()))),
        _ => (None, None),
    };
    let failure = job.failure.as_ref();
    let reason = failure.and_then(|(_, reason)| reason.as_deref());
    let recur = job.recur.as_ref();
    let rule = recur.map(|recur| &recur.rule);
    let cron = rule.and_then(|rule| rule.text);
    let every = rule.filter(|rule| rule.text.is_none()).map(|rule| rule.ms);
    let backoff: Vec<String> = match job.backoff.as_deref() {
        Some([]) => vec!["0".to_owned()],
        own => own.iter().copied().flatten().map(u64::to_string).collect(),
    };
    let due = match job.is_blocked() {
        true => or_nil(job.named_due()),
        false => job.due.to_string(),
    };
    let waits = job.waits.as_ref();
    let blocked = waits.filter(|_| job.is_blocked());
    let list = |items: Vec<String>| format!("{items:?}");
    let after = blocked.filter(|waits| waits.group.is_none()).map(|waits| {
        let held = waits.links.iter().filter(|(_, link)| *link == Link::Held);
        list(held.map(|(id, _)| text(id)).collect())
    });
    let on_dead = blocked.filter(|waits| waits.group.is_none());
    let results = waits.filter(|waits| waits.group.is_none()).map(|waits| {
        let shown = waits.results().into_iter().map(|(id, outcome, value)| {
            let outcome = outcome.map_or("nil", |outcome| outcome.name());
            list(vec![
                text(&id),
                outcome.into(),
                or_nil_text(value.as_deref()),
            ])
        });
        list(shown.collect())
    });
    let or_nil_list = |shown: Option<String>| shown.unwrap_or_else(|| "nil".to_owned());
    let fields = [
        ("after", or_nil_list(after)),
        ("results", or_nil_list(results)),
        (
            "after-group",
            or_nil_text(blocked.and_then(|waits| waits.group.as_deref())),
        ),
        (
            "on-dead",
            or_nil_list(on_dead.map(|waits| waits.on_dead.name().to_owned())),
        ),
        ("id", text(&job.id)),
        ("payload", text(&job.payload)),
        ("payload-bytes", job.payload.len().to_string()),
        ("state", job.state(now_ms * 1000).name().to_owned()),
        ("priority", job.priority.to_string()),
        ("due", due),
        ("deadline", or_nil(deadline)),
        ("ttr", job.ttr.to_string()),
        ("attempts", job.attempts.to_string()),
        ("max-attempts", job.max_attempts.to_string()),
        ("backoff", format!("{backoff:?}")),
        ("expires", or_nil(job.expires)),
        ("token", or_nil(job.token)),
        ("reason", or_nil_text(reason)),
        ("failed", or_nil(failure.map(|(at, _)| *at))),
        ("history", history_of(job)),
        ("group", or_nil_text(job.group.as_deref())),
        (
            "next",
            or_nil_text(job.next.as_ref().map(|next| &next.payload[..])),
        ),
        ("cron", or_nil_text(cron.map(str::as_bytes))),
        ("tz", or_nil_text(cron.map(|_| ZONE.as_bytes()))),
        ("every", or_nil(every)),
        ("until", given(rule.map(|rule| rule.until))),
        ("times", given(rule.map(|rule| rule.times))),
        ("grace", given(rule.map(|rule| rule.grace))),
        ("jitter", given(rule.map(|rule| rule.jitter))),
        ("occurrence", or_nil(recur.map(|recur| recur.occurrence))),
        ("runs", or_nil(recur.map(|recur| recur.runs))),
        ("progress", or_nil_text(job.notes.progress.as_deref())),
        ("awaits", or_nil_text(awaits.map(Vec::as_slice))),
        ("steps", steps_of(job)),
        ("started", or_nil(started)),
        ("finished", or_nil(end.map(|(finished, _)| finished))),
        ("result", or_nil_text(end.and_then(|(_, result)| result))),
    ];
    let said = job.notes.said.values().map(|(attr, value)| {
        let value = value.map(|value| match value {
            Value::Number(number) => number.to_string(),
            Value::Text(bytes) => text(&bytes),
        });
        (
            attr.row().field(),
            value.unwrap_or_else(|| "nil".to_owned()),
        )
    });
    let all = fields.into_iter().chain(said);
    all.map(|(name, value)| (name.to_owned(), value)).collect()
}

fn history_of(job: &Job) -> String {
    let attempts = job.notes.history.iter().map(|past| {
        let reason = past.reason.as_deref().map_or("nil".to_owned(), text);
        let instants = [past.started(), past.ended].map(|at| at.to_string());
        let [started, ended] = instants;
        let fields = vec![past.attempts.to_string(), started, ended];
        format!("{:?}", [fields, vec![past.how.to_owned(), reason]].concat())
    });
    format!("{:?}", attempts.collect::<Vec<_>>())
}

fn steps_of(job: &Job) -> String {
    if job.notes.steps.is_empty() {
        return "nil".to_owned();
    }
    let steps = job.notes.steps.iter();
    let words: Vec<String> = steps
        .flat_map(|(name, value)| [text(name), text(value)])
        .collect();
    format!("{words:?}")
}

/// The first difference, with that whole job on both sides.
pub fn difference(seen: &[Fields], expected: &[Fields]) -> Option<String> {
    let id = |job: &Fields| job.get("id").cloned().unwrap_or_default();
    let ids = |jobs: &[Fields]| jobs.iter().map(id).collect::<Vec<_>>();
    if ids(seen) != ids(expected) {
        return Some(format!("jobs {:?} and not {:?}", ids(seen), ids(expected)));
    }
    let jobs = || seen.iter().zip(expected);
    // Also a field that only one side has.
    let mut names = jobs().flat_map(|(seen, expected)| {
        let names = expected.keys().chain(seen.keys());
        names.map(move |name| (seen, expected, name))
    });
    names.find_map(|(seen, expected, name)| {
        let (is, value) = (seen.get(name), expected.get(name));
        (is != value).then(|| {
            let of = id(expected);
            format!("{name} of {of:?} is {is:?} and not {value:?}\nseen {seen:?}\nnot {expected:?}")
        })
    })
}
