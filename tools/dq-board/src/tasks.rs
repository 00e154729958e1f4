//! Actions on all jobs that a filter selects: in steps, which report their progress and can be stopped.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use dq_watch::model::QueueKey;
use dq_watch::read::acts::{Act, Job, OnJob};
use dq_watch::read::deaths::Deaths;
use dq_watch::read::detail::{Job as Read, State};
use serde_json::{json, Value as Json};
use tokio::sync::watch;

use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::filter::Filter;
use crate::core::removal::Removal;
use crate::fate::Fate;
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
    /// To count: what would be done to them, of which it is told what comes; empty: that is not told.
    pub foresees: String,
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
    /// What would come of it.
    fate: Option<Json>,
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
            "fate": progress.fate,
        })
    }

    pub fn stop(&self) {
        self.stops.store(true, Ordering::Relaxed);
    }

    /// Whether it does more than to count.
    pub fn acts(&self) -> bool {
        self.acts
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
        let walked = match Fate::of(&order.foresees) {
            Some(fate) => self.foresee(task, order, fate).await,
            None => self.carry_out(task, order).await,
        };
        match walked {
            Ok(true) => End::Done,
            Ok(false) => End::Stopped,
            Err(failure) => End::Failed(failure),
        }
    }

    /// Counts the jobs of the filter, or acts on them; whether to the end.
    async fn carry_out(&self, task: &Task, order: &Order) -> Result<bool, Failure> {
        // A job that comes back meanwhile, such as one that dies again, is not treated twice.
        let mut seen = Deaths::default();
        let goes_on =
            !order.removes_blocked() || self.remove_blocked(task, order, &mut seen).await?;
        Ok(goes_on && self.walk(task, order, &mut seen).await?)
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

    /// Reads the jobs, then the blocked ones, for what would come of it; whether to the end.
    async fn foresee(&self, task: &Task, order: &Order, mut fate: Fate) -> Result<bool, Failure> {
        let (board, key) = (&self.board, &order.key);
        let mut reading = views::Reading::default();
        let (jobs, _) = reading.jobs(board, key, &order.ids, true).await?;
        locked(&task.progress).found += jobs.iter().filter(|job| fate.takes(job)).count() as u64;
        let takes = order.ids.is_empty().then(|| order.filter.clone());
        let sees = Fate::has_blocked(board, key).await?;
        let sees = sees.then(|| Filter::of_state(State::Blocked));
        for (filter, is_first) in [(takes, true), (sees, false)] {
            let mut cursor = filter.is_some().then(|| "0".to_owned());
            while let (Some(from), Some(filter)) = (cursor, &filter) {
                if self.is_stopped(task) {
                    return Ok(false);
                }
                let mut found = 0;
                let each = |job: Read| match is_first {
                    true => found += u64::from(fate.takes(&job)),
                    false => fate.sees(&job),
                };
                let enough = views::ALL_THAT_ONE_MAY;
                let step = views::walk(board, key, filter, from, enough, each).await?;
                let mut progress = locked(&task.progress);
                progress.looked += step.looked;
                progress.found += found;
                cursor = step.more;
            }
        }
        let told = fate.told(board, key).await?;
        locked(&task.progress).fate = Some(told);
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
