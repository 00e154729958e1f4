//! Which command ends an attempt, and what its reply means.

use super::delivery::Delivered;
use super::state::Shape;
use super::{End, Serial, Suspension};
use crate::values::ms;
use redis::{cmd, Arg, Cmd, Value};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Handlers cannot make their jobs come back faster.
pub(crate) const SHORTEST_DELAY: Duration = Duration::from_millis(100);
pub(crate) const LONGEST_REASON: usize = 1024;
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(3600);
const IN_HAND_DELAY: Duration = Duration::from_secs(1);
const UNKNOWN_KIND_DELAY: Duration = Duration::from_secs(5);
const LARGE: usize = 1 << 20;
const MOST_BREAKS: u32 = 3;

/// A command. An acknowledgement is built only when it is sent, as most are sent once.
#[derive(Debug)]
enum Way {
    Ack(Option<Vec<u8>>),
    Other(Cmd),
}

/// What the server is to be told of a delivery that ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub serial: Serial,
    pub of: Arc<Delivered>,
    /// Sent in the same write, before each of the ways. Its reply is read, too.
    first: Option<Cmd>,
    /// The commands to try in turn: each asks for less than the one before, which the server refused.
    ways: VecDeque<Way>,
    /// For a suspension: if the server refuses it, the attempt fails with the server's error as its reason.
    otherwise: Option<(Shape, f64)>,
    /// It was sent before, and the reply was lost: the server may have executed it.
    pub was_sent: bool,
    /// That the server refuses it has been logged.
    pub is_said: bool,
    /// How often the server replied an error that passes.
    pub troubles: u32,
    /// How often a connection ended after this was sent.
    breaks: u32,
    pub not_before: Option<Instant>,
}

impl Outcome {
    fn new(serial: Serial, of: &Arc<Delivered>, ways: impl IntoIterator<Item = Way>) -> Self {
        Outcome {
            serial,
            of: of.clone(),
            first: None,
            ways: ways.into_iter().collect(),
            otherwise: None,
            was_sent: false,
            is_said: false,
            troubles: 0,
            breaks: 0,
            not_before: None,
        }
    }

    /// Gives a job back whose earlier delivery still runs in this process.
    pub fn still_running(of: &Arc<Delivered>) -> Self {
        Outcome::returned_for(0, of, IN_HAND_DELAY)
    }

    /// Gives a job back, for a worker that has a handler for its kind, after a while. `jitter`: from 0 to 1.
    pub fn unknown(serial: Serial, of: &Arc<Delivered>, jitter: f64) -> Self {
        Outcome::returned_for(serial, of, UNKNOWN_KIND_DELAY.mul_f64(1.0 + jitter))
    }

    fn returned_for(serial: Serial, of: &Arc<Delivered>, wait: Duration) -> Self {
        Outcome::new(
            serial,
            of,
            [Way::Other(nack(of, "SILENT", Some(wait), None))],
        )
    }

    /// The outcome of an attempt whose handler has ended.
    pub fn ended(
        serial: Serial,
        of: &Arc<Delivered>,
        shape: &Shape,
        end: End,
        jitter: f64,
    ) -> Self {
        let ways = match end {
            End::Done(None) => vec![Way::Ack(None)],
            End::Done(result) => vec![Way::Ack(result), Way::Ack(None)],
            End::Failed { reason, wait } => failed(of, shape, &reason, wait, jitter),
            End::Snoozed { reason, wait } => {
                let wait = wait.max(SHORTEST_DELAY);
                let asked = Way::Other(nack(of, "SILENT", Some(wait), reason.as_deref()));
                let reason =
                    reason.unwrap_or_else(|| "snoozed with a delay that the server refuses".into());
                let mut ways = failed(of, shape, &reason, None, jitter);
                ways.insert(0, asked);
                ways
            }
            End::GaveUp { reason } => dead(of, &reason),
            End::GivenBack | End::Suspended => vec![Way::Other(nack(of, "SILENT", None, None))],
        };
        Outcome::new(serial, of, ways)
    }

    /// The outcome of a suspended attempt: its commands as one, which stops at the first that is refused.
    pub fn suspended(
        serial: Serial,
        of: &Arc<Delivered>,
        shape: &Shape,
        mut asked: Suspension,
        jitter: f64,
    ) -> Self {
        let whole = match asked.0.len() {
            1 => asked.0.remove(0),
            _ => all_or_refused(&of.job.key, &asked.0),
        };
        let mut outcome = Outcome::new(serial, of, [Way::Other(whole)]);
        outcome.otherwise = Some((shape.clone(), jitter));
        outcome
    }

    pub fn is_wait(&self) -> bool {
        self.otherwise.is_some()
    }

    /// Writes the commands of the current way.
    pub fn write(&self, into: &mut Vec<Cmd>) {
        let Some(way) = self.ways.front() else {
            return;
        };
        into.extend(self.first.clone());
        into.push(match way {
            Way::Ack(result) => ack(&self.of, result.as_deref()),
            Way::Other(command) => command.clone(),
        });
    }

    pub fn preceded_by(&mut self, first: Cmd) {
        self.first = Some(first);
    }

    /// Whether a reply means that the token was not the job's current one. If the command was sent before, a negative
    /// reply only says that the first sending was executed.
    pub fn is_lost(&self, reply: &Value) -> bool {
        !self.was_sent && says_nothing(reply)
    }

    /// Counts a connection that ended after this was sent. True if this may be the cause: the server closes
    /// connections on a word longer than its `proto-max-bulk-len`, which is at least 1 MB.
    pub fn broke(&mut self) -> bool {
        self.breaks += 1;
        let length = match self.ways.front() {
            Some(Way::Ack(result)) => result.as_ref().map_or(0, Vec::len),
            Some(Way::Other(command)) => command.get_packed_command().len(),
            None => 0,
        };
        self.breaks >= MOST_BREAKS && length > LARGE
    }

    /// Goes on to the next way. False: none is left.
    pub fn refused(&mut self, why: &str) -> bool {
        self.ways.pop_front();
        if let Some((shape, jitter)) = self.otherwise.take() {
            self.first = None;
            self.ways = failed(&self.of, &shape, why, None, jitter).into();
        }
        !self.ways.is_empty()
    }
}

fn says_nothing(reply: &Value) -> bool {
    matches!(reply, Value::Nil | Value::Int(0))
}

const ALL: &str = "
local at, reply = 1, nil
while at <= #ARGV do
  local last = at + tonumber(ARGV[at])
  reply = redis.pcall(unpack(ARGV, at + 1, last))
  if type(reply) == 'table' and reply.err then return reply end
  at = last + 1
end
return reply
";

/// Executes commands up to the first that is refused, whose error is the reply. A MULTI would go on, and give a job
/// back although there was no room for its step.
fn all_or_refused(key: &[u8], commands: &[Cmd]) -> Cmd {
    let mut script = cmd("EVAL");
    script.arg(ALL).arg(1).arg(key);
    for each in commands {
        let words = each.args_iter().filter_map(|word| match word {
            Arg::Simple(bytes) => Some(bytes),
            _ => None,
        });
        script.arg(words.clone().count());
        words.for_each(|word| {
            script.arg(word);
        });
    }
    script
}

const ACK: &str = "DQ.ACK";
const WITH: &str = "WITHTOKENS";

fn ack(of: &Delivered, result: Option<&[u8]>) -> Cmd {
    let length =
        of.job.key.len() + of.job.id.len() + of.token.len() + result.map_or(0, <[u8]>::len);
    let mut ack = Cmd::with_capacity(6, ACK.len() + WITH.len() + length);
    ack.arg(ACK)
        .arg(&*of.job.key)
        .arg(if result.is_some() { "RESULTS" } else { WITH });
    ack.arg(&*of.job.id).arg(&of.token);
    if let Some(result) = result {
        ack.arg(result);
    }
    ack
}

pub(crate) fn nack(
    of: &Delivered,
    mode: &str,
    wait: Option<Duration>,
    reason: Option<&str>,
) -> Cmd {
    let mut nack = cmd("DQ.NACK");
    nack.arg(&*of.job.key)
        .arg(&*of.job.id)
        .arg("TOKEN")
        .arg(&of.token)
        .arg(mode);
    if let Some(wait) = wait {
        nack.arg("DELAY").arg(ms(wait));
    }
    if let Some(reason) = reason {
        nack.arg("REASON").arg(reason);
    }
    nack
}

fn dead(of: &Delivered, reason: &str) -> Vec<Way> {
    vec![
        Way::Other(nack(of, "FATAL", None, Some(reason))),
        Way::Other(nack(of, "FATAL", None, None)),
    ]
}

/// Gives a job back as failed: after the wait that was asked for, else by the job's backoff, else by the handler's.
fn failed(
    of: &Delivered,
    shape: &Shape,
    reason: &str,
    asked: Option<Duration>,
    jitter: f64,
) -> Vec<Way> {
    if of.terms.max_attempts == 0 && 0 < shape.attempts && shape.attempts <= of.attempt {
        return dead(of, reason);
    }
    let usual = match of.terms.wait {
        Some(_) => None,
        None => Some(shape.delay(of.attempt, jitter).max(SHORTEST_DELAY)),
    };
    let last = exponential(of.attempt, FIRST_DELAY, LONGEST_DELAY, jitter);
    let mut ways = Vec::with_capacity(4);
    if let Some(asked) = asked {
        ways.push((Some(asked.max(SHORTEST_DELAY)), Some(reason)));
    }
    ways.extend([
        (usual, Some(reason)),
        (Some(last), Some(reason)),
        (Some(last), None),
    ]);
    let nack = |(wait, reason)| Way::Other(nack(of, "FAIL", wait, reason));
    ways.into_iter().map(nack).collect()
}

impl Shape {
    /// The wait after a failed attempt.
    fn delay(&self, attempt: u32, jitter: f64) -> Duration {
        match self.backoff.as_slice() {
            [] => exponential(attempt, FIRST_DELAY, LONGEST_DELAY, jitter),
            steps => steps[steps.len().min(attempt.max(1) as usize) - 1],
        }
    }
}

/// Doubles with each attempt. The jitter only adds, so nothing comes too early.
pub(crate) fn exponential(
    attempt: u32,
    first: Duration,
    longest: Duration,
    jitter: f64,
) -> Duration {
    let grown = first.as_secs_f64() * 2f64.powi(attempt.saturating_sub(1).min(62) as i32);
    Duration::from_secs_f64(grown.min(longest.as_secs_f64()) * (1.0 + jitter / 4.0))
}

// --- Many deliveries in one command

/// A `DQ.TOUCH` or `DQ.NACK` of many deliveries on one key.
pub(crate) fn for_all(command: &str, key: &[u8], all: &[Arc<Delivered>], rest: &[&str]) -> Cmd {
    let mut words = cmd(command);
    words.arg(key);
    ids(&mut words, all);
    for word in rest {
        words.arg(*word);
    }
    words
}

pub(crate) fn ids(words: &mut Cmd, all: &[Arc<Delivered>]) {
    words.arg("IDS").arg(all.len());
    for of in all {
        words.arg(&*of.job.id).arg(&of.token);
    }
}
