//! What the server refuses.

use crate::values::lossy;
use redis::{Arg, Cmd};
use std::fmt;

/// Commands that name a job after the key. `DQ.NACK` and `DQ.TOUCH` may name many instead, by `IDS`.
const OF_ONE_JOB: [&str; 8] = [
    "DQ.ADD",
    "DQ.GET",
    "DQ.NACK",
    "DQ.TOUCH",
    "DQ.STEP",
    "DQ.SIGNAL",
    "DQ.EXPLAIN",
    "DQ.NEXT",
];
const MAY_NAME_MANY: [&str; 2] = ["DQ.NACK", "DQ.TOUCH"];
/// How many bytes of a command's word are shown.
const LONGEST_WORD: usize = 1100;

/// A command that the server refuses; what its answer does not tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// The first word of the answer: `ERR`, `NOPERM`, `OOM`, `WRONGTYPE`, ...
    pub code: String,
    /// The answer, without that word.
    pub said: String,
    /// The job's.
    pub id: Option<String>,
    /// What is refused, such as `tz`.
    pub argument: Option<String>,
    /// What that was.
    pub value: Option<String>,
    command: String,
    queue: Option<String>,
    pub(crate) advice: String,
}

impl Refused {
    /// What the server says to a command; `None`: to a new connection.
    pub(crate) fn of(command: Option<&Cmd>, text: &str) -> Self {
        let (code, said) = text.split_once(' ').unwrap_or((text, ""));
        let mut refused = Refused {
            code: code.to_owned(),
            said: said.to_owned(),
            command: "a connection".to_owned(),
            ..Refused::default()
        };
        if let Some(command) = command {
            refused.name(command);
        }
        refused
    }

    /// Names what the command is about.
    fn name(&mut self, command: &Cmd) {
        let mut words = command.args_iter().map(|word| match word {
            Arg::Simple(word) => lossy(word[..word.len().min(LONGEST_WORD)].to_vec()),
            _ => String::new(),
        });
        self.command = words.next().unwrap_or_default();
        let mut words = words.skip(if self.command == "EVAL" { 2 } else { 0 });
        if self.command != "DQ.UNBLOCK" {
            self.queue = words.next();
        }
        let rest: Vec<String> = words.collect();
        let names_many = MAY_NAME_MANY.contains(&&*self.command) && is_many(&rest);
        let names_one = OF_ONE_JOB.contains(&&*self.command) && !names_many;
        let (id, rest) = rest.split_at(usize::from(names_one).min(rest.len()));
        self.id = id.first().cloned();
        let said: Vec<&str> = self.said.split(' ').collect();
        let ends = (0..rest.len()).find(|at| is_many(&rest[*at..]));
        let is_refused = |pair: &&[String]| {
            let is_word = pair[0].bytes().all(|byte| byte.is_ascii_uppercase());
            is_word && said.contains(&&*pair[0])
        };
        let mut pairs = rest[..ends.unwrap_or(rest.len())].windows(2);
        if let Some(pair) = pairs.find(is_refused) {
            self.argument = Some(pair[0].to_lowercase());
            self.value = Some(pair[1].clone());
        }
    }
}

/// Whether many ids begin here.
fn is_many(words: &[String]) -> bool {
    let is_count = |word: &String| word.parse::<usize>().is_ok();
    words.first().is_some_and(|word| word == "IDS") && words.get(1).is_some_and(is_count)
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(id) = &self.id {
            write!(f, "job {id:?} of ")?;
        }
        if let Some(queue) = &self.queue {
            write!(f, "queue {queue:?}: ")?;
        }
        f.write_str("the server refused ")?;
        match (&self.argument, &self.value) {
            (Some(argument), Some(value)) => write!(f, "{argument}={value:?}")?,
            _ => f.write_str(&self.command)?,
        }
        write!(f, ": {} {}{}", self.code, self.said, self.advice)
    }
}
