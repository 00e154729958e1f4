//! Connections to the server: one for each queue, which follows it from node to node.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq_connect::link::PATIENCE;
use dq_connect::source::{Source, Trouble, Wire};
use dq_connect::target::Target;
use dq_serve::locked::locked;
use dq_watch::text::escape;
use redis::{Cmd, Value};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{sleep, timeout, Instant};

/// So many queues have a connection at a time.
const MOST: usize = 1000;
/// A command that may be sent twice is, for so long: a server that was restarted does not know the old connections.
const AGAIN_FOR: Duration = Duration::from_secs(2);
/// So many troubles are told.
const TOLD: usize = 100;
const PAUSE: Duration = Duration::from_millis(50);

pub struct Links {
    target: Target,
    db: u32,
    links: Mutex<HashMap<Vec<u8>, Arc<Link>>>,
    /// Whether the server answered last.
    up: AtomicBool,
    /// What was told.
    told: Mutex<HashSet<String>>,
}

struct Link {
    source: Source,
    wire: AsyncMutex<Option<Wire>>,
}

impl Links {
    pub fn new((target, db): (Target, u32)) -> Links {
        Links {
            target,
            db,
            links: Mutex::default(),
            up: AtomicBool::new(false),
            told: Mutex::default(),
        }
    }

    /// Whether the server answers, as far as is known. One that did not is asked again, as nobody else may.
    pub async fn is_up(&self) -> bool {
        if !self.up.load(Relaxed) {
            let source = Source::new(self.target.clone(), self.db);
            let connected = source.connect().await.is_ok();
            self.up.store(connected, Relaxed);
        }
        self.up.load(Relaxed)
    }

    fn link(&self, queue: &[u8]) -> Arc<Link> {
        let mut links = locked(&self.links);
        if links.len() >= MOST && !links.contains_key(queue) {
            links.clear();
        }
        let link = links.entry(queue.to_vec()).or_insert_with(|| {
            let source = Source::new(self.target.clone(), self.db);
            Arc::new(Link {
                source,
                wire: AsyncMutex::default(),
            })
        });
        Arc::clone(link)
    }

    /// The server's answer. `again`: whether the command may be sent twice if the first answer is lost.
    pub async fn ask(&self, queue: &[u8], command: &Cmd, again: bool) -> Result<Value, Trouble> {
        let link = self.link(queue);
        let end = Instant::now() + AGAIN_FOR;
        loop {
            let answer = link.ask(command).await;
            let Err(Trouble::Passing(why)) = &answer else {
                return self.noted(queue, answer);
            };
            // A server that says no has done nothing.
            let is_undone = ["MOVED", "READONLY", "LOADING"]
                .iter()
                .any(|it| why.starts_with(it));
            if !(again || is_undone) || Instant::now() > end {
                return self.noted(queue, answer);
            }
            sleep(PAUSE).await;
        }
    }

    /// The answer of a command that waits for so long, over a connection of its own.
    pub async fn wait(&self, queue: &[u8], command: &Cmd, seconds: f64) -> Result<Value, Trouble> {
        let link = self.link(queue);
        let patience = Duration::from_secs_f64(seconds) + PATIENCE;
        loop {
            let answer = async {
                let (mut wire, _) = link.source.connect().await?;
                match timeout(patience, command.query_async(&mut wire)).await {
                    Ok(answer) => answer.map_err(|error| link.source.trouble(&error)),
                    Err(_) => Err(Trouble::Passing("no answer".to_owned())),
                }
            };
            match answer.await {
                Err(Trouble::Passing(why)) if why.starts_with("MOVED") => sleep(PAUSE).await,
                answer => return self.noted(queue, answer),
            }
        }
    }

    /// Tells each trouble once, until the server has been away.
    fn noted<T>(&self, queue: &[u8], answer: Result<T, Trouble>) -> Result<T, Trouble> {
        let (is_up, why) = match &answer {
            Ok(_) | Err(Trouble::Refused(_)) => (true, None),
            Err(Trouble::OfQueue(why)) => {
                let name = escape::name(queue);
                (true, Some(format!("queue {name}: {why}")))
            }
            Err(Trouble::Passing(why) | Trouble::Final(why)) => (false, Some(why.clone())),
        };
        let mut told = locked(&self.told);
        if !self.up.swap(is_up, Relaxed) && is_up {
            told.clear();
        }
        if let Some(why) = why.filter(|_| told.len() < TOLD) {
            if told.insert(why.clone()) {
                eprintln!("dq http: the way in: {why}");
            }
        }
        drop(told);
        answer
    }
}

impl Link {
    async fn ask(&self, command: &Cmd) -> Result<Value, Trouble> {
        let wire = self.wire().await?;
        let answer = self.source.ask(&wire, command).await;
        if matches!(answer, Err(Trouble::Passing(_) | Trouble::Final(_))) {
            *self.wire.lock().await = None;
        }
        answer
    }

    async fn wire(&self) -> Result<Wire, Trouble> {
        let mut wire = self.wire.lock().await;
        if let Some(wire) = &*wire {
            return Ok(wire.clone());
        }
        let (fresh, _) = self.source.connect().await?;
        *wire = Some(fresh.clone());
        Ok(fresh)
    }
}
