//! The queues of the last configuration, from start to end.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use dq_connect::signals::{Signals, Wanted};
use dq_connect::target::Target;
use tokio::task::JoinSet;

use crate::call::Caller;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::options::Args;
use crate::places::Host;
use crate::queue::Queue;
use crate::serve::{self, Queues};
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
    shown: Queues,
}

impl Service<'_> {
    /// Reads the configuration again; one with an error changes nothing.
    fn read_again(&mut self) -> Result<(), String> {
        let config = Config::read(&self.args.config)?;
        let next = Generation::new(&self.args.place()?, config, Some(&self.now))?;
        let before = std::mem::replace(&mut self.now, next);
        before.stop.now();
        self.leaving.retain_mut(|it| !it.has_ended());
        self.leaving.push(before);
        self.show();
        self.now.start();
        Ok(())
    }

    fn show(&self) {
        let mut shown = self.shown.write().unwrap_or_else(PoisonError::into_inner);
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
        let mut all: Vec<&mut Generation> = self.leaving.iter_mut().collect();
        all.push(&mut self.now);
        let stops: Vec<Arc<Stop>> = all.iter().map(|it| Arc::clone(&it.stop)).collect();
        let ended = async {
            for generation in all {
                while generation.running.join_next().await.is_some() {}
            }
        };
        let hurried = async {
            while let Wanted::ReadAgain = signals.next().await {}
            stops.iter().for_each(|stop| stop.hurry());
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

pub async fn serve(args: &Args, config: Config) -> Result<(), String> {
    // Before anything is fetched.
    let signals = Signals::new().map_err(|error| error.to_string())?;
    let place = args.place()?;
    let now = Generation::new(&place, config, None)?;
    let shown = Arc::new(RwLock::new(now.queues.clone()));
    let metrics = match args.metrics {
        Some(address) => format!(
            "; http://{}/metrics",
            serve::serve(address, Arc::clone(&shown)).await?
        ),
        None => String::new(),
    };
    println!(
        "dq http: calls the jobs of {} of {}{metrics}",
        counted(now.queues.len()),
        place.0.name()
    );
    let service = Service {
        args,
        now,
        leaving: Vec::new(),
        shown,
    };
    service.run(signals).await
}
