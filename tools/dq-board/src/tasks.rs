//! Actions on all jobs that a filter selects: in steps, which report their progress and can be stopped.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use dq_watch::model::QueueKey;
use dq_watch::read::acts::{Act, Job, OnJob};
use dq_watch::read::deaths::Deaths;
use dq_watch::read::detail::{Job as Read, State};
use dq_watch::text::escape;
use serde_json::{json, Value as Json};
use tokio::sync::watch;

use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::filter::Filter;
use crate::core::removal::Removal;
use crate::views;
use dq_serve::locked::locked;

/// Tasks that are remembered.
const KEPT: usize = 200;
/// Actions that run at a time, and also counts: counting does not keep others from acting.
const AT_ONCE: usize = 8;
/// Jobs that are removed in one step, where all are known before.
const REMOVED_AT_ONCE: usize = 500;

/// Which jobs, and what is done to them; None: they are counted.
#[derive(Clone)]
pub struct Order {
    pub key: QueueKey,
    pub filter: Filter,
    /// To count: these instead.
    pub ids: Vec<Vec<u8>>,
    pub act: Option<OnJob>,
    /// Also counts the blocked jobs that would die of a deletion, which `spares` what workers have.
    pub deaths: bool,
    pub spares: bool,
}

impl Order {
    /// Whether it may remove jobs that wait for each other.
    fn removes_blocked(&self) -> bool {
        let is_removal = matches!(self.act, Some(OnJob::Cancel | OnJob::Delete));
        is_removal
            && self
                .filter
                .state
                .is_none_or(|state| state == State::Blocked)
    }
}

#[derive(Default)]
pub struct Task {
    acts: bool,
    progress: Mutex<Progress>,
    stops: AtomicBool,
}

#[derive(Clone, Default)]
struct Progress {
    looked: usize,
    found: u64,
    changed: u64,
    /// Blocked jobs that would die, and the first ids.
    dying: Option<(usize, Vec<String>)>,
    end: Option<End>,
}

#[derive(Clone)]
enum End {
    Done,
    Stopped,
    Failed(Failure),
}

pub struct Tasks {
    board: Arc<Board>,
    all: Mutex<(u64, BTreeMap<u64, Arc<Task>>)>,
    ending: watch::Receiver<bool>,
}

impl Task {
    pub fn told(&self) -> Json {
        let progress = locked(&self.progress).clone();
        let (state, why) = match &progress.end {
            None => ("running", None),
            Some(End::Done) => ("done", None),
            Some(End::Stopped) => ("stopped", None),
            Some(End::Failed(failure)) => ("failed", Some(failure.why())),
        };
        json!({
            "state": state,
            "why": why,
            "looked": progress.looked,
            "found": progress.found,
            "changed": progress.changed,
            "dying": progress.dying,
        })
    }

    pub fn stop(&self) {
        self.stops.store(true, Ordering::Relaxed);
    }

    fn runs(&self) -> bool {
        locked(&self.progress).end.is_none()
    }
}

impl Tasks {
    pub fn new(board: Arc<Board>, ending: watch::Receiver<bool>) -> Tasks {
        Tasks {
            board,
            all: Mutex::default(),
            ending,
        }
    }

    pub fn find(&self, number: u64) -> Option<Arc<Task>> {
        locked(&self.all).1.get(&number).cloned()
    }

    /// `told` is called with the result.
    pub fn begin(
        self: &Arc<Tasks>,
        order: Order,
        told: impl FnOnce(&Json) + Send + 'static,
    ) -> Result<u64, Failure> {
        let acts = order.act.is_some();
        let task = Arc::new(Task {
            acts,
            ..Task::default()
        });
        let mut all = locked(&self.all);
        let alike = all.1.values().filter(|it| it.acts == acts && it.runs());
        if alike.count() >= AT_ONCE {
            let why = "Too many actions are under way; wait for one of them.";
            return Err(Failure::Refused(why.to_owned()));
        }
        all.0 += 1;
        let number = all.0;
        all.1.insert(number, Arc::clone(&task));
        // A running task can be viewed and stopped, so only a finished one is forgotten.
        let over = all.1.iter().find(|(_, task)| !task.runs());
        if let Some(number) = over
            .map(|(number, _)| *number)
            .filter(|_| all.1.len() > KEPT)
        {
            all.1.remove(&number);
        }
        let tasks = Arc::clone(self);
        tokio::spawn(async move {
            let end = tasks.run(&task, &order).await;
            locked(&task.progress).end = Some(end);
            told(&task.told());
        });
        Ok(number)
    }

    /// Waits when the program ends: running tasks stop after their current step.
    pub async fn all_ended(&self) {
        while locked(&self.all).1.values().any(|task| task.runs()) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    async fn run(&self, task: &Task, order: &Order) -> End {
        // A job that comes back meanwhile, such as one that dies again, is not treated twice.
        let mut seen = Deaths::default();
        for id in &order.ids {
            seen.delete(id);
        }
        let walked = match order.removes_blocked() {
            true => self.remove_blocked(task, order, &mut seen).await,
            false => Ok(true),
        };
        let walked = match walked {
            Ok(true) if order.ids.is_empty() => self.walk(task, order, &mut seen).await,
            other => other,
        };
        let walked = match walked {
            Ok(true) if order.deaths => self.deaths(task, order, seen).await,
            other => other,
        };
        match walked {
            Ok(true) => End::Done,
            Ok(false) => End::Stopped,
            Err(failure) => End::Failed(failure),
        }
    }

    fn is_stopped(&self, task: &Task) -> bool {
        task.stops.load(Ordering::Relaxed) || *self.ending.borrow()
    }

    /// Removes blocked jobs in an order in which none of them ends another; whether to the end.
    async fn remove_blocked(
        &self,
        task: &Task,
        order: &Order,
        seen: &mut Deaths,
    ) -> Result<bool, Failure> {
        let (filter, mut cursor) = (order.filter.only(State::Blocked), Some("0".to_owned()));
        let mut removal = Removal::default();
        while let Some(from) = cursor {
            if self.is_stopped(task) {
                return Ok(false);
            }
            let each = |job: Read| {
                if seen.delete(&job.id) {
                    removal.add(job.id, job.group.as_deref(), job.after.as_ref());
                }
            };
            let enough = views::ALL_THAT_ONE_MAY;
            let step = views::walk(&self.board, &order.key, &filter, from, enough, each).await?;
            locked(&task.progress).looked += step.looked;
            cursor = step.more;
        }
        for ids in removal.ids().chunks(REMOVED_AT_ONCE) {
            if self.is_stopped(task) {
                return Ok(false);
            }
            self.act_on(task, order, ids).await?;
        }
        Ok(true)
    }

    /// Counts the jobs of the filter, or acts on them; whether to the end.
    async fn walk(&self, task: &Task, order: &Order, seen: &mut Deaths) -> Result<bool, Failure> {
        let mut cursor = "0".to_owned();
        while !self.is_stopped(task) {
            let mut step = views::step(&self.board, &order.key, &order.filter, cursor).await?;
            step.ids.retain(|id| seen.delete(id));
            locked(&task.progress).looked += step.looked;
            self.act_on(task, order, &step.ids).await?;
            match step.more {
                Some(more) => cursor = more,
                None => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Counts the blocked jobs that would die if those that were seen were deleted; whether to the end.
    async fn deaths(&self, task: &Task, order: &Order, mut seen: Deaths) -> Result<bool, Failure> {
        let states = match order.spares {
            true => &[State::Reserved, State::Blocked][..],
            false => &[State::Blocked],
        };
        for state in states {
            let (filter, mut cursor) = (Filter::of_state(*state), Some("0".to_owned()));
            while let Some(from) = cursor {
                if self.is_stopped(task) {
                    return Ok(false);
                }
                let each = |job: Read| match (state, &job.after) {
                    (State::Reserved, _) => seen.spare(&job.id),
                    (_, Some(after)) => seen.see(&job.id, after),
                    _ => {}
                };
                let enough = views::ALL_THAT_ONE_MAY;
                let step = views::walk(&self.board, &order.key, &filter, from, enough, each);
                cursor = step.await?.more;
            }
        }
        let told = seen.told.iter().map(|id| escape::name(id)).collect();
        locked(&task.progress).dying = Some((seen.count(), told));
        Ok(true)
    }

    /// Counts these, and acts on them if the order says so.
    async fn act_on(&self, task: &Task, order: &Order, ids: &[Vec<u8>]) -> Result<(), Failure> {
        let changed = match &order.act {
            Some(act) if !ids.is_empty() => self.act(order, act, ids).await,
            _ => Ok(0),
        };
        let mut progress = locked(&task.progress);
        progress.found += ids.len() as u64;
        progress.changed += changed?;
        Ok(())
    }

    async fn act(&self, order: &Order, what: &OnJob, ids: &[Vec<u8>]) -> Result<u64, Failure> {
        let job = |id: &Vec<u8>| Job {
            id: id.clone(),
            state: order.filter.state,
        };
        let act = Act::OnJobs {
            what: what.clone(),
            jobs: ids.iter().map(job).collect(),
        };
        let done = self.board.connections.act(order.key.clone(), act).await?;
        Ok(done.changed)
    }
}
