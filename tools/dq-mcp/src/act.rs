//! The tools that change something: each says first what it would do, and does it when it is called with the code that
//! it gave then.

use std::collections::hash_map::RandomState;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::time::{Duration, Instant};

use dq_watch::audit::Log;
use dq_watch::model::QueueKey;
use dq_watch::read::acts::{Act, OnJob};
use dq_watch::read::detail::{self, State};
use dq_watch::read::{node, reply};
use dq_watch::text::escape;
use serde_json::{json, Value as Json};

use crate::answer::answered;
use crate::tools::Given;
use crate::Desk;

/// What --allow-actions may name.
pub const ACTIONS: [&str; 5] = ["retry", "run_now", "cancel", "pause", "resume"];

const NOT_IT: &str = "this code is none of this tool with these arguments, or too old: call it without confirm first";

/// How long a code counts, and how many do at a time.
const VALID: Duration = Duration::from_secs(600);
const PENDING: usize = 100;

/// What was said that it would be done.
struct Plan {
    tool: String,
    given: Given,
    key: QueueKey,
    act: Act,
    at: Instant,
}

#[derive(Default)]
pub struct Actions {
    log: Option<Log>,
    plans: HashMap<String, Plan>,
    made: u64,
    codes: RandomState,
}

impl Actions {
    pub fn new(log: Option<Log>) -> Actions {
        Actions {
            log,
            ..Actions::default()
        }
    }

    fn plan(&mut self, plan: Plan) -> String {
        self.plans.retain(|_, plan| plan.at.elapsed() < VALID);
        if self.plans.len() >= PENDING {
            self.plans.clear();
        }
        self.made += 1;
        let code = format!("{:08x}", self.codes.hash_one(self.made) as u32);
        self.plans.insert(code.clone(), plan);
        code
    }
}

/// What the tool would do or, with the code that it gave then, does it.
pub fn act(desk: &mut Desk, tool: &str, given: &Given) -> Result<Json, String> {
    let key = desk.key(given)?;
    if let Some(code) = given.text("confirm") {
        return confirmed(desk, code, tool, given);
    }
    let (act, now) = match tool {
        "pause" | "resume" => on_queue(desk, tool, &key, given)?,
        _ => on_job(desk, tool, &key, given.bytes("id")?)?,
    };
    let commands = act.for_cli(&key);
    let (tool, given, at) = (tool.to_owned(), given.clone(), Instant::now());
    let code = desk.actions.plan(Plan {
        tool,
        given,
        key,
        act,
        at,
    });
    let nothing = "nothing is done yet";
    Ok(json!({ "said": nothing, "it_would_send": commands, "now": now, "confirm": code }))
}

/// The action, and how things are now.
type Planned = Result<(Act, Json), String>;

fn on_job(desk: &mut Desk, tool: &str, key: &QueueKey, id: Vec<u8>) -> Planned {
    let job = desk.reach.look(key, vec![detail::get(&key.name, &id, 0)])?;
    let job = reply::job(answered(&job.0)?, 0).ok_or("there is no such queue or job")?;
    let state = State::named(&job.state).ok_or("it is in no state that this program knows")?;
    let what = match (tool, state) {
        ("retry", State::Dead | State::Delayed) => OnJob::Kick,
        ("run_now", State::Delayed) => OnJob::Reschedule { delay_ms: 0 },
        ("cancel", State::Delayed | State::Ready | State::Dead | State::Blocked) => OnJob::Cancel,
        (_, state) => return Err(format!("{tool} does not apply: it is {}", state.word())),
    };
    let now = json!({ "state": state.word(), "attempts": job.attempts });
    Ok((Act::on_job(what, id, Some(state)), now))
}

fn on_queue(desk: &mut Desk, tool: &str, key: &QueueKey, given: &Given) -> Planned {
    let stats = desk.reach.look(key, vec![node::stats_of(key)])?;
    let stats = reply::stats(answered(&stats.0)?).ok_or("there is no such queue")?;
    let ms = given.number("minutes").map(|it| it as u64 * 60_000);
    let act = match tool {
        "pause" => Act::Pause { ms },
        _ => Act::Resume,
    };
    let [_, ready, reserved, ..] = stats.jobs;
    let now = json!({ "ready": ready, "reserved": reserved, "paused": stats.paused != 0 });
    Ok((act, now))
}

/// Does what the code stands for, once. A job must still be in the state that was shown.
fn confirmed(desk: &mut Desk, code: &str, tool: &str, given: &Given) -> Result<Json, String> {
    let is_it = |plan: &&Plan| plan.tool == tool && plan.given == given.without("confirm");
    let plan = desk.actions.plans.get(code).filter(is_it);
    if plan.is_none_or(|plan| plan.at.elapsed() >= VALID) {
        return Err(NOT_IT.to_owned());
    }
    let plan = desk.actions.plans.remove(code).ok_or(NOT_IT)?;
    let done = desk.reach.act(&plan.key, &plan.act);
    let (event, said) = match &done {
        Ok(Ok(done)) => ("action", done.said.clone()),
        Ok(Err(refused)) => ("action refused", escape::line(refused.as_bytes())),
        Err(lost) => (
            "action lost",
            format!("it is not known what was done: {lost}"),
        ),
    };
    if let Some(log) = &desk.actions.log {
        let commands = plan.act.for_cli(&plan.key);
        let (tool, db) = (plan.tool, plan.key.db);
        log.write(
            event,
            json!({ "tool": tool, "db": db, "commands": commands, "result": said }),
        );
    }
    match done {
        Ok(Ok(done)) => Ok(json!({ "changed": done.changed, "said": said })),
        _ => Err(said),
    }
}
