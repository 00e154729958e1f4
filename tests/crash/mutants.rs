//! The history of a real run, falsified in one place: each rule must notice it, in the middle of everything else.
//!
//! Not every falsification can be told from what is possible (a POP without an answer may have counted an attempt). So
//! for each it is defined how many of ten must be noticed.

use crate::cycles::{self, Setting};
use crate::history::{
    check, serial_of, Add, Claim, Corpse, Delivery, Due, Entry, History, Rule, Touch, What,
};
use crate::rng::Rng;

/// Returns false if it is not possible in this history.
type Falsify = fn(&mut History, &mut Rng) -> bool;

/// Its name, the falsification, the rule that must notice it, and in at least how many of ten cases.
pub type Mutant = (&'static str, Falsify, Rule, usize);

const MUTANTS: [Mutant; 11] = [
    ("a job that is not there at the end", lose, Rule::Lost, 5),
    ("a job that comes after its ACK", repeat, Rule::Finished, 10),
    ("a due later than the delivery", hurry, Rule::Early, 5),
    ("a TTL that was over", expire, Rule::Expired, 10),
    ("one byte more", change, Rule::Unexpected, 10),
    ("one attempt more", count, Rule::Attempts, 3),
    (
        "a job that should have come first",
        pass_over,
        Rule::Order,
        5,
    ),
    ("a lease that had not ended", prolong, Rule::TwoLeases, 5),
    ("the token of another delivery", reuse, Rule::Tokens, 10),
    ("a token of a former delivery", revive, Rule::Stale, 10),
    ("dead though it may be delivered", bury, Rule::Dead, 5),
];

pub type Place = (usize, usize);

/// A random delivery with a lease.
fn any(history: &History, rng: &mut Rng) -> Place {
    let places: Vec<Place> = (0..history.entries.len())
        .flat_map(|at| {
            let jobs = jobs(&history.entries[at]);
            let leased = (0..jobs.len()).filter(|&job| jobs[job].lease.is_some());
            leased.map(move |job| (at, job)).collect::<Vec<Place>>()
        })
        .collect();
    *rng.pick(&places)
}

pub fn jobs(entry: &Entry) -> &[Delivery] {
    match &entry.what {
        What::Pop(pop) => pop.answer.as_deref().unwrap_or_default(),
        _ => &[],
    }
}

fn jobs_mut(entry: &mut Entry) -> &mut Vec<Delivery> {
    match &mut entry.what {
        What::Pop(pop) => pop.answer.as_mut().expect("an answer"),
        other => panic!("no POP: {other:?}"),
    }
}

fn token(history: &History, (at, job): Place) -> u64 {
    let lease = jobs(&history.entries[at])[job].lease;
    lease.expect("a lease").token
}

/// The ADD of the job, and when it was answered.
fn add_of(history: &mut History, (at, job): Place) -> (&mut Add, u64) {
    let serial = serial_of(&jobs(&history.entries[at])[job].payload);
    let mut adds = history.entries.iter_mut().filter_map(|entry| {
        let answered = entry.ended.wall_ms_up();
        match &mut entry.what {
            What::Add(add) => Some((add, answered)),
            _ => None,
        }
    });
    adds.find(|(add, _)| Some(add.serial) == serial)
        .expect("its ADD")
}

/// The next delivery of the same job.
fn next_of(history: &History, (at, job): Place) -> Option<Place> {
    let payload = &jobs(&history.entries[at])[job].payload;
    let same = |entry: &Entry| {
        let mut jobs = jobs(entry).iter();
        jobs.position(|job| job.payload == *payload && job.lease.is_some())
    };
    let mut later = (at + 1..history.entries.len()).rev();
    later.find_map(|at| same(&history.entries[at]).map(|job| (at, job)))
}

/// A delivery of the final drain that is the first of its job, and whose ACK follows.
pub fn at_the_end(history: &History, rng: &mut Rng) -> Option<Place> {
    let (at, job) = any(history, rng);
    let drains = matches!(history.entries.get(at + 1)?.what, What::Ack(_));
    let last = history.entries.last()?.client;
    let first = jobs(&history.entries[at])[job].attempts == 1;
    (drains && first && history.entries[at].client == last).then_some((at, job))
}

fn lose(history: &mut History, rng: &mut Rng) -> bool {
    let Some((at, job)) = at_the_end(history, rng) else {
        return false;
    };
    let gone = jobs_mut(&mut history.entries[at]).remove(job);
    let What::Ack(ack) = &mut history.entries[at + 1].what else {
        return false;
    };
    ack.claims.retain(|claim| claim.id != gone.id);
    ack.answer = Some(ack.claims.len() as u64);
    true
}

fn repeat(history: &mut History, rng: &mut Rng) -> bool {
    let Some((at, job)) = at_the_end(history, rng) else {
        return false;
    };
    let mut again = history.entries[at].clone();
    let last = history.entries.last().expect("entries").ended;
    (again.sent, again.ended) = (last, last);
    let job = jobs(&again)[job].clone();
    *jobs_mut(&mut again) = vec![job];
    let job = &mut jobs_mut(&mut again)[0];
    job.attempts += 1;
    job.lease.as_mut().expect("a lease").token = (last.wall_ms() + 1) << 20;
    history.entries.push(again);
    true
}

fn hurry(history: &mut History, rng: &mut Rng) -> bool {
    let place = any(history, rng);
    let now_ms = token(history, place) >> 20;
    add_of(history, place).0.due = Due::At(now_ms + 30);
    true
}

fn expire(history: &mut History, rng: &mut Rng) -> bool {
    let place = any(history, rng);
    let now_ms = token(history, place) >> 20;
    let (add, answered) = add_of(history, place);
    add.ttl_ms = Some(10);
    now_ms >= answered + 10
}

fn change(history: &mut History, rng: &mut Rng) -> bool {
    let (at, job) = any(history, rng);
    jobs_mut(&mut history.entries[at])[job].payload.push(0);
    true
}

fn count(history: &mut History, rng: &mut Rng) -> bool {
    let (at, job) = any(history, rng);
    jobs_mut(&mut history.entries[at])[job].attempts += 1;
    true
}

fn pass_over(history: &mut History, rng: &mut Rng) -> bool {
    let place = any(history, rng);
    let now_ms = token(history, place) >> 20;
    let (add, answered) = add_of(history, place);
    add.priority = -1000;
    add.due = Due::In(0);
    let later = now_ms > answered + 60;
    later && !is_moved(history, place)
}

fn prolong(history: &mut History, rng: &mut Rng) -> bool {
    let (at, job) = any(history, rng);
    let lease = &mut jobs_mut(&mut history.entries[at])[job].lease;
    lease.as_mut().expect("a lease").deadline += 3_600_000;
    !is_moved(history, (at, job)) && next_of(history, (at, job)).is_some()
}

/// Whether the job was given back: then it may come again at any time, and has another place in the order.
fn is_moved(history: &History, (at, job): Place) -> bool {
    let id = &jobs(&history.entries[at])[job].id;
    history.entries.iter().any(|entry| match &entry.what {
        What::Nack(nack) => nack.claim.id == *id,
        What::Reschedule(all) => all.ids.contains(id),
        _ => false,
    })
}

fn reuse(history: &mut History, rng: &mut Rng) -> bool {
    let (one, other) = (any(history, rng), any(history, rng));
    let used = token(history, other);
    let queue = jobs(&history.entries[other.0])[other.1].queue.clone();
    let job = &mut jobs_mut(&mut history.entries[one.0])[one.1];
    job.lease.as_mut().expect("a lease").token = used;
    one != other && job.queue == queue
}

fn revive(history: &mut History, rng: &mut Rng) -> bool {
    let place = any(history, rng);
    let Some(next) = next_of(history, place) else {
        return false;
    };
    let token = token(history, place);
    let mut entry = history.entries[next.0].clone();
    let last = history.entries.last().expect("entries");
    (entry.sent, entry.ended, entry.life) = (last.ended, last.ended, last.life);
    entry.sent.at_us += 1;
    entry.ended.at_us += 2;
    entry.queue = jobs(&history.entries[next.0])[next.1].queue.clone();
    let claim = Claim {
        id: jobs(&history.entries[next.0])[next.1].id.clone(),
        token: Some(token),
    };
    entry.what = What::Touch(Touch::of(claim, Some(Some(entry.ended.wall_ms()))));
    let certain = history.is_certain(&history.entries[next.0], entry.life);
    history.entries.push(entry);
    certain
}

fn bury(history: &mut History, rng: &mut Rng) -> bool {
    let (at, job) = any(history, rng);
    let payload = jobs(&history.entries[at])[job].payload.clone();
    let mortal = add_of(history, (at, job)).0.max_attempts != 0;
    let dead = history
        .entries
        .iter_mut()
        .rev()
        .find_map(|entry| match &mut entry.what {
            What::Dead(dead) => Some(dead),
            _ => None,
        });
    dead.expect("the dead at the end").push(Corpse {
        payload,
        attempts: 1,
    });
    !mortal
}

#[test]
fn canary_what_is_falsified_is_noticed() {
    let mut unseen = MUTANTS.to_vec();
    // A history may have too little of something, above all on a busy machine: so each is longer than the one before.
    for seed in 1..=6 {
        // Few commands, as fsync allows no more, and as the history is checked a hundred times.
        let (server, workload, _) = cycles::kill(Setting::Always, seed + 3, 4 * seed);
        let history = workload.drained(&server);
        check(&history).assert_clean(&history);
        unseen.retain(|mutant| !is_noticed(&history, mutant));
        if unseen.is_empty() {
            return;
        }
    }
    panic!("not noticed: {unseen:?}");
}

/// How many places are looked at to find ten where it is possible.
const PLACES: usize = 2000;

/// Falsifies ten random places; returns whether enough were noticed. Not where the history has too few of them.
pub fn is_noticed(history: &History, (name, falsify, rule, at_least): &Mutant) -> bool {
    let mut rng = Rng::new(4);
    let (mut tried, mut noticed) = (0, 0);
    for _ in 0..PLACES {
        if tried == 10 {
            break;
        }
        let mut falsified = history.clone();
        if falsify(&mut falsified, &mut rng) {
            tried += 1;
            let faults = check(&falsified).faults;
            noticed += usize::from(faults.iter().any(|fault| fault.rule == *rule));
        }
    }
    println!("{name}: {noticed} of {tried} noticed");
    noticed >= *at_least
}
