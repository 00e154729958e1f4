//! What views ask for besides the table. Tabs that show the same share one answer for a second, and only a few
//! questions are asked at a time.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dq_connect::link::Link;
use dq_connect::target::Target;
use dq_watch::model::QueueKey;
use dq_watch::read::acts::{Act, Done};
use dq_watch::read::reply;
use dq_watch::text::escape;
use redis::{Cmd, Value};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use super::reader::Reader;
use crate::core::failure::Failure;
use dq_serve::locked::locked;

/// Questions sent to the servers at a time.
const AT_ONCE: usize = 4;
/// Idle connections kept to each node.
const KEPT: usize = 2;
/// How long other tabs may get the same answer.
const FRESH: Duration = Duration::from_millis(900);
/// Answers remembered at most for that time, and their bytes.
const REMEMBERED: usize = 500;
const REMEMBERED_BYTES: usize = 4 << 20;

type Answer = Result<Arc<str>, Failure>;
type Slot = Arc<AsyncMutex<Option<(Instant, Answer)>>>;

pub struct Connections {
    first: Mutex<Target>,
    reader: Arc<Reader>,
    links: Mutex<HashMap<String, Vec<Link>>>,
    places: Arc<Semaphore>,
    answers: Mutex<HashMap<String, Slot>>,
}

impl Connections {
    pub fn new(first: Target, reader: Arc<Reader>) -> Connections {
        Connections {
            first: Mutex::new(first),
            reader,
            links: Mutex::default(),
            places: Arc::new(Semaphore::new(AT_ONCE)),
            answers: Mutex::default(),
        }
    }

    pub fn set_target(&self, target: Target) {
        *locked(&self.first) = target;
        locked(&self.links).clear();
    }

    /// The answer to this question, perhaps one that another tab has just got.
    pub async fn shared<F: Future<Output = Result<String, Failure>>>(
        self: &Arc<Connections>,
        question: String,
        ask: impl FnOnce() -> F,
    ) -> Answer {
        let slot = self.slot(question);
        let mut slot = slot.lock_owned().await;
        if let Some((at, answer)) = slot.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            let _ = at;
            return answer.clone();
        }
        let answer = ask().await.map(Arc::from);
        *slot = Some((Instant::now(), answer.clone()));
        drop(slot);
        let connections = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(FRESH).await;
            locked(&connections.answers).retain(|_, slot| !is_over(slot));
        });
        answer
    }

    fn slot(&self, question: String) -> Slot {
        let mut answers = locked(&self.answers);
        let long: usize = answers.values().map(length).sum();
        if answers.len() >= REMEMBERED || long > REMEMBERED_BYTES {
            // Answers that are being asked for have another owner, too.
            answers.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(answers.entry(question).or_default())
    }

    /// Commands about one queue, in one packet, answered by the node that has it.
    pub async fn ask(
        self: &Arc<Connections>,
        key: QueueKey,
        commands: Vec<Cmd>,
    ) -> Result<Vec<Value>, Failure> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        self.with_link(key, move |link, key| {
            let commands = commands.iter().map(|command| (key.db, command.clone()));
            link.look(commands.collect())
        })
        .await
        .map_err(Failure::Lost)
    }

    /// Forgets answers: whoever acts wants to see the result.
    fn forget(&self) {
        locked(&self.answers).retain(|_, slot| Arc::strong_count(slot) > 1);
    }

    /// Carries out an action; after a lost connection it is unknown what was done.
    pub async fn act(self: &Arc<Connections>, key: QueueKey, act: Act) -> Result<Done, Failure> {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let connections = Arc::clone(self);
        let acting = move || {
            let _place = place;
            let mut node = connections.reader.node_of(&key);
            for _ in 0..2 {
                let (name, mut link) = connections.link(node.as_deref())?;
                let said = act.carry_out(&mut link, &key)?;
                connections.keep(name, link);
                let moved = said.as_ref().err().and_then(|error| reply::moved_to(error));
                match moved {
                    Some(address) => node = Some(connections.name_at(address)),
                    None => return Ok(said),
                }
            }
            Err("the cluster is moving this queue; try again".to_owned())
        };
        let said = done(tokio::task::spawn_blocking(acting).await).map_err(Failure::Lost)?;
        self.forget();
        said.map_err(|error| Failure::Refused(escape::line(error.as_bytes())))
    }

    async fn with_link(
        self: &Arc<Connections>,
        key: QueueKey,
        work: impl Fn(&mut Link, &QueueKey) -> Result<Vec<Value>, String> + Send + 'static,
    ) -> Result<Vec<Value>, String> {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let connections = Arc::clone(self);
        let asking = move || {
            // Held until the work is done, even if nobody waits for it any more.
            let _place = place;
            let mut node = connections.reader.node_of(&key);
            let mut lost = String::new();
            // A connection that was kept may be dead by now, and a queue may have moved.
            for _ in 0..KEPT + 2 {
                let (name, mut link) = connections.link(node.as_deref())?;
                match work(&mut link, &key) {
                    Err(error) => lost = error,
                    Ok(values) => {
                        connections.keep(name, link);
                        let error = values.first().and_then(reply::error);
                        match error.as_deref().and_then(reply::moved_to) {
                            Some(address) => node = Some(connections.name_at(address)),
                            None => return Ok(values),
                        }
                    }
                }
            }
            Err(lost)
        };
        done(tokio::task::spawn_blocking(asking).await)
    }

    fn name_at(&self, address: &str) -> String {
        let known = self.reader.node_at(address);
        known.unwrap_or_else(|| address.to_owned())
    }

    /// A connection to that node, or to the first one.
    fn link(&self, node: Option<&str>) -> Result<(String, Link), String> {
        let target = locked(&self.first).clone();
        let first = target.name();
        let name = node.unwrap_or(&first).to_owned();
        let kept = locked(&self.links).get_mut(&name).and_then(Vec::pop);
        if let Some(link) = kept {
            return Ok((name, link));
        }
        let link = match name == first {
            true => target.connect()?,
            false => {
                let target = target.at(&name);
                target.ok_or("a node without an address")?.connect()?
            }
        };
        Ok((name, link))
    }

    fn keep(&self, name: String, link: Link) {
        let mut links = locked(&self.links);
        let kept = links.entry(name).or_default();
        if kept.len() < KEPT {
            kept.push(link);
        }
    }
}

fn length(slot: &Slot) -> usize {
    let answer = slot.try_lock();
    let answer = answer.as_deref().ok().and_then(Option::as_ref);
    answer.map_or(0, |(_, answer)| {
        answer.as_ref().map_or(0, |text| text.len())
    })
}

/// Whether nobody asks for it or shares its answer any more.
fn is_over(slot: &Slot) -> bool {
    let old = |answer: &Option<(Instant, Answer)>| {
        answer.as_ref().is_none_or(|(at, _)| at.elapsed() >= FRESH)
    };
    Arc::strong_count(slot) == 1 && slot.try_lock().is_ok_and(|answer| old(&answer))
}

fn done<T>(joined: Result<Result<T, String>, tokio::task::JoinError>) -> Result<T, String> {
    joined.unwrap_or_else(|error| Err(format!("dq board failed: {error}")))
}
