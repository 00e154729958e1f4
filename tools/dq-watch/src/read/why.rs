//! DQ.EXPLAIN of a queue or a job, with what its words need beside it.

use redis::{Cmd, Value};

use super::records::Settings;
use super::reply;
use crate::text::why::{Reason, Why};

/// Reserved jobs of which it is asked whose they are, and ready ones of which it is asked what their groups hold.
const FEW: usize = 10;

/// What was asked.
#[derive(Clone, Copy, Debug)]
pub enum Of<'a> {
    Queue,
    Job(&'a [u8]),
}

/// The commands that ask, to be sent in one packet.
pub fn commands(key: &[u8], of: Of<'_>) -> Vec<Cmd> {
    let reserved = first(key, "RESERVED");
    match of {
        Of::Queue => vec![explain(key).to_owned(), reserved, first(key, "READY")],
        Of::Job(id) => vec![explain(key).arg(id).to_owned(), reserved],
    }
}

fn explain(key: &[u8]) -> Cmd {
    redis::cmd("DQ.EXPLAIN").arg(key).to_owned()
}

/// The first jobs of a state.
pub fn first(key: &[u8], state: &str) -> Cmd {
    let mut peek = redis::cmd("DQ.PEEK");
    peek.arg(key).arg(state).arg("COUNT").arg(FEW);
    peek.arg("PREFIX").arg(0).to_owned()
}

/// The commands to which these replies lead.
pub fn more(key: &[u8], values: &[Value]) -> Vec<Cmd> {
    let is_so = |code| {
        values
            .first()
            .is_some_and(|it| reasons(it).any(|it| it.code == code))
    };
    match values {
        [_, reserved, ..] if is_so("idle") => owners(key, reserved),
        [_, _, ready] if is_so("groups") => {
            let explain = |id: &Vec<u8>| explain(key).arg(id).to_owned();
            ids(ready).iter().map(explain).collect()
        }
        _ => Vec::new(),
    }
}

/// The commands that ask who has these reserved jobs.
pub fn owners(key: &[u8], reserved: &Value) -> Vec<Cmd> {
    let get = |id: &Vec<u8>| {
        let mut get = redis::cmd("DQ.GET");
        get.arg(key).arg(id).arg("PREFIX").arg(0).to_owned()
    };
    ids(reserved).iter().map(get).collect()
}

/// Whether a client that is still connected has one of these jobs.
pub fn are_owned(jobs: &[Value]) -> bool {
    let mut jobs = jobs.iter().filter_map(|value| reply::job(value, 0));
    jobs.any(|job| job.client.is_some())
}

/// The reason that the end of a lease leaves.
const LAPSED: &[u8] = b"lease ended";

/// How many of these jobs were delivered before, until the lease expired, if that are most of them.
fn taken_before(jobs: &[Value]) -> usize {
    let of_jobs = jobs.iter().filter_map(|value| reply::job(value, 0));
    let taken = of_jobs.filter(|job| job.reason.as_deref() == Some(LAPSED));
    Some(taken.count())
        .filter(|taken| 2 * taken > jobs.len())
        .unwrap_or_default()
}

fn ids(peeked: &Value) -> Vec<Vec<u8>> {
    let jobs = reply::peeked(peeked, 0).into_iter().flatten();
    jobs.map(|job| job.id).collect()
}

fn reasons(explained: &Value) -> impl Iterator<Item = Reason> + '_ {
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
    let all = reply::array(explained).unwrap_or_default();
    all.iter().filter_map(reason)
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
    if reply::array(value).is_none() {
        return Ok(None);
    }
    let first = values.get(1).and_then(|value| reply::peeked(value, 0));
    let asked = if let Of::Queue = of { 3 } else { 2 };
    let more = values.get(asked..).unwrap_or_default();
    let is_of_group = |reason: &Reason| reason.code.starts_with("group-");
    let held = more.iter().flat_map(reasons).filter(is_of_group);
    let limits = settings.map(|it| (it.groupmax, it.grouprate));
    let (groupmax, grouprate) = limits.unwrap_or_default();
    Ok(Some(Why {
        reasons: reasons(value).collect(),
        is_of_job: matches!(of, Of::Job(_)),
        awaited: None,
        is_busy: are_owned(more),
        taken_before: taken_before(more),
        lapses: None,
        is_taken: false,
        is_of_replica: false,
        first_lease_ms: first.and_then(|jobs| jobs.first()?.at_ms),
        held: (held.collect(), more.len()),
        groupmax,
        grouprate,
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

    #[test]
    fn the_group_is_named_and_a_lease_that_is_long_over_has_ended() {
        let read = |reason| read(&[explained(&[reason])], Of::Job(b"a"), None);
        let mut why = read(("blocked", 1, -1)).unwrap().expect("something");
        assert_eq!(why.line(0), "it waits for one other job");
        why.awaited = Some(b"g\x1b".to_vec());
        assert_eq!(why.line(0), "it waits for the group g\\x1b");
        let why = read(("reserved", -1, 40_000)).unwrap().expect("something");
        let said = "a worker has it, its lease ended 1 min ago, and the server has not said more";
        assert_eq!(why.line(100_000), said);
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
    fn what_holds_a_queue_is_known_in_a_few_words() {
        let hold = |reasons: &[(&str, i64, i64)]| {
            let why = read(&[explained(reasons)], Of::Queue, None).expect("no error");
            let hold = why.expect("something").hold()?;
            Some((hold.words, hold.until_ms))
        };
        let rate = ("rate", 10, 160_000);
        let most = "2 jobs are reserved, as many as MAXRESERVED allows";
        assert_eq!(hold(&[("paused", -1, -1), ("idle", 3, -1)]), None);
        assert_eq!(
            hold(&[rate]),
            Some(("RATE is used up".to_owned(), Some(160_000)))
        );
        assert_eq!(
            hold(&[rate, ("maxreserved", 2, -1)]),
            Some((most.to_owned(), None))
        );
        assert_eq!(
            hold(&[("groups", 78, 105_000)]),
            Some(("their groups are held".to_owned(), None))
        );
    }

    #[test]
    fn an_older_module_is_told_as_such() {
        let none = redis::parse_redis_value(b"-ERR unknown command 'DQ.EXPLAIN', with args\r\n");
        let said = read(&[none.unwrap()], Of::Queue, None).unwrap_err();
        assert!(said.starts_with("the server has no DQ.EXPLAIN"), "{said}");
        assert_eq!(read(&[Value::Nil], Of::Queue, None), Ok(None));
    }

    /// What the second packet's replies add, with a job in each list of the first.
    fn with_more(reasons: &[(&str, i64, i64)], of: Of<'_>, more: &[Value]) -> String {
        let settings = Settings {
            groupmax: 2,
            grouprate: (5, 60_000),
            ..Settings::default()
        };
        let job = [
            bulk("a"),
            bulk(""),
            Value::Int(112_000),
            Value::Int(1),
            Value::Int(0),
        ];
        let peeked = Value::Array(vec![Value::Array(job.to_vec())]);
        let mut values = vec![explained(reasons), peeked.clone()];
        values.extend(matches!(of, Of::Queue).then_some(peeked));
        let asked = super::more(b"q", &values).len();
        assert_eq!(asked, usize::from(!more.is_empty()));
        values.extend_from_slice(more);
        let why = read(&values, of, Some(&settings)).expect("no error");
        why.expect("something").line(100_000)
    }

    #[test]
    fn only_what_holds_groups_now_is_named() {
        let held = |reasons: &[(&str, i64, i64)]| {
            with_more(&[("groups", 3, -1)], Of::Queue, &[explained(reasons)])
        };
        let said = "3 jobs are ready; the groups of the first 1 are";
        assert_eq!(
            held(&[("group-paused", -1, -1), ("behind", 2, -1)]),
            format!("{said} paused")
        );
        let lease = "the next lease ends in 12 s";
        assert_eq!(
            held(&[("group-max", 2, -1), ("group-rate", 5, 101_000)]),
            format!("{said} at GROUPMAX 2, or at GROUPRATE 5 in 1 min; {lease}")
        );
        assert_eq!(
            held(&[("group-max", 3, -1), ("group-rate", 9, 101_000)]),
            format!("{said} at their own MAX, or at their own RATE; {lease}")
        );
        let fifo = [explained(&[("group-fifo", -1, -1)])];
        assert_eq!(
            with_more(&[("groups", 1, -1)], Of::Queue, &fifo),
            format!(
                "1 job is ready; its group is in order, behind a job that has not ended; {lease}"
            )
        );
    }

    #[test]
    fn a_lease_of_a_client_that_is_connected_is_a_worker() {
        let job = |client: Value| {
            let fields = [
                ("id", bulk("a")),
                ("payload", bulk("")),
                ("state", bulk("reserved")),
            ];
            let number = |name| (name, Value::Int(1));
            let numbers = ["priority", "ttr", "attempts", "max-attempts"].map(number);
            let client = [("client", client), ("backoff", Value::Array(Vec::new()))];
            let all = fields.into_iter().chain(numbers).chain(client);
            [Value::Map(
                all.map(|(name, value)| (bulk(name), value)).collect(),
            )]
        };
        let idle = [("idle", 4, -1)];
        for (of, client, said) in [
            (
                Of::Queue,
                bulk("w"),
                "4 jobs are ready; all workers are busy",
            ),
            (
                Of::Job(b"b"),
                bulk("w"),
                "it could be delivered; all workers are busy",
            ),
            (
                Of::Queue,
                Value::Nil,
                "4 jobs are ready, and no client asks for any; the next lease ends in 12 s",
            ),
            (
                Of::Job(b"b"),
                Value::Nil,
                "it could be delivered, and no client asks for it",
            ),
        ] {
            assert_eq!(with_more(&idle, of, &job(client)), said);
        }
        assert_eq!(
            with_more(&[("empty", -1, -1)], Of::Queue, &[]),
            "no job is to be delivered"
        );
    }
}
