//! Producers and workers on a few queues while something happens to the cluster.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use redis::{cmd, Cmd, Value};

use crate::history::{faults, Delivered, Event};
use crate::router::{Guides, Outcome, Router};
use crate::scene::{now_ms, Dice};
use crate::support::{poll, wait_until, PATIENCE};

/// A lease so long that only its end ends it, and so short that many end.
const TTR_MS: u64 = 400;
const PRODUCERS: u64 = 2;
const WORKERS: u64 = 4;

pub struct Traffic<'a> {
    pub guides: &'a Guides,
    pub queues: &'a [String],
    /// Each ADD is followed by WAIT 1: what is answered survives the master's death.
    pub wait: bool,
}

/// What was seen.
pub struct Seen {
    pub events: Vec<Event>,
    /// Redirections that were followed.
    pub moved: usize,
}

impl Seen {
    /// Nothing lost, nothing doubled without a cause; and there was something to see.
    #[track_caller]
    pub fn assert_sound(&self, crash: Option<u64>) {
        let faults = faults(&self.events, crash);
        assert!(faults.is_empty(), "{} faults: {faults:#?}", faults.len());
        let count = |kind: fn(&Event) -> bool| self.events.iter().filter(|e| kind(e)).count();
        let again = |event: &Event| matches!(event, Event::Delivered(d) if d.attempts > 1);
        assert!(count(|event| matches!(event, Event::Added { .. })) > 50);
        assert!(count(again) > 5, "some leases end");
    }
}

struct Log<'a> {
    events: &'a Mutex<Vec<Event>>,
    router: Router,
}

impl Traffic<'_> {
    /// Traffic from before to after `happening`; then no producer any more, until all queues are empty.
    pub fn during(&self, happening: impl FnOnce()) -> Seen {
        let events = Mutex::new(Vec::new());
        let moved = AtomicUsize::new(0);
        let (full, done) = (AtomicBool::new(false), AtomicBool::new(false));
        let new_log = || Log {
            events: &events,
            router: Router::new(self.guides),
        };
        let count = |router: &Router| {
            moved.fetch_add(router.moved, Ordering::Relaxed);
        };
        thread::scope(|scope| {
            let stop = StopOnDrop([&full, &done]);
            for number in 0..PRODUCERS {
                let (full, count) = (&full, &count);
                scope.spawn(move || {
                    let mut log = new_log();
                    self.produce(number, &mut log, full);
                    count(&log.router);
                });
            }
            for number in 0..WORKERS {
                let (done, count) = (&done, &count);
                scope.spawn(move || {
                    let mut log = new_log();
                    self.work(number, &mut log, done);
                    count(&log.router);
                });
            }
            wait_until("there is traffic", PATIENCE, || {
                events.lock().expect("no panic").len() > 200
            });
            happening();
            full.store(true, Ordering::Relaxed);
            self.wait_until_empty();
            drop(stop);
        });
        Seen {
            events: events.into_inner().expect("no panic"),
            moved: moved.into_inner(),
        }
    }

    fn wait_until_empty(&self) {
        let mut router = Router::new(self.guides);
        wait_until("all is worked off", PATIENCE, || {
            self.queues.iter().all(|queue| {
                let len = router.call(queue, cmd("DQ.LEN").arg(queue));
                len == Outcome::Answer(Value::Int(0))
            })
        });
    }

    fn produce(&self, number: u64, log: &mut Log, full: &AtomicBool) {
        let mut dice = Dice::new(number);
        for count in 0.. {
            if full.load(Ordering::Relaxed) {
                return;
            }
            let queue = &self.queues[dice.below(self.queues.len() as u64) as usize];
            let id = format!("{number}-{count}");
            let due = now_ms() + dice.below(600);
            let mut add = cmd("DQ.ADD");
            add.arg(queue).arg(&id).arg("payload").arg("AT").arg(due);
            add.arg("TTR").arg(TTR_MS);
            let mut sure = matches!(log.router.call(queue, &add), Outcome::Answer(_));
            if sure && self.wait {
                let answer = log.router.call(queue, cmd("WAIT").arg(1).arg(1000));
                sure = answer == Outcome::Answer(Value::Int(1));
            }
            log.note(Event::Added { id, due, sure });
            poll(Duration::from_millis(dice.below(8)), || None::<()>);
        }
    }

    fn work(&self, number: u64, log: &mut Log, done: &AtomicBool) {
        let mut dice = Dice::new(100 + number);
        while !done.load(Ordering::Relaxed) {
            let queue = &self.queues[dice.below(self.queues.len() as u64) as usize];
            let mut pop = cmd("DQ.BPOP");
            pop.arg(queue).arg(0.2);
            if dice.below(3) == 0 {
                pop.arg("COUNT").arg(3).arg("FILL").arg(2).arg(30);
            }
            let Outcome::Answer(Value::Array(words)) = log.router.call(queue, &pop) else {
                continue;
            };
            for delivered in deliveries(&words) {
                let (id, token) = (delivered.id.clone(), delivered.token);
                log.note(Event::Delivered(delivered));
                log.end(queue, id, token, &mut dice);
            }
        }
    }
}

impl Log<'_> {
    fn note(&self, event: Event) {
        self.events.lock().expect("no panic").push(event);
    }

    fn end(&mut self, queue: &str, id: String, token: u64, dice: &mut Dice) {
        match dice.below(10) {
            // Forgets about it.
            0 => {}
            1 => {
                let mut nack = cmd("DQ.NACK");
                nack.arg(queue).arg(&id).arg("TOKEN").arg(token);
                let answer = self.router.call(queue, nack.arg("DELAY").arg(50));
                if answer != Outcome::Answer(Value::Nil) {
                    self.note(Event::GaveBack { id, token });
                }
            }
            _ => self.ack(queue, id, token),
        }
    }

    fn ack(&mut self, queue: &str, id: String, token: u64) {
        let mut ack: Cmd = cmd("DQ.ACK");
        ack.arg(queue).arg("WITHTOKENS").arg(&id).arg(token);
        let counted = match self.router.call(queue, &ack) {
            Outcome::Answer(answer) => Some(answer == Value::Int(1)),
            Outcome::Unknown => None,
        };
        let at = now_ms();
        self.note(Event::Acked {
            id,
            token,
            at,
            counted,
        });
    }
}

/// `[key, id, payload, token, attempts, deadline]`, or `[key, [job, ...]]`.
fn deliveries(words: &[Value]) -> Vec<Delivered> {
    let one = |job: &Value| match job {
        Value::Array(job) => delivery(job),
        other => panic!("no job: {other:?}"),
    };
    match words {
        [_, Value::Array(jobs)] => jobs.iter().map(one).collect(),
        [_, job @ ..] => vec![delivery(job)],
        [] => panic!("an empty answer"),
    }
}

fn delivery(job: &[Value]) -> Delivered {
    let text = |at: usize| redis::from_redis_value_ref::<String>(&job[at]).expect("text");
    let number = |at: usize| text(at).parse::<u64>().expect("a number");
    Delivered {
        id: text(0),
        token: number(2),
        attempts: number(3) as i64,
        at: now_ms(),
        deadline: number(4),
    }
}

/// The threads end, whatever became of the test.
struct StopOnDrop<'a>([&'a AtomicBool; 2]);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        for flag in self.0 {
            flag.store(true, Ordering::Relaxed);
        }
    }
}
