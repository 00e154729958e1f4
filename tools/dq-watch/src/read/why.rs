//! DQ.EXPLAIN of a queue or a job, with what its words need beside it.

use redis::{Cmd, Value};

use super::records::{Group, Settings};
use super::reply;
use crate::text::why::{Reason, Why};

/// Groups that are looked at, to count those that are at GROUPMAX.
const GROUPS: usize = 1000;

/// What was asked.
#[derive(Clone, Copy, Debug)]
pub enum Of<'a> {
    Queue,
    /// With the groups that are at GROUPMAX.
    QueueAndGroups,
    Job(&'a [u8]),
}

/// The commands that ask, to be sent in one packet.
pub fn commands(key: &[u8], of: Of<'_>) -> Vec<Cmd> {
    let about = |name: &str| redis::cmd(name).arg(key).to_owned();
    let mut explain = about("DQ.EXPLAIN");
    if let Of::Job(id) = of {
        return vec![explain.arg(id).to_owned()];
    }
    let mut first = about("DQ.PEEK");
    first.arg("RESERVED").arg("PREFIX").arg(0);
    let mut all = vec![explain, first];
    if let Of::QueueAndGroups = of {
        let mut groups = about("DQ.GROUPS");
        all.push(groups.arg(0).arg("COUNT").arg(GROUPS).to_owned());
    }
    all
}

/// What the replies say; `settings` are the queue's. `None`: no such queue or job. An error is the server's, as when its
/// module is older, or the user may not ask.
pub fn read(
    values: &[Value],
    of: Of<'_>,
    settings: Option<&Settings>,
) -> Result<Option<Why>, String> {
    let Some(value) = values.first() else {
        return Ok(None);
    };
    if let Some(error) = reply::error(value) {
        return Err(match error.contains("unknown command") {
            true => "the server has no DQ.EXPLAIN: its dq module is older than this program, or not loaded".to_owned(),
            false => error,
        });
    }
    let Some(reasons) = reply::array(value) else {
        return Ok(None);
    };
    let reason = |value: &Value| {
        let [code, number, until, ..] = reply::array(value)? else {
            return None;
        };
        Some(Reason {
            code: reply::text(code)?,
            number: reply::int(number).unwrap_or_default().max(0) as u64,
            until_ms: reply::int(until),
        })
    };
    let limits = settings.map(|it| (it.groupmax, it.grouprate, it.groupfifo));
    let (groupmax, grouprate, groupfifo) = limits.unwrap_or_default();
    let first = values.get(1).and_then(|value| reply::peeked(value, 0));
    let full = |value: &Value| {
        let (cursor, groups) = reply::groups(value)?;
        let is_full = |group: &&Group| group.waiting > 0 && group.reserved >= groupmax;
        (cursor == "0").then(|| groups.iter().filter(is_full).count())
    };
    Ok(Some(Why {
        reasons: reasons.iter().filter_map(reason).collect(),
        is_of_job: matches!(of, Of::Job(_)),
        first_lease_ms: first.and_then(|jobs| jobs.first()?.at_ms),
        full_groups: values.get(2).and_then(full),
        groupmax,
        grouprate,
        groupfifo,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn maybe(number: i64) -> Value {
        match number {
            -1 => Value::Nil,
            number => Value::Int(number),
        }
    }

    fn explained(reasons: &[(&str, i64, i64)]) -> Value {
        let of = |&(code, number, until): &(&str, i64, i64)| {
            Value::Array(vec![bulk(code), maybe(number), maybe(until)])
        };
        Value::Array(reasons.iter().map(of).collect())
    }

    fn line(reasons: &[(&str, i64, i64)], of: Of<'_>) -> String {
        let why = read(&[explained(reasons)], of, None).expect("no error");
        why.expect("something").line(100_000)
    }

    #[test]
    fn each_code_has_words() {
        for (of, reasons, said) in [
            (Of::Queue, &[("paused", -1, -1), ("maxreserved", 2, -1)][..],
                "the queue is paused until it is resumed; 2 jobs are reserved, as many as MAXRESERVED allows"),
            (Of::Queue, &[("paused", -1, 112_000), ("empty", -1, -1)],
                "the queue is paused, it goes on in 12 s; no job is to be delivered"),
            (Of::Queue, &[("delayed", 1, 101_000), ("blocked", 3, -1), ("reserved", 2, 99_000)],
                "1 job is delayed, it is due in 1.0 s; 3 jobs are blocked, after others; 2 jobs are reserved, the next lease ends now"),
            (Of::Queue, &[("groups", 3, 105_000)], "3 jobs are ready; their groups are held; the next can go in 5.0 s"),
            (Of::Queue, &[("rate", 5, 160_000)], "RATE is used up, the next job fits in 1 min"),
            (Of::Queue, &[("fill", 2, 103_000)],
                "2 clients wait for a full batch, and the first takes what is there in 3.0 s"),
            (Of::Queue, &[("idle", 4, -1)], "4 jobs are ready, and no client asks for any"),
            (Of::Queue, &[], "clients wait, and are served at once"),
            (Of::Queue, &[("new\x1b[2J", 4, 101_000)], "new\\x1b[2J 4 until in 1.0 s"),
            (Of::Job(b"a"), &[("reserved", -1, 112_000)], "a worker has it, its lease ends in 12 s"),
            (Of::Job(b"a"), &[("dead", -1, -1)], "it is dead, until it is kicked"),
            (Of::Job(b"a"), &[("blocked", 3, -1)], "it waits for 3 other jobs"),
            (Of::Job(b"a"), &[("signal", -1, -1)], "it waits for a signal"),
            (Of::Job(b"a"), &[("delayed", -1, 101_000)], "it is due in 1.0 s"),
            (Of::Job(b"a"), &[("group-paused", -1, -1), ("group-max", 1, -1)],
                "its group is paused until it is resumed; its group has 1 job reserved, as many as it may"),
            (Of::Job(b"a"), &[("group-rate", 5, 101_000), ("group-fifo", -1, -1)],
                "its group's rate is used up, it fits in 1.0 s; an earlier job of its group has not ended"),
            (Of::Job(b"a"), &[("behind", 1000, -1), ("idle", 1001, -1)],
                "1,000 ready jobs or more come before it; it could be delivered, and no client asks for it"),
        ] {
            assert_eq!(line(reasons, of), said);
        }
    }

    #[test]
    fn an_older_module_is_told_as_such() {
        let none = redis::parse_redis_value(b"-ERR unknown command 'DQ.EXPLAIN', with args\r\n");
        let said = read(&[none.unwrap()], Of::Queue, None).unwrap_err();
        assert!(said.starts_with("the server has no DQ.EXPLAIN"), "{said}");
        assert_eq!(read(&[Value::Nil], Of::Queue, None), Ok(None));
    }

    #[test]
    fn groups_at_their_limit_are_counted() {
        let settings = Settings {
            groupmax: 1,
            ..Settings::default()
        };
        let job = [
            bulk("a"),
            bulk(""),
            Value::Int(112_000),
            Value::Int(1),
            Value::Int(0),
        ];
        let group = |name: &str, waiting, reserved| {
            Value::Array(vec![bulk(name), Value::Int(waiting), Value::Int(reserved)])
        };
        let groups = vec![group("x", 2, 1), group("y", 1, 1), group("z", 0, 1)];
        let values = [
            explained(&[("groups", 3, -1)]),
            Value::Array(vec![Value::Array(job.to_vec())]),
            Value::Array(vec![bulk("0"), Value::Array(groups)]),
        ];
        let why = read(&values, Of::QueueAndGroups, Some(&settings))
            .unwrap()
            .unwrap();
        assert_eq!(
            why.line(100_000),
            "3 jobs are ready; their 2 groups are at GROUPMAX 1; the next lease ends in 12 s"
        );
    }
}
