//! The queues of the last configuration, from start to end.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, PoisonError, RwLock};

use dq_connect::signals::{Signals, Wanted};
use dq_connect::target::Target;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

use crate::call::Caller;
use crate::config::Config;
use crate::inbound::tokens::{Token, Tokens};
use crate::inbound::{self, Inbound};
use crate::metrics::Metrics;
use crate::options::Args;
use crate::places::Host;
use crate::queue::Queue;
use crate::serve::{self, Shown};
use crate::stop::Stop;

/// What runs under one configuration.
struct Generation {
    queues: Vec<Arc<Queue>>,
    hosts: HashMap<String, Host>,
    stop: Arc<Stop>,
    running: JoinSet<()>,
}

impl Generation {
    /// Makes a generation, whose metrics continue those of the one before.
    fn new(
        (target, db): &(Target, u32),
        config: Config,
        before: Option<&Generation>,
    ) -> Result<Generation, String> {
        let caller = Arc::new(Caller::new(&config)?);
        let none = HashMap::new();
        let hosts = Host::all(&config, before.map_or(&none, |before| &before.hosts));
        let stop = Arc::new(Stop::new());
        let earlier = before.map_or(&[][..], |before| &before.queues);
        let metrics = |name: &str| {
            let same = earlier.iter().find(|queue| queue.config.name == name);
            same.map_or_else(Arc::<Metrics>::default, |queue| Arc::clone(&queue.metrics))
        };
        let queues = config.queues.into_iter().filter_map(|queue| {
            let host = hosts.get(&queue.host)?.clone();
            let at = (target.clone(), *db);
            let (metrics, stop) = (metrics(&queue.name), Arc::clone(&stop));
            let queue = Queue::new(queue, Arc::clone(&caller), at, host, stop, metrics);
            Some(Arc::new(queue))
        });
        Ok(Generation {
            queues: queues.collect(),
            hosts,
            stop,
            running: JoinSet::new(),
        })
    }

    fn start(&mut self) {
        for queue in &self.queues {
            self.running.spawn(Arc::clone(queue).run());
        }
    }

    fn has_ended(&mut self) -> bool {
        while self.running.try_join_next().is_some() {}
        self.running.is_empty()
    }
}

struct Service<'a> {
    args: &'a Args,
    now: Generation,
    /// Earlier generations whose last calls are still running.
    leaving: Vec<Generation>,
    shown: Shown,
    /// Tells the way in to end.
    ending: watch::Sender<bool>,
    serving: Option<JoinHandle<()>>,
}

impl Service<'_> {
    /// Reads the configuration again; one with an error changes nothing.
    fn read_again(&mut self) -> Result<(), String> {
        let mut config = self.args.configuration()?;
        let tokens = mem::take(&mut config.tokens);
        let next = Generation::new(&self.args.place()?, config, Some(&self.now))?;
        self.set_tokens(tokens)?;
        let before = mem::replace(&mut self.now, next);
        before.stop.now();
        self.leaving.retain_mut(|it| !it.has_ended());
        self.leaving.push(before);
        self.show();
        self.now.start();
        Ok(())
    }

    /// Where tokens were needed, they still are, even if there are none any more.
    fn set_tokens(&self, tokens: Vec<Token>) -> Result<(), String> {
        let Some(inbound) = &self.shown.inbound else {
            return match tokens.is_empty() {
                true => Ok(()),
                false => Err("the first token needs a restart".to_owned()),
            };
        };
        inbound.audit.open_again()?;
        let is_open = tokens.is_empty() && !inbound.needs_tokens();
        inbound.set(Tokens::new(tokens, is_open));
        Ok(())
    }

    fn show(&self) {
        let mut shown = self
            .shown
            .queues
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *shown = self.now.queues.clone();
    }

    async fn run(mut self, mut signals: Signals) -> Result<(), String> {
        self.show();
        self.now.start();
        loop {
            let wanted = tokio::select! {
                wanted = signals.next() => wanted,
                () = self.now.stop.wait() => Wanted::End,
            };
            if let Wanted::End = wanted {
                break;
            }
            match self.read_again() {
                Ok(()) => println!(
                    "dq http: read again: the jobs of {}",
                    counted(self.now.queues.len())
                ),
                Err(why) => eprintln!("dq http: nothing changes: {why}"),
            }
        }
        self.drain(signals).await;
        self.now.stop.why().map_or(Ok(()), Err)
    }

    /// Waits for the calls. A second signal aborts them.
    async fn drain(&mut self, mut signals: Signals) {
        self.now.stop.now();
        self.ending.send_replace(true);
        let mut all: Vec<&mut Generation> = self.leaving.iter_mut().collect();
        all.push(&mut self.now);
        let stops: Vec<Arc<Stop>> = all.iter().map(|it| Arc::clone(&it.stop)).collect();
        let serving = self.serving.as_ref().map(JoinHandle::abort_handle);
        let ended = async {
            for generation in all {
                while generation.running.join_next().await.is_some() {}
            }
            if let Some(serving) = &mut self.serving {
                let _ = serving.await;
            }
        };
        let hurried = async {
            while let Wanted::ReadAgain = signals.next().await {}
            stops.iter().for_each(|stop| stop.hurry());
            serving.iter().for_each(AbortHandle::abort);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = ended => {}
            () = hurried => {}
        }
    }
}

fn counted(queues: usize) -> String {
    match queues {
        1 => "1 queue".to_owned(),
        many => format!("{many} queues"),
    }
}

pub async fn serve(args: &Args, mut config: Config) -> Result<(), String> {
    // Before anything is fetched.
    let signals = Signals::new().map_err(|error| error.to_string())?;
    let place = args.place()?;
    let listen = args.listen(&config)?;
    let (ending, ends) = watch::channel(false);
    let tokens = mem::take(&mut config.tokens);
    let now = Generation::new(&place, config, None)?;
    let mut said = Vec::new();
    if !now.queues.is_empty() {
        said.push(format!("calls the jobs of {}", counted(now.queues.len())));
    }
    let (mut inbound, mut serving) = (None, None);
    if let Some((address, is_open)) = listen {
        let tokens = Tokens::new(tokens, is_open);
        let way = Inbound::new(place.clone(), tokens, args.audit_log.as_deref(), ends)?;
        let (bound, task) = inbound::open(address, &way).await?;
        said.push(format!("takes jobs at http://{bound}/queues/QUEUE/jobs"));
        (inbound, serving) = (Some(way), Some(task));
    }
    let shown = Shown {
        queues: Arc::new(RwLock::new(now.queues.clone())),
        inbound,
    };
    let metrics = match args.metrics {
        Some(address) => format!(
            "; http://{}/metrics",
            serve::serve(address, shown.clone()).await?
        ),
        None => String::new(),
    };
    println!(
        "dq http: {} of {}{metrics}",
        said.join(", "),
        place.0.name()
    );
    let service = Service {
        args,
        now,
        leaving: Vec::new(),
        shown,
        ending,
        serving,
    };
    service.run(signals).await
}
