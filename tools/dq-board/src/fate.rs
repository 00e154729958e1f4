//! What comes of deleting or moving jobs, told before it is done. All that is read is read in steps.

use std::sync::Arc;

use dq_watch::model::QueueKey;
use dq_watch::read::deaths::{Deaths, Told};
use dq_watch::read::detail::{Job, State};
use dq_watch::read::reply;
use dq_watch::read::stays::Stays;
use dq_watch::text::escape;
use serde_json::{json, Value as Json};

use crate::board::Board;
use crate::core::failure::Failure;

/// Groups that are counted at a time.
const GROUPS_AT_ONCE: usize = 500;

pub enum Fate {
    /// `spares`: what workers have stays.
    Deletion {
        deaths: Box<Deaths>,
        spares: bool,
    },
    Move(Box<Stays>),
}

impl Fate {
    /// Of what is to be done to the jobs; None: nobody is to be told.
    pub fn of(act: &str) -> Option<Fate> {
        let deletion = |spares| Fate::Deletion {
            deaths: Box::default(),
            spares,
        };
        match act {
            "delete" => Some(deletion(false)),
            "cancel" => Some(deletion(true)),
            "move" => Some(Fate::Move(Box::default())),
            _ => None,
        }
    }

    /// Whether blocked jobs must be looked through; a user who may not ask looks.
    pub async fn has_blocked(board: &Arc<Board>, key: &QueueKey) -> Result<bool, Failure> {
        let len = redis::cmd("DQ.LEN")
            .arg(&key.name)
            .arg("BLOCKED")
            .to_owned();
        let values = board.connections.ask(key.clone(), vec![len]).await?;
        Ok(values.first().and_then(reply::int) != Some(0))
    }

    /// One of the jobs; whether it is another one than before.
    pub fn takes(&mut self, job: &Job) -> bool {
        match self {
            Fate::Deletion { spares, .. } if *spares && job.state == State::Reserved.word() => true,
            Fate::Deletion { deaths, .. } => deaths.delete_job(job),
            Fate::Move(stays) => stays.moves(job),
        }
    }

    /// A blocked job, after all that are deleted or moved.
    pub fn sees(&mut self, job: &Job) {
        match self {
            Fate::Deletion { deaths, .. } => deaths.see(job),
            Fate::Move(stays) => stays.see(job),
        }
    }

    pub async fn told(self, board: &Arc<Board>, key: &QueueKey) -> Result<Json, Failure> {
        let mut deaths = match self {
            Fate::Deletion { deaths, .. } => deaths,
            Fate::Move(stays) => {
                let (count, first) = stays.told();
                let first = first.iter();
                let first = first.map(|(id, why)| (escape::name(id), *why));
                return Ok(json!({ "staying": (count, first.collect::<Vec<_>>()) }));
            }
        };
        for groups in deaths.follow().chunks(GROUPS_AT_ONCE) {
            let len = |name| {
                let mut len = redis::cmd("DQ.LEN");
                len.arg(&key.name).arg("GROUP").arg(name).to_owned()
            };
            let lens = groups.iter().map(len).collect();
            let values = board.connections.ask(key.clone(), lens).await?;
            // A user who may not ask is told the rest.
            for (group, count) in groups.iter().zip(values.iter().map(reply::int)) {
                deaths.holds(group, count.map_or(u64::MAX, |count| count as u64));
            }
        }
        let told = |(count, first): Told| {
            let first: Vec<String> = first.iter().map(|id| escape::name(id)).collect();
            (count, first)
        };
        Ok(json!({
            "dying": told(deaths.dying()),
            "freed": told(deaths.freed()),
            "successors": deaths.successors,
        }))
    }
}
