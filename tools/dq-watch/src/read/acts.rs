//! The actions of an operator on a queue or a job.

use dq_connect::link::Link;

use super::blocked;
use super::cli;
use super::detail::State;
use super::reply;
use super::said;
use super::shares::OnGroup;
use crate::model::QueueKey;
use crate::text::units;

/// Jobs kicked by one command, so that other clients are served in between.
const KICK_STEP: u64 = 1000;
/// Jobs that one script compares and changes.
const SCRIPT_STEP: usize = 100;
const CLI_LINES: usize = 2000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// On these jobs, each only while it is in the state for which the user asked.
    OnJobs {
        what: OnJob,
        jobs: Vec<Job>,
    },
    /// Kicks the jobs that died first: as many as were dead when the user asked.
    KickDead {
        count: u64,
    },
    Add {
        id: Vec<u8>,
        payload: Vec<u8>,
        delay_ms: u64,
    },
    /// Gives a recurring job another rule, or adds a new recurring job.
    Rule {
        id: Vec<u8>,
        /// None: the payload of the existing job.
        payload: Option<Vec<u8>>,
        rule: NewRule,
    },
    /// Ends this delivery of a job, and no other, without counting it.
    GiveBack {
        id: Vec<u8>,
        token: String,
    },
    /// To each of these jobs.
    Signal {
        ids: Vec<Vec<u8>>,
        name: Vec<u8>,
        value: Vec<u8>,
    },
    /// Changes settings of the queue: options of DQ.CFGSET with their values.
    Configure {
        options: Vec<String>,
    },
    Pause {
        ms: Option<u64>,
    },
    Resume,
    OnGroup {
        name: Vec<u8>,
        what: OnGroup,
    },
    /// None: all jobs.
    Purge {
        state: Option<State>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnJob {
    Kick,
    Reschedule {
        delay_ms: u64,
    },
    Delete,
    /// As `Delete`, but not while the job is reserved.
    Cancel,
    /// Moves the job with all its options to another queue of its database.
    Move {
        to: Vec<u8>,
    },
}

/// A job, and the state in which it was when the user asked. None: whatever it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub id: Vec<u8>,
    pub state: Option<State>,
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

/// Compares the states of jobs and changes those that fit, atomically; how a job is added once more.
const ACT: &str = concat!(include_str!("again.lua"), include_str!("act.lua"));
const RULE: &str = concat!(include_str!("again.lua"), include_str!("rule.lua"));

/// Why actions on jobs are refused where the server's user may not run scripts.
const NO_EVAL: &str = "the server's user needs the right +eval: a short script compares a job's state before it changes it, and nothing is sent unchecked";

/// What an action did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Jobs that the action changed; 1 if it was about the queue.
    pub changed: u64,
    pub said: String,
}

impl Act {
    pub fn on_job(what: OnJob, id: Vec<u8>, state: Option<State>) -> Act {
        let jobs = vec![Job { id, state }];
        Act::OnJobs { what, jobs }
    }

    /// The commands, in order: an action on very many jobs takes many.
    /// `awaited`: of the groups of jobs that move, those that blocked jobs wait for.
    fn commands<'a>(
        &'a self,
        key: &'a [u8],
        awaited: &'a [Vec<u8>],
    ) -> Box<dyn Iterator<Item = redis::Cmd> + 'a> {
        let of = move |name: &str| {
            let mut command = redis::cmd(name);
            command.arg(key);
            command
        };
        let one = match self {
            Act::OnJobs { what, jobs } => {
                let steps = jobs.chunks(SCRIPT_STEP);
                return Box::new(steps.map(move |jobs| what.checked(key, jobs, awaited)));
            }
            Act::Add {
                id,
                payload,
                delay_ms,
            } => {
                let mut add = of("DQ.ADD");
                add.arg(id).arg(payload).arg("DELAY").arg(delay_ms);
                add
            }
            Act::Rule {
                id,
                payload: None,
                rule,
            } => new_rule(key, id, "do", rule),
            Act::Rule {
                id,
                payload: Some(payload),
                rule,
            } => of("DQ.ADD")
                .arg(id)
                .arg(payload)
                .arg(rule.words())
                .to_owned(),
            Act::GiveBack { id, token } => {
                let mut nack = of("DQ.NACK");
                nack.arg(id).arg("TOKEN").arg(token).arg("SILENT");
                nack
            }
            Act::Signal { ids, name, value } => {
                let signal = move |id| of("DQ.SIGNAL").arg(id).arg(name).arg(value).to_owned();
                return Box::new(ids.iter().map(signal));
            }
            Act::Configure { options } => of("DQ.CFGSET").arg(options).to_owned(),
            Act::Pause { ms: None } => of("DQ.PAUSE"),
            Act::Pause { ms: Some(ms) } => of("DQ.PAUSE").arg(ms).to_owned(),
            Act::Resume => of("DQ.RESUME"),
            Act::OnGroup { name, what } => what.command(key, name),
            Act::Purge { state } => of("DQ.PURGE")
                .arg(state.map_or("all", State::word))
                .to_owned(),
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

    /// The commands as lines for the prompt of redis-cli, without comparing states; of very many only the first.
    pub fn for_cli(&self, key: &QueueKey) -> String {
        let mut commands = match self {
            Act::OnJobs { what, jobs } => what.plain(&key.name, jobs),
            _ => self.commands(&key.name, &[]),
        };
        let first = commands.by_ref().take(CLI_LINES);
        let mut lines: Vec<String> = first.map(|it| cli::line(&it)).collect();
        if commands.next().is_some() {
            lines.push("# and more of these".to_owned());
        }
        cli::in_db(key.db, lines)
    }

    /// Whether only a script can do it.
    pub fn is_script(&self) -> bool {
        let of_jobs = |what| matches!(what, &OnJob::Move { .. });
        matches!(self, Act::OnJobs { what, .. } if of_jobs(what))
    }

    /// Asks for the command that a script makes of a job, without carrying it out. None: what is sent says it itself.
    pub fn ask_command(&self, key: &[u8]) -> Option<redis::Cmd> {
        match self {
            Act::Rule {
                id,
                payload: None,
                rule,
            } => Some(new_rule(key, id, "tell", rule)),
            _ => None,
        }
    }

    /// Carries it out. The outer `Err` is a lost connection, the inner one the server's refusal.
    pub fn carry_out(
        &self,
        link: &mut Link,
        key: &QueueKey,
    ) -> Result<Result<Done, String>, String> {
        let awaited = match self.awaited(link, key)? {
            Err(refused) => return Ok(Err(refused)),
            Ok(awaited) => awaited,
        };
        let mut changed = 0;
        let mut why = None;
        for command in self.commands(&key.name, &awaited) {
            let value = link.call(key.db, command)?;
            let (more, last, error) = match (reply::array(&value), reply::error(&value)) {
                (Some([more, last, error]), _) => {
                    (reply::int(more), reply::text(last), reply::text(error))
                }
                (_, Some(error)) => (None, None, Some(without_eval(error))),
                _ => (reply::int(&value), None, None),
            };
            changed += more.unwrap_or_default();
            why = why.or(last.filter(|it| !it.is_empty()));
            match error.filter(|it| !it.is_empty()) {
                Some(error) if changed == 0 => return Ok(Err(error)),
                Some(error) => return Ok(Err(format!("{error} ({changed} jobs before that)"))),
                // DQ.KICK COUNT: no more are dead. DQ.ADD: the job exists already.
                None if matches!(self, Act::KickDead { .. }) && more == Some(0) => break,
                // No such job; the others are signalled.
                None if value == redis::Value::Nil && matches!(self, Act::Signal { .. }) => {}
                None if value == redis::Value::Nil => break,
                None => changed += i64::from(more.is_none()),
            }
        }
        Ok(Ok(Done {
            changed: changed.max(0) as u64,
            said: self.result(changed, why),
        }))
    }

    /// Of the groups of jobs that move, those that blocked jobs wait for.
    fn awaited(
        &self,
        link: &mut Link,
        key: &QueueKey,
    ) -> Result<Result<Vec<Vec<u8>>, String>, String> {
        match self {
            Act::OnJobs {
                what: OnJob::Move { .. },
                jobs,
            } => {
                let ids: Vec<&[u8]> = jobs.iter().map(|job| job.id.as_slice()).collect();
                blocked::awaited_groups(link, key, &ids)
            }
            _ => Ok(Ok(Vec::new())),
        }
    }

    fn result(&self, changed: i64, why: Option<String>) -> String {
        match self {
            Act::GiveBack { .. } if changed == 0 => {
                "nothing done: this delivery is over".to_owned()
            }
            Act::GiveBack { .. } => "given back".to_owned(),
            Act::Signal { .. } if changed == 0 => {
                "nothing done: the signal was there already, or the job is gone".to_owned()
            }
            Act::Signal { .. } => format!("signalled {}", jobs(changed)),
            Act::Configure { .. } => "the settings are changed".to_owned(),
            Act::Pause { ms: None } => "paused until resumed".to_owned(),
            Act::Pause { ms: Some(ms) } => format!("paused for {}", units::millis(*ms)),
            Act::Resume => "resumed".to_owned(),
            Act::OnGroup { what, .. } => what.result(),
            Act::Rule { payload, .. } if changed == 0 => match payload {
                None => "nothing changed: there is no such recurring job".to_owned(),
                Some(_) => "not added: a job with this id exists".to_owned(),
            },
            Act::Rule { payload: None, .. } => "changed".to_owned(),
            Act::Rule { .. } => "added".to_owned(),
            Act::Add { .. } if changed == 0 => "not added: a job with this id exists".to_owned(),
            Act::Add { .. } => "added".to_owned(),
            Act::OnJobs { jobs, .. } if jobs.len() > 1 => {
                let why = why.map_or(String::new(), |why| format!(": {why}"));
                format!("changed {changed} of {} jobs{why}", jobs.len())
            }
            Act::OnJobs { .. } if changed == 0 => {
                format!("nothing done: {}", why.unwrap_or_default())
            }
            Act::OnJobs { what, .. } => match what {
                OnJob::Kick => format!("kicked {}", jobs(changed)),
                OnJob::Reschedule { delay_ms: 0 } => "due now".to_owned(),
                OnJob::Reschedule { delay_ms } => format!("due in {}", units::millis(*delay_ms)),
                OnJob::Delete => format!("deleted {}", jobs(changed)),
                OnJob::Cancel => "cancelled".to_owned(),
                OnJob::Move { .. } => "moved".to_owned(),
            },
            _ if changed == 0 => "nothing done: there are no such jobs".to_owned(),
            Act::KickDead { .. } => format!("kicked {}", jobs(changed)),
            Act::Purge { .. } => format!("purged {}", jobs(changed)),
        }
    }
}

impl OnJob {
    /// The command on the jobs whose ids follow.
    fn command(&self) -> (&'static str, Vec<String>) {
        match self {
            OnJob::Kick => ("DQ.KICK", Vec::new()),
            OnJob::Reschedule { delay_ms } => (
                "DQ.RESCHEDULE",
                vec!["DELAY".to_owned(), delay_ms.to_string()],
            ),
            OnJob::Delete => ("DQ.DEL", Vec::new()),
            OnJob::Cancel => ("DQ.DEL", vec!["UNRESERVED".to_owned()]),
            OnJob::Move { .. } => ("move", Vec::new()),
        }
    }

    /// The command as it is without comparing states; a job can only be moved by the script.
    fn plain<'a>(
        &'a self,
        key: &'a [u8],
        jobs: &'a [Job],
    ) -> Box<dyn Iterator<Item = redis::Cmd> + 'a> {
        let steps = jobs.chunks(SCRIPT_STEP);
        Box::new(steps.map(move |jobs| {
            let (name, options) = self.command();
            if let OnJob::Move { .. } = self {
                return self.checked(key, jobs, &[]);
            }
            let ids: Vec<&[u8]> = jobs.iter().map(|job| job.id.as_slice()).collect();
            let mut command = redis::cmd(name);
            command.arg(key).arg(options).arg("IDS").arg(ids.len());
            command.arg(ids).to_owned()
        }))
    }

    /// One script: `[changed, why one was left out, error]`.
    fn checked(&self, key: &[u8], jobs: &[Job], awaited: &[Vec<u8>]) -> redis::Cmd {
        let (name, options) = self.command();
        let options = options.iter().map(String::as_bytes);
        let options: Vec<&[u8]> = options.chain(awaited.iter().map(Vec::as_slice)).collect();
        let to = match self {
            OnJob::Move { to } => to,
            _ => key,
        };
        let mut command = script(ACT, key, to);
        command.arg(name).arg(options.len()).arg(options);
        for job in jobs {
            command.arg(&job.id).arg(job.state.map_or("", State::word));
        }
        command
    }
}

fn jobs(count: i64) -> String {
    match count {
        1 => "1 job".to_owned(),
        many => format!("{many} jobs"),
    }
}

fn without_eval(error: String) -> String {
    match error.starts_with("NOPERM") && error.contains("'eval'") {
        true => NO_EVAL.to_owned(),
        false => error,
    }
}

fn new_rule(key: &[u8], id: &[u8], what: &str, rule: &NewRule) -> redis::Cmd {
    let mut script = script(RULE, key, key);
    script.arg(id).arg(what).arg(rule.words()).to_owned()
}

fn script(text: &str, from: &[u8], to: &[u8]) -> redis::Cmd {
    let mut script = redis::cmd("EVAL");
    script
        .arg(text.replace("SAID ", &said::names()))
        .arg(if from == to { 1 } else { 2 })
        .arg(from);
    if from != to {
        script.arg(to);
    }
    script
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
        act.commands(b"q", &[]).map(|it| text(&it)).collect()
    }

    fn cli(what: OnJob, ids: &[&str]) -> String {
        let job = |id: &&str| Job {
            id: id.as_bytes().to_vec(),
            state: Some(State::Dead),
        };
        let jobs = ids.iter().map(job).collect();
        Act::OnJobs { what, jobs }.for_cli(&QueueKey::new(0, b"q".as_slice()))
    }

    #[test]
    fn acts_are_these_commands() {
        assert_eq!(
            words(Act::KickDead { count: 2001 }),
            [
                "DQ.KICK q COUNT 1000",
                "DQ.KICK q COUNT 1000",
                "DQ.KICK q COUNT 1"
            ]
        );
        let (id, token) = (b"TOKEN".to_vec(), "7".to_owned());
        assert_eq!(
            words(Act::GiveBack { id, token }),
            ["DQ.NACK q TOKEN TOKEN 7 SILENT"]
        );
        let (ids, name, value) = (
            vec![b"a".to_vec(), b"b".to_vec()],
            b"paid".to_vec(),
            b"7".to_vec(),
        );
        assert_eq!(
            words(Act::Signal { ids, name, value }),
            ["DQ.SIGNAL q a paid 7", "DQ.SIGNAL q b paid 7"]
        );
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
    fn no_id_reads_as_a_word() {
        assert_eq!(cli(OnJob::Kick, &["a b"]), "DQ.KICK q IDS 1 \"a b\"");
        let later = OnJob::Reschedule { delay_ms: 5 };
        let said = "DQ.RESCHEDULE q DELAY 5 IDS 2 PRIORITY 7";
        assert_eq!(cli(later, &["PRIORITY", "7"]), said);
        assert_eq!(
            cli(OnJob::Delete, &["unReserved"]),
            "DQ.DEL q IDS 1 unReserved"
        );
        assert_eq!(
            cli(OnJob::Cancel, &["IDS"]),
            "DQ.DEL q UNRESERVED IDS 1 IDS"
        );
    }

    #[test]
    fn what_is_sent_compares_states() {
        let act = Act::on_job(OnJob::Kick, b"a".to_vec(), Some(State::Dead));
        let sent = words(act).join("");
        assert!(sent.starts_with("EVAL ") && sent.ends_with(" 1 q DQ.KICK 0 a dead"));
        let to = b"p".to_vec();
        let sent = words(Act::on_job(OnJob::Move { to }, b"a".to_vec(), None)).join("");
        assert!(sent.ends_with(" 2 q p move 0 a "));
    }

    #[test]
    fn for_redis_cli() {
        let key = QueueKey::new(2, b"q".as_slice());
        assert_eq!(Act::Resume.for_cli(&key), "SELECT 2\nDQ.RESUME q");
        let endless = Act::KickDead { count: u64::MAX };
        let lines = endless.for_cli(&QueueKey::new(0, b"q".as_slice()));
        assert_eq!(lines.lines().count(), CLI_LINES + 1);
    }
}
