//! Which command ends an attempt, and what its reply means.

use super::delivery::{Delivered, UNKNOWN_KIND};
use super::settings::Shape;
use super::trouble::{is_for_good, is_unheld, some_of};
use super::{End, Serial, Suspension};
use crate::guard::{clean, LONGEST_REASON};
use crate::values::ms;
use redis::{cmd, Arg, Cmd, Value};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Handlers cannot make their jobs come back faster.
pub(crate) const SHORTEST_DELAY: Duration = Duration::from_millis(100);
const IN_HAND_DELAY: Duration = Duration::from_secs(1);
const UNKNOWN_KIND_DELAY: Duration = Duration::from_secs(60);
const LONGEST_UNKNOWN_KIND_DELAY: Duration = Duration::from_secs(3600);
const UNKNOWN_KIND_ATTEMPTS: u32 = 14;
/// Servers close connections on a word longer than their `proto-max-bulk-len`, which is at least this.
const LARGE: usize = 1 << 20;
/// What no server takes as one word by default.
const LARGEST: usize = 512 << 20;
const MOST_BREAKS: u32 = 2;

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
    otherwise: Option<Box<Shape>>,
    /// The jobs that must be there, for it or for those that it adds to wait for.
    waits_for: Vec<Vec<u8>>,
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
            waits_for: Vec::new(),
            was_sent: false,
            is_said: false,
            troubles: 0,
            breaks: 0,
            not_before: None,
        }
    }

    /// Gives a job back whose earlier delivery still runs in this process.
    pub fn still_running(of: &Arc<Delivered>) -> Self {
        Outcome::returned(0, of, IN_HAND_DELAY)
    }

    /// Gives a job back, to be delivered after a wait.
    pub fn returned(serial: Serial, of: &Arc<Delivered>, wait: Duration) -> Self {
        Outcome::new(
            serial,
            of,
            [Way::Other(nack(of, "SILENT", Some(wait), None))],
        )
    }

    /// Fails a job for a worker that has a handler for its kind: a new one may come with the next deploy.
    pub fn unknown(serial: Serial, of: &Arc<Delivered>) -> Self {
        let reason = format!("unknown kind \"{}\"", of.shown_kind());
        if of.attempt >= UNKNOWN_KIND_ATTEMPTS {
            return Outcome::new(serial, of, dead(of, &reason));
        }
        let wait = (UNKNOWN_KIND_DELAY * of.attempt).min(LONGEST_UNKNOWN_KIND_DELAY);
        let ways = [Some(reason.as_str()), None]
            .map(|reason| Way::Other(nack(of, "FAIL", Some(wait), reason)));
        let mut back = Outcome::new(serial, of, ways);
        back.preceded_by(step(
            of,
            UNKNOWN_KIND,
            (of.unknown() + 1).to_string().as_bytes(),
        ));
        back
    }

    /// Ends a job whose attempts were used up by workers that were lost.
    pub fn used_up(serial: Serial, of: &Arc<Delivered>) -> Self {
        Outcome::new(
            serial,
            of,
            dead(of, "attempts used up; its workers were lost"),
        )
    }

    /// The outcome of an attempt whose handler has ended.
    pub fn ended(serial: Serial, of: &Arc<Delivered>, shape: &Shape, end: End) -> Self {
        let ways = match end {
            End::Done(None) => vec![Way::Ack(None)],
            End::Done(Some(result)) if result.len() > LARGEST => too_large(of, result.len()),
            End::Done(result) => vec![Way::Ack(result), Way::Ack(None)],
            End::Failed { reason, wait } => failed(of, shape, &reason, wait),
            End::Snoozed { reason, wait } => {
                let wait = wait.max(SHORTEST_DELAY);
                let asked = Way::Other(nack(of, "SILENT", Some(wait), reason.as_deref()));
                let reason =
                    reason.unwrap_or_else(|| "snoozed with a delay that the server refuses".into());
                let mut ways = failed(of, shape, &reason, None);
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
    ) -> Self {
        let whole = match asked.0.len() {
            1 => asked.0.remove(0),
            _ => all_or_refused(&of.job.key, &asked.0),
        };
        let mut outcome = Outcome::new(serial, of, [Way::Other(whole)]);
        outcome.otherwise = Some(Box::new(shape.clone()));
        outcome.waits_for = asked.1;
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

    /// Whether the job is done without a result: it may share an ACK with others of its queue.
    pub fn is_plain(&self) -> bool {
        self.first.is_none() && matches!(self.ways.front(), Some(Way::Ack(None)))
    }

    pub fn preceded_by(&mut self, first: Cmd) {
        self.first = Some(first);
    }

    /// Whether a reply means that the token was not the job's current one. If the command was sent before, a negative
    /// reply only says that the first sending was executed.
    pub fn is_lost(&self, reply: &Value) -> bool {
        !self.was_sent && says_nothing(reply)
    }

    /// Whether the job is dead, or may be, as the answer to an earlier sending was lost.
    pub fn may_be_dead(&self, reply: &Value) -> bool {
        let is_dead = match reply {
            Value::BulkString(state) => state == b"dead",
            Value::SimpleString(state) => state == "dead",
            reply => self.was_sent && says_nothing(reply),
        };
        is_dead && matches!(self.ways.front(), Some(Way::Other(_)))
    }

    /// Counts a connection that ended after this was sent. Returns its size if this may be the cause: it is not sent again.
    pub fn broke(&mut self) -> Option<usize> {
        self.breaks += 1;
        let size = self.size();
        if self.breaks < MOST_BREAKS || size <= LARGE {
            return None;
        }
        if let Some(Way::Ack(_)) = self.ways.front() {
            let dead = too_large(&self.of, size);
            self.ways = std::iter::once(Way::Ack(None)).chain(dead).collect();
        }
        Some(size)
    }

    /// The bytes of its result, or of its command.
    pub fn size(&self) -> usize {
        match self.ways.front() {
            Some(Way::Ack(result)) => result.as_ref().map_or(0, Vec::len),
            Some(Way::Other(command)) => command.get_packed_command().len(),
            None => 0,
        }
    }

    /// Whether the server refuses this for what it is, although it takes other commands.
    pub fn is_refused_by(&self, text: &str) -> bool {
        let is_result = matches!(self.ways.front(), Some(Way::Ack(Some(_))));
        is_for_good(text)
            || is_result && text.starts_with("OOM")
            || self.is_wait() && text.starts_with("NOPERM")
    }

    /// Goes on to the next way. False: none is left.
    pub fn refused(&mut self, why: &str) -> bool {
        self.ways.pop_front();
        if let Some(shape) = self.otherwise.take() {
            self.first = None;
            let reason = clean(self.way_out(why), LONGEST_REASON);
            self.ways = failed(&self.of, &shape, &reason, None).into();
        }
        !self.ways.is_empty()
    }
}

impl Outcome {
    /// The server's error, and what to do where it does not hold a job that is waited for.
    fn way_out(&self, why: &str) -> String {
        if self.waits_for.is_empty() || !is_unheld(why) {
            return why.to_owned();
        }
        let ids = some_of(&self.waits_for);
        format!("{why}: it has ended, or was never added. Add it with keep, or by spawn (waited for: {ids})")
    }
}

fn says_nothing(reply: &Value) -> bool {
    match reply {
        Value::Array(each) => each.first().is_some_and(says_nothing),
        reply => matches!(reply, Value::Nil | Value::Int(0)),
    }
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
    let mut ack = Cmd::with_capacity(8, ACK.len() + WITH.len() + 4 + length);
    ack.arg(ACK)
        .arg(&*of.job.key)
        .arg(if result.is_some() { "RESULTS" } else { WITH });
    ack.arg("IDS").arg("1").arg(&*of.job.id).arg(&of.token);
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

/// What is given back waits for a while, as the server may read the last fetch after this, and before it knows that the
/// connection is closed.
pub(crate) fn parting(command: &mut Cmd) {
    let words: Vec<_> = command.args_iter().collect();
    let is_back = matches!(
        words.as_slice(),
        [Arg::Simple(b"DQ.NACK"), .., before, Arg::Simple(b"SILENT")] if *before != Arg::Simple(b"REASON")
    );
    if is_back {
        command.arg("DELAY").arg(ms(IN_HAND_DELAY));
    }
}

/// Keeps a step with a delivered job.
pub(crate) fn step(of: &Delivered, name: &[u8], value: &[u8]) -> Cmd {
    let mut step = cmd("DQ.STEP");
    step.arg(&*of.job.key).arg(&*of.job.id).arg(&of.token);
    step.arg(name).arg(value);
    step
}

fn too_large(of: &Delivered, bytes: usize) -> Vec<Way> {
    dead(of, &format!("result cannot be stored: {bytes} bytes"))
}

fn dead(of: &Delivered, reason: &str) -> Vec<Way> {
    vec![
        Way::Other(nack(of, "FATAL", None, Some(reason))),
        Way::Other(nack(of, "FATAL", None, None)),
    ]
}

/// Gives a job back as failed: after the wait that was asked for, else by the job's backoff, the handler's, or the server's.
fn failed(of: &Delivered, shape: &Shape, reason: &str, asked: Option<Duration>) -> Vec<Way> {
    let limit = shape.limit(of);
    if 0 < limit && limit <= of.attempt {
        return dead(of, reason);
    }
    let step = match of.terms.wait {
        Some(_) => None,
        None => shape.step(of.attempt),
    };
    let waits = [asked, step].into_iter().flatten();
    let with_wait = waits.map(|wait| (Some(wait.max(SHORTEST_DELAY)), Some(reason)));
    let ways = with_wait.chain([(None, Some(reason)), (None, None)]);
    ways.map(|(wait, reason)| Way::Other(nack(of, "FAIL", wait, reason)))
        .collect()
}

impl Shape {
    /// The step of its backoff after a failed attempt, if it has one.
    fn step(&self, attempt: u32) -> Option<Duration> {
        let at = self.backoff.len().min(attempt.max(1) as usize);
        Some(self.backoff[at.checked_sub(1)?])
    }
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
