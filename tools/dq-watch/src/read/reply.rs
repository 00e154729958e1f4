//! Replies of the server as Rust values; RESP2 and RESP3 alike. What is not as expected is None.

pub use dq_connect::reply::{array, bytes, error, int, moved_to, text, time_ms};
use redis::Value;

use super::records::{
    After, Attempt, Cut, Ended, Group, Job, PeekedJob, Rule, Settings, Step, When, IN_LIST,
    REASON_MAX,
};
use super::said;
use crate::model::stats::{Jobs, Stats, STATES, TOTALS};

fn natural(value: &Value) -> Option<u64> {
    int(value)?.try_into().ok()
}

/// Looks up names in a map, or in a flat array of names and values.
pub(super) struct Fields<'a>(Vec<(&'a Value, &'a Value)>);

impl<'a> Fields<'a> {
    pub(super) fn of(value: &'a Value) -> Option<Fields<'a>> {
        match value {
            Value::Map(pairs) => Some(Fields(pairs.iter().map(|(name, it)| (name, it)).collect())),
            Value::Array(flat) if flat.len() % 2 == 0 => Some(Fields(
                flat.chunks(2).map(|pair| (&pair[0], &pair[1])).collect(),
            )),
            _ => None,
        }
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        let named = |field: &Value| {
            matches!(field, Value::BulkString(it) if it == name.as_bytes())
                || matches!(field, Value::SimpleString(it) if it == name)
        };
        self.0
            .iter()
            .find(|(field, _)| named(field))
            .map(|(_, value)| *value)
    }

    pub(super) fn natural(&self, name: &str) -> Option<u64> {
        natural(self.get(name)?)
    }

    pub(super) fn int(&self, name: &str) -> Option<i64> {
        int(self.get(name)?)
    }

    /// The value of this name, an array of integers.
    pub(super) fn naturals(&self, name: &str) -> Option<Vec<u64>> {
        array(self.get(name)?)?.iter().map(natural).collect()
    }
}

/// A connection of CLIENT LIST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    pub id: u64,
    /// Its last command asks for jobs.
    pub asks: bool,
    pub is_young: bool,
}

/// A program may connect for one command.
const YOUNG_S: u64 = 2;

/// CLIENT LIST: the connections to these databases.
pub fn clients(value: &Value, has: impl Fn(u32) -> bool) -> Option<Vec<Client>> {
    if error(value).is_some() {
        return None;
    }
    // Names have no spaces.
    let client = |line: &str| {
        let field = |name: &str| {
            let mut words = line.split(' ').filter_map(|word| word.split_once('='));
            words.find(|(it, _)| *it == name).map(|(_, value)| value)
        };
        let number = |name: &str| field(name)?.parse::<u64>().ok();
        let db = number("db")?.try_into().ok()?;
        let command = field("cmd")?.to_ascii_lowercase();
        let asks = ["dq.bpop", "dq.pop"].contains(&command.as_str());
        has(db).then_some(Client {
            id: number("id")?,
            asks,
            is_young: number("age")? < YOUNG_S,
        })
    };
    Some(text(value)?.lines().filter_map(client).collect())
}

/// DQ.STATS.
pub fn stats(value: &Value) -> Option<Stats> {
    let fields = Fields::of(value)?;
    let mut jobs = Jobs::default();
    for (count, state) in jobs.iter_mut().zip(STATES) {
        *count = match state {
            // Older modules do not have these states.
            "blocked" | "done" => fields.natural(state).unwrap_or_default(),
            _ => fields.natural(state)?,
        };
    }
    let buckets = array(fields.get("lateness-buckets")?)?
        .iter()
        .map(|bucket| {
            let [bound, count] = array(bucket)? else {
                return None;
            };
            Some((natural(bound), natural(count)?))
        });
    Some(Stats {
        jobs,
        next_due: fields.int("next-due"),
        oldest_ready_ms: fields.natural("oldest-ready-ms"),
        waiting_clients: fields.natural("waiting-clients")?,
        recurring: fields.natural("recurring").unwrap_or_default(),
        groups: fields.natural("groups").unwrap_or_default(),
        rate_used: fields.natural("rate-used").unwrap_or_default(),
        bytes: fields.natural("bytes").unwrap_or_default(),
        done_bytes: fields.natural("done-bytes").unwrap_or_default(),
        paused: fields.int("paused")?,
        totals: TOTALS.map(|name| fields.natural(name).unwrap_or_default()),
        lateness_count: fields.natural("lateness-count")?,
        lateness_sum_us: fields.natural("lateness-sum")?,
        lateness_max_us: fields.natural("lateness-max")?,
        lateness: buckets.collect::<Option<_>>()?,
    })
}

/// DQ.CFGGET.
pub fn settings(value: &Value) -> Option<Settings> {
    let fields = Fields::of(value)?;
    let pair = |name| {
        let numbers = fields.naturals(name)?;
        Some((*numbers.first()?, *numbers.get(1)?))
    };
    // Older modules have no limits of bytes, groups or done jobs.
    let newer = |name| fields.natural(name).unwrap_or_default();
    Some(Settings {
        ttr_ms: fields.natural("ttr")?,
        attempts: fields.natural("attempts")?,
        backoff_ms: fields.naturals("backoff")?,
        maxlen: fields.natural("maxlen")?,
        maxbytes: newer("maxbytes"),
        deadlen: fields.natural("deadlen")?,
        dedupe_ms: fields.natural("dedupe")?,
        maxreserved: fields.natural("maxreserved")?,
        rate: pair("rate")?,
        groupmax: newer("groupmax"),
        grouprate: pair("grouprate").unwrap_or_default(),
        groupfifo: newer("groupfifo") != 0,
        donelen: newer("donelen"),
        donettl_ms: newer("donettl"),
        donebytes: newer("donebytes"),
        history: newer("history"),
        paused: fields.int("paused").unwrap_or_default(),
        why: None,
    })
}

/// DQ.GROUPS: the next cursor, and the groups.
pub fn groups(value: &Value) -> Option<(String, Vec<Group>)> {
    let [cursor, groups] = array(value)? else {
        return None;
    };
    let group = |value: &Value| {
        let [name, waiting, reserved] = array(value)? else {
            return None;
        };
        Some(Group {
            name: bytes(name)?,
            waiting: natural(waiting)?,
            reserved: natural(reserved)?,
        })
    };
    let groups: Option<_> = array(groups)?.iter().map(group).collect();
    Some((text(cursor)?, groups?))
}

/// A payload of which the server says how long it is.
fn whole(bytes: &[u8], longest: usize, length: Option<u64>) -> Cut {
    let cut = Cut::of(bytes, longest);
    Cut {
        length: length.map_or(cut.length, |length| length as usize),
        ..cut
    }
}

/// DQ.PEEK, each payload cut to `longest`.
pub fn peeked(value: &Value, longest: usize) -> Option<Vec<PeekedJob>> {
    let jobs = array(value)?.iter().map(|job| {
        let [id, payload, at, attempts, priority, length @ ..] = array(job)? else {
            return None;
        };
        Some(PeekedJob {
            id: bytes(id)?,
            payload: whole(&bytes(payload)?, longest, length.first().and_then(natural)),
            at_ms: match at {
                Value::Nil => None,
                at => Some(int(at)?),
            },
            attempts: natural(attempts)?,
            priority: int(priority)?,
        })
    });
    jobs.collect()
}

/// DQ.GET, the payload cut to `longest`.
pub fn job(value: &Value, longest: usize) -> Option<Job> {
    let fields = Fields::of(value)?;
    Some(Job {
        id: bytes(fields.get("id")?)?,
        payload: whole(
            &bytes(fields.get("payload")?)?,
            longest,
            fields.natural("payload-bytes"),
        ),
        state: text(fields.get("state")?)?,
        why: None,
        priority: fields.int("priority")?,
        due_ms: fields.int("due"),
        deadline_ms: fields.int("deadline"),
        ttr_ms: fields.natural("ttr")?,
        attempts: fields.natural("attempts")?,
        max_attempts: fields.natural("max-attempts")?,
        backoff_ms: fields.naturals("backoff")?,
        expires_ms: fields.int("expires"),
        token: fields.get("token").and_then(text),
        failed_ms: fields.int("failed"),
        reason: fields.get("reason").and_then(bytes),
        history: history(&fields).unwrap_or_default(),
        client: fields.get("client").and_then(bytes),
        group: fields.get("group").and_then(bytes),
        successor: fields
            .get("next")
            .and_then(bytes)
            .map(|payload| Cut::of_prefix(&payload, longest)),
        rule: rule(&fields),
        started_ms: fields.int("started"),
        finished_ms: fields.int("finished"),
        result: fields
            .get("result")
            .and_then(bytes)
            .map(|result| Cut::of_prefix(&result, longest)),
        progress: fields.get("progress").and_then(bytes),
        awaits: fields.get("awaits").and_then(bytes),
        after: after(&fields),
        results: results(&fields).unwrap_or_default(),
        steps: steps(&fields),
        said: said::of(
            |name| fields.natural(name),
            |name| fields.get(name).and_then(bytes),
        ),
    })
}

fn history(fields: &Fields) -> Option<Vec<Attempt>> {
    let attempts = array(fields.get("history")?)?.iter().map(|attempt| {
        let [attempts, started, ended, how, reason] = array(attempt)? else {
            return None;
        };
        Some(Attempt {
            attempts: natural(attempts)?,
            started_ms: int(started)?,
            ended_ms: int(ended)?,
            how: text(how)?,
            reason: bytes(reason),
        })
    });
    attempts.collect()
}

fn steps(fields: &Fields) -> Vec<Step> {
    let steps = fields.get("steps").and_then(Fields::of);
    let step = |(name, value): (&Value, &Value)| {
        Some(Step {
            name: bytes(name)?,
            value: Cut::of_prefix(&bytes(value)?, IN_LIST),
        })
    };
    let steps = steps.map(|Fields(pairs)| pairs.into_iter().filter_map(step).collect());
    steps.unwrap_or_default()
}

fn after(fields: &Fields) -> Option<After> {
    if let Some(name) = fields.get("after-group").and_then(bytes) {
        return Some(After::Group(name));
    }
    let ids = array(fields.get("after")?)?.iter().map(bytes);
    Some(After::Jobs {
        ids: ids.collect::<Option<_>>()?,
        on_dead: fields.get("on-dead").and_then(text)?,
    })
}

fn results(fields: &Fields) -> Option<Vec<Ended>> {
    let results = array(fields.get("results")?)?.iter().map(|result| {
        let [id, outcome, value] = array(result)? else {
            return None;
        };
        let outcome = text(outcome);
        // Of a traceback the last line tells what happened.
        let longest = match outcome.as_deref() {
            Some("dead") => REASON_MAX,
            _ => IN_LIST,
        };
        Some(Ended {
            id: bytes(id)?,
            outcome,
            value: bytes(value).map(|value| Cut::of_prefix(&value, longest)),
        })
    });
    results.collect()
}

fn rule(fields: &Fields) -> Option<Rule> {
    let when = match (fields.natural("every"), fields.get("cron").and_then(text)) {
        (Some(every_ms), _) => When::Every(every_ms),
        (None, Some(expression)) => When::Cron {
            expression,
            zone: fields.get("tz").and_then(text).unwrap_or_default(),
        },
        (None, None) => return None,
    };
    Some(Rule {
        when,
        until_ms: fields.int("until"),
        times: fields.natural("times"),
        grace_ms: fields.natural("grace"),
        jitter_ms: fields.natural("jitter"),
        occurrence_ms: fields.int("occurrence")?,
        runs: fields.natural("runs")?,
        next_ms: Vec::new(),
    })
}

/// DQ.NEXT.
pub fn instants(value: &Value) -> Option<Vec<i64>> {
    array(value)?.iter().map(int).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::said::Said;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn stats_reply() -> Vec<(Value, Value)> {
        let buckets = vec![
            Value::Array(vec![Value::Int(10), Value::Int(2)]),
            Value::Array(vec![Value::Nil, Value::Int(3)]),
        ];
        let mut fields: Vec<(Value, Value)> = [
            "delayed",
            "ready",
            "reserved",
            "dead",
            "waiting-clients",
            "lateness-count",
            "lateness-sum",
            "lateness-max",
        ]
        .into_iter()
        .zip(1..)
        .map(|(name, number)| (bulk(name), Value::Int(number)))
        .collect();
        fields.push((bulk("next-due"), Value::Nil));
        fields.push((bulk("paused"), Value::Int(-1)));
        fields.push((bulk("timed-out"), Value::Int(9)));
        fields.push((bulk("lateness-buckets"), Value::Array(buckets)));
        fields
    }

    #[test]
    fn stats_are_read_from_maps_and_flat_arrays() {
        let fields = stats_reply();
        let flat = fields
            .iter()
            .flat_map(|(name, value)| [name.clone(), value.clone()]);
        let from_array = stats(&Value::Array(flat.collect())).expect("complete");
        let from_map = stats(&Value::Map(fields)).expect("complete");
        assert_eq!(from_array, from_map);
        assert_eq!(from_map.jobs, [1, 2, 3, 4, 0, 0], "an older module's");
        assert_eq!(
            (from_map.next_due, from_map.paused, from_map.totals[4]),
            (None, -1, 9)
        );
        assert_eq!(from_map.lateness, [(Some(10), 2), (None, 3)]);
    }

    #[test]
    fn what_is_not_as_expected_is_nothing() {
        for missing in 0..4 {
            let mut fields = stats_reply();
            fields.remove(missing);
            assert_eq!(stats(&Value::Map(fields)), None);
        }
        assert_eq!(stats(&Value::Array(vec![bulk("delayed")])), None);
        assert_eq!(stats(&Value::Nil), None);
        assert!(settings(&Value::Okay).is_none());
        assert!(peeked(&Value::Array(vec![Value::Array(vec![bulk("id")])]), 9).is_none());
        assert!(job(&Value::Array(Vec::new()), 9).is_none());
    }

    #[test]
    fn jobs_are_cut() {
        let job = Value::Array(vec![
            bulk("id"),
            bulk("a long payload"),
            Value::Int(5),
            Value::Int(1),
            Value::Int(-3),
        ]);
        let jobs = peeked(&Value::Array(vec![job]), 6).expect("a job");
        assert_eq!(
            (jobs[0].payload.bytes.as_slice(), jobs[0].payload.length),
            (&b"a long"[..], 14)
        );
        assert_eq!((jobs[0].at_ms, jobs[0].priority), (Some(5), -3));
    }

    fn a_job(more: &[(&str, Value)]) -> Job {
        let common = [
            ("id", bulk("id")),
            ("payload", bulk("x")),
            ("state", bulk("blocked")),
            ("priority", Value::Int(0)),
            ("due", Value::Nil),
            ("ttr", Value::Int(1)),
            ("attempts", Value::Int(1)),
            ("max-attempts", Value::Int(0)),
            ("backoff", Value::Array(Vec::new())),
        ];
        let fields = common.iter().chain(more);
        let fields = fields.map(|(name, value)| (bulk(name), value.clone()));
        job(&Value::Map(fields.collect()), 3).expect("a job")
    }

    #[test]
    fn a_blocked_job_has_no_due_and_says_what_it_waits_for() {
        let ended = |id, outcome, value| Value::Array(vec![bulk(id), outcome, value]);
        let job = a_job(&[
            ("after", Value::Array(vec![bulk("b")])),
            ("on-dead", bulk("run")),
            (
                "results",
                Value::Array(vec![
                    ended("a", bulk("done"), bulk("twelve")),
                    ended("b", Value::Nil, Value::Nil),
                    ended("c", bulk("dead"), bulk(&"x".repeat(400))),
                ]),
            ),
        ]);
        assert_eq!((job.due_ms, job.weight()), (None, 1 + 6 + 400));
        let reason = job.results[2].value.as_ref();
        assert_eq!(reason.map(|it| it.bytes.len()), Some(400), "with its end");
        let after = After::Jobs {
            ids: vec![b"b".to_vec()],
            on_dead: "run".to_owned(),
        };
        assert_eq!(job.after, Some(after));
        let outcomes = job.results.iter().map(|it| it.outcome.as_deref());
        assert_eq!(
            outcomes.collect::<Vec<_>>(),
            [Some("done"), None, Some("dead")]
        );
        let of_group = a_job(&[("after", Value::Nil), ("after-group", bulk("acme"))]);
        assert_eq!(of_group.after, Some(After::Group(b"acme".to_vec())));
        let peeked_job = [
            bulk("id"),
            bulk("x"),
            Value::Nil,
            Value::Int(0),
            Value::Int(0),
        ];
        let jobs = Value::Array(vec![Value::Array(peeked_job.to_vec())]);
        assert_eq!(peeked(&jobs, 9).expect("a job")[0].at_ms, None);
    }

    #[test]
    fn steps_are_read_in_their_order() {
        let pair = |name, value| [bulk(name), bulk(value)];
        let steps = Value::Array([pair("paid", "ref-9"), pair("sent", "")].concat());
        let job = a_job(&[("steps", steps), ("cost", Value::Int(5))]);
        let names: Vec<&[u8]> = job.steps.iter().map(|step| step.name.as_slice()).collect();
        assert_eq!(names, [b"paid", b"sent"]);
        let five = Said {
            name: "cost",
            value: said::Value::Number(5),
        };
        assert_eq!((job.said.as_slice(), job.weight()), (&[five][..], 1 + 5));
        assert_eq!(a_job(&[]).steps, [], "an older module's");
    }

    #[test]
    fn a_done_job_has_its_result_and_how_long_it_ran() {
        let job = a_job(&[
            ("started", Value::Int(500)),
            ("finished", Value::Int(740)),
            ("result", bulk("twelve")),
        ]);
        assert_eq!((job.ran_ms(), job.weight()), (Some(240), 1 + 6));
        assert_eq!(job.result, Some(Cut::of_prefix(b"twelve", 3)));
        assert_eq!((job.after, job.results.len()), (None, 0));
    }

    #[test]
    fn moved_names_the_node() {
        assert_eq!(
            moved_to("MOVED 3999 127.0.0.1:6381"),
            Some("127.0.0.1:6381")
        );
        assert_eq!(moved_to("ERR no such thing"), None);
    }
}
