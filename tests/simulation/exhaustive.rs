//! All small histories: every sequence of a few operations and clock steps on two ids, after a few beginnings. Each is
//! compared as a whole at its end.

use crate::compare::{compare, equal};
use crate::follow::{new_queue, same, Follower};
use crate::master::Call;
use crate::model::{Fault, Model};
use crate::op::{AddOp, NackOp, Op, PopOp, TouchOp};
use crate::rng::Rng;
use crate::{from_env, is_whole};
use dq::queue::add::Condition;
use dq::queue::claim::NackKind;
use dq::queue::clock::{Mint, Now, When};
use dq::queue::effects::Effects;
use dq::queue::job::State;
use dq::queue::settings::{Rate, SettingsChange};

#[derive(Clone, Debug)]
pub enum Step {
    Do(Box<Op>),
    /// The clock advances so many microseconds.
    Wait(u64),
}

const START_US: u64 = 1_000_000_300;

fn add(id: &[u8], condition: Condition, delay: Option<u64>, ttl: Option<u64>) -> Op {
    Op::Add(AddOp {
        payload: b"p".to_vec(),
        condition,
        when: delay.map(When::Delay),
        ttr: Some(2),
        attempts: Some(2),
        backoff: Some(vec![1, 2]),
        ttl,
        ..AddOp::like(id)
    })
}

fn pop(id: Option<&[u8]>, noack: bool) -> Op {
    Op::Pop(PopOp {
        id: id.map(<[u8]>::to_vec),
        noack,
        ..PopOp::FIRST
    })
}

fn nack(id: &[u8], kind: NackKind, delay: Option<u64>) -> Op {
    Op::Nack(NackOp {
        id: id.to_vec(),
        token: None,
        delay,
        priority: None,
        kind,
        server_backoff: vec![],
        reason: (kind != NackKind::Fail).then(|| b"why".to_vec()),
        awaits: None,
        after: None,
    })
}

fn touch(id: &[u8]) -> Op {
    Op::Touch(TouchOp {
        ttr: Some(3),
        ..TouchOp::like(id)
    })
}

pub fn alphabet() -> Vec<Step> {
    let (a, b) = (b"a".as_slice(), b"b".as_slice());
    let ack = |id: &[u8]| Op::Ack {
        id: id.to_vec(),
        token: None,
        result: None,
    };
    let operations = [
        add(a, Condition::New, None, None),
        add(b, Condition::New, Some(1), Some(3)),
        add(a, Condition::Replace, Some(2), None),
        add(a, Condition::Next, Some(1), Some(4)),
        pop(None, false),
        pop(None, true),
        pop(Some(b), false),
        ack(a),
        nack(a, NackKind::Fail, None),
        nack(a, NackKind::Silent, Some(1)),
        nack(b, NackKind::Fatal, None),
        touch(a),
        Op::Reschedule {
            id: b.to_vec(),
            when: Some(When::Delay(0)),
            priority: Some(-1),
        },
        Op::KickOldest(1),
        Op::Del {
            id: a.to_vec(),
            unreserved: true,
        },
    ];
    let waits = [1000, 2400].map(Step::Wait);
    operations.map(does).into_iter().chain(waits).collect()
}

/// Operations on three groups and jobs without a group.
fn alphabet_of_groups() -> Vec<Step> {
    let add_to = |id: &[u8], group: &[u8]| match add(id, Condition::Replace, None, None) {
        Op::Add(add) => Op::Add(AddOp {
            group: (!group.is_empty()).then(|| group.to_vec()),
            ..add
        }),
        other => other,
    };
    let operations = [
        add_to(b"a", b"g"),
        add_to(b"b", b"g"),
        add_to(b"c", b"h"),
        add_to(b"d", b"i"),
        add_to(b"e", b""),
        pop(None, false),
        pop(None, true),
        pop(Some(b"b"), false),
        nack(b"a", NackKind::Fail, None),
        nack(b"a", NackKind::Fatal, None),
        Op::KickOldest(1),
        Op::Del {
            id: b"c".to_vec(),
            unreserved: true,
        },
    ];
    let wait = Step::Wait(1000);
    operations.map(does).into_iter().chain([wait]).collect()
}

/// Operations on a queue that keeps done jobs.
fn alphabet_of_done() -> Vec<Step> {
    let (a, b) = (b"a".as_slice(), b"b".as_slice());
    let ack = |id: &[u8], result: Option<&[u8]>| Op::Ack {
        id: id.to_vec(),
        token: None,
        result: result.map(<[u8]>::to_vec),
    };
    let operations = [
        add(a, Condition::New, None, None),
        add(b, Condition::New, None, Some(3)),
        add(a, Condition::Existing, Some(1), None),
        add(a, Condition::Next, None, None),
        pop(None, false),
        pop(None, true),
        ack(a, Some(b"yes")),
        ack(b, None),
        nack(a, NackKind::Fatal, None),
        Op::Kick(a.to_vec()),
        Op::Del {
            id: b.to_vec(),
            unreserved: true,
        },
        Op::Purge(Some(State::Done)),
    ];
    let others = [
        settings(|new| new.done_len = Some(0)),
        settings(|new| new.done_bytes = Some(5)),
        Step::Wait(1000),
    ];
    operations.map(does).into_iter().chain(others).collect()
}

fn does(op: Op) -> Step {
    Step::Do(Box::new(op))
}

fn settings(change: impl FnOnce(&mut SettingsChange)) -> Step {
    let mut settings = SettingsChange::default();
    change(&mut settings);
    does(Op::Configure(settings))
}

/// The beginnings of sequences.
fn beginnings() -> [Vec<Step>; 3] {
    let add_a = does(add(b"a", Condition::New, None, None));
    let add_b = does(add(b"b", Condition::New, None, Some(4)));
    let pop = || does(pop(None, false));
    let limits = settings(|new| {
        (new.dead_len, new.max_len) = (Some(1), Some(1));
        new.max_reserved = Some(1);
        new.max_bytes = Some(5);
    });
    let memory = settings(|new| {
        new.dedupe_ms = Some(2);
        let (count, window_ms) = (2, 2);
        new.rate = Some(Some(Rate { count, window_ms }));
    });
    [
        vec![add_a.clone(), add_b.clone(), pop(), pop()],
        vec![limits, add_a.clone(), pop()],
        vec![memory, add_a, add_b],
    ]
}

/// Plays one history: replies are compared on the way, everything at the end.
pub fn play(steps: &[&Step], fault: Fault) -> Result<(), String> {
    let (mut queue, mut model) = (new_queue(1), Model::new(fault));
    let (mut mint, mut out) = (Mint::new(), Effects::default());
    let mut now_us = START_US;
    let mut replica = Follower::new(2);
    for step in steps {
        let op = match step {
            Step::Wait(us) => {
                now_us += us;
                continue;
            }
            Step::Do(op) => &**op,
        };
        out.clear();
        let call = Call {
            queue: &mut queue,
            now: Now::from_us(now_us),
            mint: &mut mint,
            out: &mut out,
        };
        let reply = call.execute(op);
        model.advance(now_us);
        let expected = model.execute(op, now_us, &reply);
        equal("the reply", &reply, &expected).map_err(|what| format!("{op:?}: {what}"))?;
        replica.tell(out.bytes());
    }
    model.advance(now_us);
    queue.check_invariants()?;
    compare(&queue, &model, Now::from_us(now_us), &mut Rng::new(now_us))?;
    replica.catch_up()?;
    same("replica", &queue, &replica.queue)
}

/// Plays every sequence of `depth` letters after a beginning; returns how many there were.
fn all_of(alphabet: &[Step], beginning: &[Step], depth: u32) -> u64 {
    let letters = alphabet.len() as u64;
    for number in 0..letters.pow(depth) {
        let letter = |place| &alphabet[(number / letters.pow(place) % letters) as usize];
        let steps: Vec<&Step> = beginning.iter().chain((0..depth).map(letter)).collect();
        if let Err(mismatch) = play(&steps, Fault::None) {
            panic!("{mismatch}\nafter {steps:#?}");
        }
    }
    letters.pow(depth)
}

/// Plays sequences from an empty queue, one letter longer. On an empty queue only an operation that adds a job changes
/// anything, so any other first letter gives a history that is a letter shorter.
fn all_behind_nothing(alphabet: &[Step], depth: u32) -> u64 {
    let adds = |step: &&Step| matches!(step, Step::Do(op) if matches!(**op, Op::Add(_)));
    let mut played = all_of(alphabet, &[], depth);
    for first in alphabet.iter().filter(adds) {
        played += all_of(alphabet, std::slice::from_ref(first), depth);
    }
    played
}

/// With the fourth letter there are fifteen times as many.
fn depth() -> u32 {
    from_env("DQ_SIM_DEPTH").unwrap_or(if is_whole() { 4 } else { 3 }) as u32
}

#[test]
fn all_small_histories() {
    let depth = depth();
    let letters = alphabet();
    let mut played = all_behind_nothing(&letters, depth);
    for beginning in beginnings() {
        played += all_of(&letters, &beginning, depth);
    }
    println!("{played} histories");
}

#[test]
fn all_small_histories_of_done_jobs() {
    let depth = depth();
    let letters = alphabet_of_done();
    let reserved = [&letters[0..2], &[letters[4].clone(), letters[4].clone()]].concat();
    let limits = [
        settings(|new| new.done_len = Some(1)),
        settings(|new| (new.done_len, new.done_ttl_ms) = (Some(2), Some(1))),
        settings(|new| (new.done_bytes, new.dedupe_ms) = (Some(9), Some(2))),
    ];
    let mut played = 0;
    for limit in limits {
        let beginning = [&reserved[..], &[limit]].concat();
        played += all_of(&letters, &beginning, depth);
    }
    println!("{played} histories");
}

#[test]
fn all_small_histories_of_groups() {
    let depth = depth();
    let letters = alphabet_of_groups();
    let first_three = [&letters[0..1], &letters[2..3], &letters[4..6]].concat();
    let limits = [
        settings(|new| new.group_max = Some(1)),
        settings(|new| {
            let (count, window_ms) = (1, 2);
            new.group_rate = Some(Some(Rate { count, window_ms }));
        }),
        settings(|new| new.group_fifo = Some(true)),
    ];
    let mut played = all_behind_nothing(&letters, depth);
    for limit in limits {
        let beginning = [&first_three[..], &[limit]].concat();
        played += all_of(&letters, &beginning, depth);
    }
    println!("{played} histories");
}
