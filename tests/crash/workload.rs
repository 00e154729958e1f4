//! Several actors use one server at the same time, over all of its lives.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::actor::{bounds, Actor};
use crate::clock::Clock;
use crate::history::{check, End, History, Kept, Life, Tally, SERVERS_LADDER};
use crate::support::{Client, Server};

const ACTORS: usize = 4;

pub struct Workload {
    pub clock: Clock,
    seed: u64,
    /// The test that reproduces it.
    test: &'static str,
    actors: Vec<Actor>,
    lives: Vec<Life>,
}

impl Workload {
    pub fn new(test: &'static str, seed: u64) -> Workload {
        let clock = Clock::new();
        Workload {
            clock,
            seed,
            test,
            actors: (0..ACTORS).map(|n| Actor::new(n, seed, clock)).collect(),
            lives: Vec::new(),
        }
    }

    /// Makes the actors sometimes wait until a replica has confirmed an ADD.
    pub fn waiting_for_replicas(mut self) -> Workload {
        for actor in &mut self.actors {
            actor.waits = true;
        }
        self
    }

    pub fn life(&self) -> usize {
        self.lives.len()
    }

    /// Runs the traffic until `scene` ends: it has killed the server, or the actors are told to stop.
    pub fn play<T>(&mut self, server: &mut Server, scene: impl FnOnce(&mut Server) -> T) -> T {
        let life = self.life();
        let over = AtomicBool::new(false);
        let clients: Vec<Client> = self.actors.iter().map(|_| server.connect()).collect();
        thread::scope(|scope| {
            for (actor, mut client) in self.actors.iter_mut().zip(clients) {
                let goes_on = || !over.load(Ordering::Relaxed);
                scope.spawn(move || actor.play(&mut client, life, goes_on));
            }
            let _stop = Stop(&over);
            scene(server)
        })
    }

    /// A life has ended, as the server is dead or no longer master: `kept` is what must survive.
    pub fn ends(&mut self, kept: Kept, end: End) {
        self.lives.push(Life { kept, end });
    }

    /// Takes out every job that is left.
    #[track_caller]
    pub fn drained(self, server: &Server) -> History {
        let mut client = server.connect();
        let life = self.life();
        let mut drain = Actor::new(ACTORS, self.seed, self.clock);
        drain.drain(&mut client, life);
        let actors = self.actors.into_iter().chain([drain]);
        let mut entries: Vec<_> = actors.flat_map(|it| it.entries).collect();
        entries.sort_by_key(|entry| (entry.sent.at_us, entry.client));
        History {
            entries,
            bounds: bounds(),
            lives: self.lives,
        }
    }

    /// Takes out every job that is left, and judges the history. The server's folder is kept if there is a fault.
    #[track_caller]
    pub fn judge(self, server: &Server) -> Tally {
        let (seed, test) = (self.seed, self.test);
        let history = self.drained(server);
        let verdict = check(&history);
        if !verdict.faults.is_empty() {
            panic!(
                "{test}: {}\nagain: DQ_SEED={seed} cargo test --no-default-features --test crash {test}",
                verdict.complaint(&history),
            );
        }
        verdict.tally
    }
}

/// Stops the actors even if the scene panics.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Its own lease and ladder are short, or the drain would take a minute.
pub fn builder() -> crate::support::Builder {
    let [first, last] = SERVERS_LADDER;
    let arguments = format!("default-ttr 150 default-backoff {first} {last}");
    Server::builder().module_arguments(&arguments)
}
