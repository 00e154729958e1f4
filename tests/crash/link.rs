//! A client's connection to a server that may die at any moment, and the parsing of its replies.

use redis::{Arg, Cmd, Value};

use crate::history::{Corpse, Delivery, Lease};
use crate::support::Client;

/// The result of a command.
pub enum Said {
    Reply(Value),
    /// It had no effect: this server does not serve it, or no longer does.
    Refused,
    /// The connection died before the answer.
    Nothing,
}

/// Errors of a server that is changing its role. Any other error is a fault.
const UNDER_WAY: [&str; 5] = [
    "READONLY",
    "UNBLOCKED",
    "LOADING",
    "MASTERDOWN",
    "EXECABORT",
];

#[track_caller]
pub fn ask(client: &mut Client, command: &Cmd) -> Said {
    match client.call_raw(command) {
        Ok(Value::ServerError(error)) => {
            let text = format!("{} {}", error.code(), error.details().unwrap_or_default());
            if text.starts_with("MAXLEN") && is_add(command) {
                return Said::Reply(Value::ServerError(error));
            }
            let known = UNDER_WAY.iter().any(|word| text.starts_with(word));
            assert!(known, "{} -> {text}", printable(command));
            Said::Refused
        }
        Ok(value) => Said::Reply(value),
        Err(error) => {
            assert!(!error.is_timeout(), "{}: no answer", printable(command));
            Said::Nothing
        }
    }
}

fn is_add(command: &Cmd) -> bool {
    matches!(command.args_iter().next(), Some(Arg::Simple(b"DQ.ADD")))
}

fn printable(command: &Cmd) -> String {
    command.get_packed_command().escape_ascii().to_string()
}

#[track_caller]
pub fn number(value: &Value) -> u64 {
    match value {
        Value::Int(number) => *number as u64,
        other => panic!("no number: {other:?}"),
    }
}

pub fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes.clone()),
        Value::SimpleString(text) => Some(text.clone().into_bytes()),
        _ => None,
    }
}

#[track_caller]
pub fn text(value: &Value) -> String {
    let bytes = bytes(value).unwrap_or_else(|| panic!("no text: {value:?}"));
    String::from_utf8(bytes).expect("text")
}

/// The reply of DQ.POP and DQ.BPOP, with and without COUNT. `queue` is that of a POP.
#[track_caller]
pub fn deliveries(value: &Value, queue: Option<&str>) -> Vec<Delivery> {
    let Value::Array(items) = value else {
        assert_eq!(*value, Value::Nil, "an answer of POP");
        return Vec::new();
    };
    match (queue, items.as_slice()) {
        (Some(_), []) => Vec::new(),
        (Some(queue), [Value::Array(_), ..]) => several(items, queue),
        (Some(queue), job) => vec![delivery(job, queue)],
        (None, [queue, Value::Array(jobs)]) => several(jobs, &text(queue)),
        (None, [queue, job @ ..]) => vec![delivery(job, &text(queue))],
        (None, []) => panic!("an empty answer of BPOP"),
    }
}

#[track_caller]
fn several(jobs: &[Value], queue: &str) -> Vec<Delivery> {
    let one = |job: &Value| match job {
        Value::Array(job) => delivery(job, queue),
        other => panic!("no job: {other:?}"),
    };
    jobs.iter().map(one).collect()
}

#[track_caller]
fn delivery(job: &[Value], queue: &str) -> Delivery {
    let [id, payload, token, attempts, deadline] = job else {
        panic!("no job: {job:?}");
    };
    Delivery {
        queue: queue.to_owned(),
        id: text(id),
        payload: bytes(payload).expect("a payload"),
        lease: (*token != Value::Nil).then(|| Lease {
            token: text(token).parse().expect("digits"),
            deadline: number(deadline),
        }),
        attempts: number(attempts) as u32,
    }
}

/// MAXLEN in the reply of DQ.GROUPGET; 0 without one. RATE was said with it.
#[track_caller]
pub fn own_of(value: &Value) -> u64 {
    let Value::Array(fields) = value else {
        assert_eq!(*value, Value::Nil, "an answer of GROUPGET");
        return 0;
    };
    let own = number(&fields[7]);
    let rate = Value::Array(vec![Value::Int(own as i64); 2]);
    assert_eq!(fields[5], rate, "half of what was said");
    own
}

/// The reply of DQ.PEEK.
#[track_caller]
pub fn corpses(value: &Value) -> Vec<Corpse> {
    let one = |job: &Value| match job {
        Value::Array(job) => Corpse {
            payload: bytes(&job[1]).expect("a payload"),
            attempts: number(&job[3]) as u32,
        },
        other => panic!("no job: {other:?}"),
    };
    match value {
        Value::Array(jobs) => jobs.iter().map(one).collect(),
        other => panic!("no jobs: {other:?}"),
    }
}
