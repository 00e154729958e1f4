//! The actions of an operator on a queue or a job.

use super::cli;
use super::detail::State;
use super::link::Link;
use super::reply;
use crate::model::QueueKey;
use crate::text::units;

/// Jobs kicked by one command, so that other clients are served in between.
const KICK_STEP: u64 = 1000;
const CLI_LINES: usize = 2000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Kick {
        id: Vec<u8>,
    },
    /// Kicks the jobs that died first: as many as were dead when the user asked.
    KickDead {
        count: u64,
    },
    Reschedule {
        id: Vec<u8>,
        delay_ms: u64,
    },
    Delete {
        id: Vec<u8>,
    },
    /// As `Delete`, but not while the job is reserved.
    Cancel {
        id: Vec<u8>,
    },
    Add {
        id: Vec<u8>,
        payload: Vec<u8>,
        delay_ms: u64,
    },
    /// Moves the job with all its options to another queue of its database.
    Move {
        id: Vec<u8>,
        to: Vec<u8>,
    },
    /// Gives a recurring job another rule, or adds a new recurring job.
    Rule {
        id: Vec<u8>,
        /// None: the payload of the existing job.
        payload: Option<Vec<u8>>,
        rule: NewRule,
    },
    Pause {
        ms: Option<u64>,
    },
    Resume,
    /// None: all jobs.
    Purge {
        state: Option<State>,
    },
    /// Actions on several jobs of the queue.
    Many(Vec<Act>),
}

/// The rule of a recurring job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewRule {
    Every(u64),
    Cron { expression: String, zone: String },
}

impl NewRule {
    pub fn told(&self) -> String {
        self.words().join(" ")
    }

    fn words(&self) -> Vec<String> {
        match self {
            NewRule::Every(ms) => vec!["EVERY".to_owned(), ms.to_string()],
            NewRule::Cron { expression, zone } => {
                let words = ["CRON", expression, "TZ", zone];
                words.map(str::to_owned).to_vec()
            }
        }
    }
}

/// Reads the job and adds it once more, atomically.
const AGAIN: &str = include_str!("again.lua");

/// What an action did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Jobs that the action changed; 1 if it was about the queue.
    pub changed: u64,
    pub said: String,
}

impl Act {
    /// The commands, in order: an action on very many jobs takes many.
    fn commands<'a>(&'a self, key: &'a [u8]) -> Box<dyn Iterator<Item = redis::Cmd> + 'a> {
        let of = move |name: &str| {
            let mut command = redis::cmd(name);
            command.arg(key);
            command
        };
        let one = match self {
            Act::Kick { id } => of("DQ.KICK").arg("IDS").arg(1).arg(id).to_owned(),
            Act::Reschedule { id, delay_ms } => of("DQ.RESCHEDULE")
                .arg("DELAY")
                .arg(delay_ms)
                .arg(id)
                .to_owned(),
            // As the first id it would be read as the option, so an empty id, which no job has,
            // comes before it.
            Act::Delete { id } if id.eq_ignore_ascii_case(b"UNRESERVED") => {
                of("DQ.DEL").arg("").arg(id).to_owned()
            }
            Act::Delete { id } => of("DQ.DEL").arg(id).to_owned(),
            Act::Cancel { id } => of("DQ.DEL").arg("UNRESERVED").arg(id).to_owned(),
            Act::Add {
                id,
                payload,
                delay_ms,
            } => {
                let mut add = of("DQ.ADD");
                add.arg(id).arg(payload).arg("DELAY").arg(delay_ms);
                add
            }
            Act::Move { id, to } => again(key, to).arg(id).to_owned(),
            Act::Rule {
                id,
                payload: None,
                rule,
            } => again(key, key).arg(id).arg(rule.words()).to_owned(),
            Act::Rule {
                id,
                payload: Some(payload),
                rule,
            } => of("DQ.ADD")
                .arg(id)
                .arg(payload)
                .arg(rule.words())
                .to_owned(),
            Act::Pause { ms: None } => of("DQ.PAUSE"),
            Act::Pause { ms: Some(ms) } => of("DQ.PAUSE").arg(ms).to_owned(),
            Act::Resume => of("DQ.RESUME"),
            Act::Purge { state } => of("DQ.PURGE")
                .arg(state.map_or("all", State::word))
                .to_owned(),
            Act::Many(acts) => return Box::new(acts.iter().flat_map(move |act| act.commands(key))),
            Act::KickDead { count } => {
                let steps = (0..*count).step_by(KICK_STEP as usize);
                let step = move |done| {
                    of("DQ.KICK")
                        .arg("COUNT")
                        .arg(KICK_STEP.min(count - done))
                        .to_owned()
                };
                return Box::new(steps.map(step));
            }
        };
        Box::new(std::iter::once(one))
    }

    /// The few commands that treat several jobs alike; None if this action is not about jobs.
    pub fn of_jobs(&self, key: &[u8], ids: &[Vec<u8>]) -> Option<Vec<redis::Cmd>> {
        let all = |command: redis::Cmd| Some(vec![command.clone().arg(ids).to_owned()]);
        let one = |act: Act| act.commands(key).collect::<Vec<_>>();
        let mut command = redis::cmd(match self {
            Act::Kick { .. } => "DQ.KICK",
            Act::Reschedule { .. } => "DQ.RESCHEDULE",
            Act::Delete { .. } | Act::Cancel { .. } => "DQ.DEL",
            Act::Move { to, .. } => {
                let to = to.clone();
                let act = |id: &Vec<u8>| Act::Move {
                    id: id.clone(),
                    to: to.clone(),
                };
                return Some(ids.iter().flat_map(|id| one(act(id))).collect());
            }
            _ => return None,
        });
        command.arg(key);
        match self {
            Act::Kick { .. } => all(command.arg("IDS").arg(ids.len()).to_owned()),
            Act::Cancel { .. } => all(command.arg("UNRESERVED").to_owned()),
            // As the first id `UNRESERVED` would be read as the option; no job has the empty id.
            Act::Delete { .. } => all(command.arg("").to_owned()),
            Act::Reschedule { delay_ms, .. } => {
                let plain = |id: &&Vec<u8>| !is_option(id);
                let many: Vec<&Vec<u8>> = ids.iter().filter(plain).collect();
                let mut commands: Vec<redis::Cmd> = Vec::new();
                if !many.is_empty() {
                    commands.push(command.arg("DELAY").arg(delay_ms).arg(many).to_owned());
                }
                let delay_ms = *delay_ms;
                let act = |id: &Vec<u8>| Act::Reschedule {
                    id: id.clone(),
                    delay_ms,
                };
                let others = ids.iter().filter(|id| is_option(id));
                commands.extend(others.flat_map(|id| one(act(id))));
                Some(commands)
            }
            _ => None,
        }
    }

    /// The commands as lines for the prompt of redis-cli; of very many only the first.
    pub fn for_cli(&self, key: &QueueKey) -> String {
        let mut lines = Vec::new();
        if key.db != 0 {
            lines.push(format!("SELECT {}", key.db));
        }
        let mut commands = self.commands(&key.name);
        lines.extend(commands.by_ref().take(CLI_LINES).map(|it| cli::line(&it)));
        if commands.next().is_some() {
            lines.push("# and more of these".to_owned());
        }
        lines.join("\n")
    }

    /// Carries it out. The outer `Err` is a lost connection, the inner one the server's refusal.
    pub fn carry_out(
        &self,
        link: &mut Link,
        key: &QueueKey,
    ) -> Result<Result<Done, String>, String> {
        let mut changed = 0;
        for command in self.commands(&key.name) {
            let value = link.call(key.db, command)?;
            match (reply::error(&value), reply::int(&value)) {
                (Some(error), _) if changed == 0 => return Ok(Err(error)),
                (Some(error), _) => {
                    return Ok(Err(format!("{error} ({changed} jobs before that)")))
                }
                // One of several jobs may be gone already.
                (None, Some(0)) if !matches!(self, Act::Many(_)) => break,
                // DQ.ADD: the job exists already.
                (None, None) if value == redis::Value::Nil => break,
                (None, number) => changed += number.unwrap_or(1),
            }
        }
        Ok(Ok(Done {
            changed: changed.max(0) as u64,
            said: self.result(changed),
        }))
    }

    fn result(&self, changed: i64) -> String {
        let jobs = match changed {
            1 => "1 job".to_owned(),
            many => format!("{many} jobs"),
        };
        match self {
            Act::Pause { ms: None } => "paused until resumed".to_owned(),
            Act::Pause { ms: Some(ms) } => format!("paused for {}", units::millis(*ms)),
            Act::Resume => "resumed".to_owned(),
            Act::Move { .. } if changed == 0 => {
                "nothing moved: a worker has it, it cannot be moved, or its id is taken there"
                    .to_owned()
            }
            Act::Move { .. } => "moved".to_owned(),
            Act::Rule { payload, .. } if changed == 0 => match payload {
                None => "nothing changed: there is no such recurring job".to_owned(),
                Some(_) => "not added: a job with this id exists".to_owned(),
            },
            Act::Rule { payload: None, .. } => "changed".to_owned(),
            Act::Rule { .. } => "added".to_owned(),
            Act::Add { .. } if changed == 0 => "not added: a job with this id exists".to_owned(),
            Act::Add { .. } => "added".to_owned(),
            Act::Cancel { .. } if changed == 0 => {
                "nothing done: the job no longer exists, or a worker has it".to_owned()
            }
            Act::Cancel { .. } => "cancelled".to_owned(),
            _ if changed == 0 => "nothing done: the job no longer exists".to_owned(),
            Act::Kick { .. } | Act::KickDead { .. } => format!("kicked {jobs}"),
            Act::Reschedule { delay_ms: 0, .. } => "due now".to_owned(),
            Act::Reschedule { delay_ms, .. } => format!("due in {}", units::millis(*delay_ms)),
            Act::Delete { .. } => format!("deleted {jobs}"),
            Act::Purge { .. } => format!("purged {jobs}"),
            Act::Many(acts) => format!("changed {changed} of {} jobs", acts.len()),
        }
    }
}

fn again(from: &[u8], to: &[u8]) -> redis::Cmd {
    let mut script = redis::cmd("EVAL");
    script.arg(AGAIN).arg(2).arg(from).arg(to);
    script
}

/// Whether DQ.RESCHEDULE may read this id as an option.
fn is_option(id: &[u8]) -> bool {
    let words: [&[u8]; 3] = [b"DELAY", b"AT", b"PRIORITY"];
    words.iter().any(|word| id.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(command: &redis::Cmd) -> String {
        let words = command.args_iter().map(|word| match word {
            redis::Arg::Simple(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            _ => unreachable!(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    fn words(act: Act) -> Vec<String> {
        act.commands(b"q").map(|it| text(&it)).collect()
    }

    #[test]
    fn acts_are_these_commands() {
        let id = || b"a".to_vec();
        assert_eq!(words(Act::Kick { id: id() }), ["DQ.KICK q IDS 1 a"]);
        assert_eq!(
            words(Act::KickDead { count: 2001 }),
            [
                "DQ.KICK q COUNT 1000",
                "DQ.KICK q COUNT 1000",
                "DQ.KICK q COUNT 1"
            ]
        );
        let later = Act::Reschedule {
            id: id(),
            delay_ms: 5,
        };
        assert_eq!(words(later), ["DQ.RESCHEDULE q DELAY 5 a"]);
        assert_eq!(words(Act::Delete { id: id() }), ["DQ.DEL q a"]);
        assert_eq!(words(Act::Cancel { id: id() }), ["DQ.DEL q UNRESERVED a"]);
        assert_eq!(words(Act::Pause { ms: Some(9) }), ["DQ.PAUSE q 9"]);
        assert_eq!(words(Act::Purge { state: None }), ["DQ.PURGE q all"]);
        assert_eq!(
            words(Act::Purge {
                state: Some(State::Dead)
            }),
            ["DQ.PURGE q dead"]
        );
    }

    #[test]
    fn many_jobs_are_few_commands() {
        let ids = ["a", "priority", "b"].map(|id| id.as_bytes().to_vec());
        let said = |act: Act| {
            let commands = act.of_jobs(b"q", &ids).expect("about jobs");
            commands.iter().map(text).collect::<Vec<_>>()
        };
        let id = Vec::new;
        assert_eq!(
            said(Act::Kick { id: id() }),
            ["DQ.KICK q IDS 3 a priority b"]
        );
        assert_eq!(
            said(Act::Cancel { id: id() }),
            ["DQ.DEL q UNRESERVED a priority b"]
        );
        assert_eq!(said(Act::Delete { id: id() }), ["DQ.DEL q  a priority b"]);
        let now = Act::Reschedule {
            id: id(),
            delay_ms: 0,
        };
        assert_eq!(
            said(now),
            [
                "DQ.RESCHEDULE q DELAY 0 a b",
                "DQ.RESCHEDULE q DELAY 0 priority"
            ]
        );
        assert_eq!(Act::Resume.of_jobs(b"q", &ids).map(|it| it.len()), None);
    }

    #[test]
    fn for_redis_cli() {
        let several = Act::Many(vec![
            Act::Kick {
                id: b"a b".to_vec(),
            },
            Act::Resume,
        ]);
        assert_eq!(
            several.for_cli(&QueueKey::new(2, b"q".as_slice())),
            "SELECT 2\nDQ.KICK q IDS 1 \"a b\"\nDQ.RESUME q"
        );
        let endless = Act::KickDead { count: u64::MAX };
        let lines = endless.for_cli(&QueueKey::new(0, b"q".as_slice()));
        assert_eq!(lines.lines().count(), CLI_LINES + 1);
    }

    #[test]
    fn several_jobs_are_as_many_commands() {
        let ids = [b"a".to_vec(), b"PRIORITY".to_vec()];
        let acts = ids.map(|id| Act::Reschedule { id, delay_ms: 0 });
        assert_eq!(
            words(Act::Many(acts.to_vec())),
            [
                "DQ.RESCHEDULE q DELAY 0 a",
                "DQ.RESCHEDULE q DELAY 0 PRIORITY"
            ]
        );
    }

    #[test]
    fn an_id_that_reads_like_an_option_is_an_id() {
        let id = b"unReserved".to_vec();
        assert_eq!(words(Act::Delete { id }), ["DQ.DEL q  unReserved"]);
    }
}
