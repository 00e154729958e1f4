//! Arbitrary bytes given to the codec and to the queue: called by the fuzzer, and by the test over its corpus (see
//! `corpus`). An error is a bug; refusing bytes is not.

use crate::follow::{new_queue, same, snapshot, Follower};
use crate::generate::Shape;
use crate::master::Call;
use crate::op::{AddOp, AfterOp, Id, NackOp, NewOp, Op, PopOp, Reply, Said, StepOp, TouchOp};
use crate::run::{Run, Sabotage};
use crate::shapes;
use dq::queue::add::Condition;
use dq::queue::after::OnDead;
use dq::queue::claim::NackKind;
use dq::queue::clock::{Mint, Now, When};
use dq::queue::codec::{decode, EFFECTS_VERSION};
use dq::queue::effects::Effects;
use dq::queue::job::{State, INSTANT_MAX};
use dq::queue::settings::{Rate, SettingsChange};
use dq::queue::Queue;

/// An operation takes about ten bytes of a history; what comes after so many operations is ignored.
const STEPS: u64 = 2000;

const SHAPES: [Shape; 18] = [
    shapes::FEW_IDS,
    shapes::TWO_IDS,
    shapes::LIMITS,
    shapes::PRIORITIES,
    shapes::STEPS_BACK,
    shapes::WILD_CLOCK,
    shapes::FIRST_INSTANTS,
    shapes::LAST_INSTANTS,
    shapes::GROUPS,
    shapes::RECURRING_GROUPS,
    shapes::STEPS,
    shapes::RECURRING_STEPS,
    shapes::DONE,
    shapes::FLOWS,
    shapes::FLOWS_OF_GROUPS,
    shapes::FLOWS_WILD,
    shapes::COSTS,
    shapes::COSTS_WILD,
];
/// The shapes that have groups.
pub const SHAPES_WITH_GROUPS: [u8; 2] = [8, 9];
/// The shapes in which jobs are done and kept, or are after others.
pub const SHAPES_WITH_ENDS: [u8; 4] = [12, 13, 14, 15];
/// The shapes with costs.
pub const SHAPES_WITH_COSTS: [u8; 2] = [16, 17];

/// A history: the first byte names the shape, the others choose operations and clock steps. Master, model, replica and
/// log must agree.
pub fn operations(bytes: &[u8], sabotage: Sabotage) -> Result<(), String> {
    let Some((first, rest)) = bytes.split_first() else {
        return Ok(());
    };
    let shape = SHAPES[*first as usize % SHAPES.len()];
    Run::of_bytes(rest, shape, sabotage).steps(STEPS)
}

/// A planted fault of a harness, to prove that it is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    Nothing,
    /// The snapshot lacks the last effect when it is read.
    Truncated,
    /// The follower ignores the first effect.
    FollowerDeaf,
}

/// A dump that is accepted must be valid, be the same when written and read again, and work as any queue.
pub fn dump(bytes: &[u8], broken: Broken) -> Result<(), String> {
    let mut taken = Follower::new(1);
    let mut file = Follower::new(3);
    file.queue.begin_restore();
    let end = |follower: &mut Follower| {
        let sound = follower.queue.end_restore();
        sound.map_err(|error| error.to_string())
    };
    let as_effects = taken.carry_out(bytes).and_then(|()| end(&mut taken));
    let carried_out = file.carry_out(bytes);
    let as_file = carried_out.clone().and_then(|()| end(&mut file));
    match (&as_effects, &carried_out, &as_file) {
        (Ok(()), _, Ok(())) => same("as a file", &taken.queue, &file.queue)?,
        // A fault of the whole shows only at the end of a file, or of its rows.
        (Err(_), _, Err(_)) | (Ok(()), Ok(()), Err(_)) => {}
        (Ok(()), Err(error), _) if error.contains("a turn of no group") => {}
        _ => return Err(format!("as effects {as_effects:?}, as a file {as_file:?}")),
    }
    if as_effects.is_err() || as_file.is_err() || is_refused_from_a_client(&taken.queue) {
        return Ok(());
    }
    taken.queue.check_invariants()?;
    let mut written = snapshot(&taken.queue);
    if broken == Broken::Truncated {
        cut_last(&mut written);
    }
    let read = Follower::of_snapshot(2, Mint::new(), &written)?;
    same("what was written and read", &taken.queue, &read.queue)?;
    same("a copy", &taken.queue, &taken.queue.copied())?;
    work(taken, read, broken)
}

/// Effects from a master, on queues with jobs; the first byte chooses the queue. Each effect is carried out or changes
/// nothing, and all followers in one state do the same.
pub fn effects(bytes: &[u8], broken: Broken) -> Result<(), String> {
    let Some((first, rest)) = bytes.split_first() else {
        return Ok(());
    };
    let mut here = furnished(*first);
    let mut there = Follower::of_snapshot(2, here.mint, &snapshot(&here.queue))?;
    for (number, effect) in decode(rest).map_while(Result::ok).enumerate() {
        if here.queue.apply(&effect).is_err() {
            // It must have changed nothing, so the other follower need not get it.
            break;
        }
        let taken = there.queue.apply(&effect);
        taken.map_err(|error| format!("{effect:?} is taken here, and there {error}"))?;
        there.queue.work_off(1);
        if number % 8 == 0 {
            here.queue.check_invariants()?;
        }
    }
    // What waits learns of a purge without the ends of its jobs, which no master writes, only as they are freed.
    for state in [&mut here, &mut there] {
        state.queue.work_off(usize::MAX);
    }
    // Effects after an unfinished snapshot must have the same result.
    let freed = [&mut here, &mut there].map(|it| it.queue.free_stuck());
    assert_eq!(freed[0], freed[1]);
    here.queue.check_invariants()?;
    here.queue.take_garbage();
    if is_refused_from_a_client(&here.queue) {
        return Ok(());
    }
    same("the follower", &here.queue, &there.queue)?;
    work(here, there, broken)
}

/// The server refuses such data from a client: numbers that two jobs share.
fn is_refused_from_a_client(queue: &Queue) -> bool {
    !queue.has_distinct_numbers()
}

fn cut_last(chunks: &mut [Vec<u8>]) {
    if let Some(last) = chunks.last_mut() {
        let end = (1..last.len())
            .rev()
            .find(|&end| decode(&last[..end]).all(|effect| effect.is_ok()));
        last.truncate(end.unwrap_or(last.len()));
    }
}

/// Every operation on a queue, at instants around those in its data; the follower receives only effects.
fn work(mut here: Follower, mut there: Follower, broken: Broken) -> Result<(), String> {
    let mut deaf = broken == Broken::FollowerDeaf;
    let mut out = Effects::default();
    for (round, now) in instants(&here.queue).into_iter().enumerate() {
        let some = ids(&here.queue, now);
        let mut ops = everything(&some);
        if round < 2 {
            ops.extend(ends(&some, &tokens(&here.queue, now)));
        }
        for op in ops {
            out.clear();
            let call = Call {
                queue: &mut here.queue,
                now,
                mint: &mut here.mint,
                out: &mut out,
            };
            let reply = call.execute(&op);
            let told = |what: String| format!("{what}\nafter {op:?} -> {reply:?} at {now:?}");
            here.queue.check_invariants().map_err(told)?;
            here.queue.take_garbage();
            if !out.is_empty() && !std::mem::take(&mut deaf) {
                there.carry_out(out.bytes()).map_err(told)?;
            }
            look(&here.queue, &reply, now);
        }
        same("the follower", &here.queue, &there.queue)?;
    }
    Ok(())
}

/// Not in order: the clock may step back.
fn instants(queue: &Queue) -> Vec<Now> {
    let now = Now::from_ms(1_700_000_000_000);
    let next = [
        queue.next_event(),
        queue.serving().next_delivery(now, true),
        queue.jobs().next_due(Now::from_ms(0)),
    ];
    let mut instants: Vec<Now> = next.into_iter().flatten().map(Now::from_ms).collect();
    instants.extend([now, Now::from_ms(INSTANT_MAX), Now::from_ms(0)]);
    instants
}

fn ids(queue: &Queue, now: Now) -> Vec<Id> {
    let (mut ids, mut cursor) = (vec![b"new".to_vec()], 0);
    while ids.len() < 4 {
        cursor = queue
            .at(now)
            .scan(cursor, |view| ids.push(view.id.to_vec()));
        if cursor == 0 {
            break;
        }
    }
    ids.truncate(4);
    ids
}

/// The tokens of the reserved jobs.
fn tokens(queue: &Queue, now: Now) -> Vec<(Id, Vec<u8>)> {
    let (mut tokens, mut cursor) = (Vec::new(), 0);
    loop {
        cursor = queue.at(now).scan(cursor, |view| {
            if view.state == State::Reserved {
                let token = view.life.token.to_string();
                tokens.push((view.id.to_vec(), token.into_bytes()));
            }
        });
        if cursor == 0 || tokens.len() > 3 {
            return tokens;
        }
    }
}

/// Operations that end jobs, keep them, put them after others, and add many at a time.
fn ends(ids: &[Id], reserved: &[(Id, Vec<u8>)]) -> Vec<Op> {
    let keeps = |most| {
        Op::Configure(SettingsChange {
            done_len: Some(most),
            done_bytes: Some(most * 20),
            done_ttl_ms: Some(most * 5),
            ..SettingsChange::default()
        })
    };
    let mut ops = vec![keeps(2)];
    let mut waits = OnDead::ALL.map(|on_dead| AddOp {
        condition: Condition::Replace,
        group: Some(b"g2".to_vec()),
        after: Some(AfterOp::Jobs(ids[1..].to_vec(), on_dead)),
        ..AddOp::like(on_dead_name(on_dead))
    });
    waits[0].when = Some(When::Delay(2));
    ops.extend(waits.map(Op::Add));
    ops.push(Op::Add(AddOp {
        after: Some(AfterOp::Group(b"g2".to_vec())),
        ttl: Some(2),
        ..AddOp::like(b"behind")
    }));
    for (number, (id, token)) in reserved.iter().enumerate() {
        ops.push(Op::Step(StepOp {
            id: id.clone(),
            token: token.clone(),
            pairs: vec![(b"b".to_vec(), b"step".to_vec())],
        }));
        ops.push(match number % 2 {
            0 => Op::Ack {
                id: id.clone(),
                token: Some(token.clone()),
                result: Some(b"result".to_vec()),
            },
            _ => Op::Nack(NackOp {
                id: id.clone(),
                token: Some(token.clone()),
                delay: None,
                priority: None,
                kind: NackKind::Silent,
                server_backoff: vec![3, 9],
                reason: None,
                awaits: None,
                after: Some(AfterOp::Jobs(ids[1..].to_vec(), OnDead::Run)),
            }),
        });
    }
    let several = |id: &Id| NewOp {
        id: Some(id.clone()),
        payload: b"many".to_vec(),
    };
    let together = AddOp {
        id: None,
        condition: Condition::Replace,
        said: Said::default().keeping(Some(9)),
        ..AddOp::like(b"")
    };
    ops.push(Op::AddMany(together, ids.iter().map(several).collect()));
    ops.push(Op::Del {
        id: on_dead_name(OnDead::Wait).to_vec(),
        unreserved: true,
    });
    ops.extend(ids.iter().cloned().map(Op::Kick));
    ops.extend([Op::Expire(2), Op::Purge(Some(State::Done)), keeps(0)]);
    ops
}

fn on_dead_name(on_dead: OnDead) -> &'static [u8] {
    match on_dead {
        OnDead::Wait => b"wait",
        OnDead::Run => b"run",
        OnDead::Die => b"die",
    }
}

fn everything(ids: &[Id]) -> Vec<Op> {
    let pop = |count| PopOp {
        count,
        ..PopOp::FIRST
    };
    let add = |id: Id| AddOp {
        id: Some(id),
        payload: b"again".to_vec(),
        when: Some(When::Delay(0)),
        server_ttr: 1000,
        ttl: Some(1),
        said: Said::costing(4).keeping(Some(3)),
        ..AddOp::like(b"")
    };
    let regroup = |is_fifo, most| {
        Op::Configure(SettingsChange {
            group_fifo: Some(is_fifo),
            group_max: Some(most),
            ..SettingsChange::default()
        })
    };
    let mut ops = vec![Op::Expire(3), Op::Pop(pop(2)), regroup(true, 1)];
    for id in ids.iter().cloned() {
        ops.push(Op::Touch(TouchOp {
            progress: Some(b"half".to_vec()),
            cost: Some(2),
            ..TouchOp::like(&id)
        }));
        ops.push(Op::Signal {
            id: id.clone(),
            name: b"a".to_vec(),
            value: b"signal".to_vec(),
        });
        ops.push(Op::Nack(NackOp {
            id: id.clone(),
            token: None,
            delay: None,
            priority: Some(-1),
            kind: NackKind::Fail,
            server_backoff: vec![3, 9],
            reason: None,
            awaits: None,
            after: None,
        }));
        ops.push(Op::Reschedule {
            id: id.clone(),
            when: Some(When::Delay(1)),
            priority: Some(2),
        });
        ops.push(Op::Kick(id.clone()));
        let next = AddOp {
            condition: Condition::Next,
            ..add(id.clone())
        };
        ops.push(Op::Add(next));
        let of_group = AddOp {
            condition: Condition::Replace,
            group: Some(b"g1".to_vec()),
            ..add(id.clone())
        };
        ops.push(Op::Add(of_group));
        ops.push(Op::Add(add(id)));
    }
    ops.extend([
        Op::KickOldest(2),
        Op::Pop(pop(1)),
        regroup(false, 0),
        Op::Pause(Some(5)),
        Op::Resume,
        Op::Purge(Some(State::Delayed)),
        Op::Pop(PopOp {
            noack: true,
            ..pop(3)
        }),
        Op::Expire(usize::MAX),
    ]);
    ops
}

/// No query may fail, whatever the queue holds.
fn look(queue: &Queue, reply: &Reply, now: Now) {
    if let Reply::Jobs(jobs) = reply {
        for job in jobs {
            let _ = queue.at(now).get(&job.id);
        }
    }
    let counted: usize = State::ALL
        .map(|state| queue.at(now).len(Some(state)))
        .iter()
        .sum();
    assert!(counted >= queue.at(now).len(None));
    assert!(queue.memory_bytes() > 0);
    queue.at(now).summary();
}

/// A queue with jobs, chosen by a byte: see `FURNITURE`.
fn furnished(which: u8) -> Follower {
    furnish_with(which, &mut Vec::new())
}

/// Makes the queue; also returns the effects that make it.
fn furnish_with(which: u8, effects: &mut Vec<u8>) -> Follower {
    let mut queue = Follower::new(u64::from(which));
    let mut out = Effects::default();
    let history = FURNITURE[which as usize % FURNITURE.len()];
    // Seven operations for each byte of the history, so that lists have more than one node.
    for (number, &byte) in history.iter().cycle().take(history.len() * 7).enumerate() {
        let now = Now::from_ms(1_700_000_000_000 + number as u64);
        let op = furnish_ends(byte, number, &queue.queue, now);
        let op = op.unwrap_or_else(|| furnish(byte, number));
        let call = Call {
            queue: &mut queue.queue,
            now,
            mint: &mut queue.mint,
            out: &mut out,
        };
        call.execute(&op);
        // All effects form one sequence, so only the first begins with a version.
        effects.extend(out.bytes().iter().skip(1));
        out.clear();
    }
    queue.queue.take_garbage();
    queue
}

/// What each letter does: a: ready, d: delayed, g: of a group, v: of a group and delayed, m: GROUPMAX, f: GROUPFIFO, n:
/// follows a job that is reserved, p: of a priority, t: with a TTL, r: reserved, k: acked, x: dead, l: limits, z:
/// purged, h: with KEEP, s: signalled, u: with progress, w: waits for another signal. E: done with a result, C: done
/// ones are kept, and attempts, c: of a group and with a cost, o: touched with a cost. B: after two others, G: after a group, Y:
/// given back to be after another, M: three at once, D: deleted.
const FURNITURE: [&[u8]; 20] = [
    b"",
    b"aaad",
    b"adptr",
    b"lartk",
    b"aaxxt",
    b"aaaaaaadddddddz",
    b"pppdptrrrxz",
    b"aarnnntrx",
    b"gggav",
    b"mgrgvrggkx",
    b"fgvggrnxr",
    b"gggggggvvvvvvz",
    b"asrusxhswrw",
    b"hsrnhrusrwxsz",
    b"ChhrEahrEh",
    b"aaBBrEaBrxDB",
    b"CgvBGrEgBGMrYhBrxD",
    b"hMrEsrYBMBnrE",
    b"lccrocaco",
    b"ClcrEcMrEorYBc",
];

/// The letters whose operation depends on the jobs that exist.
fn furnish_ends(byte: u8, number: usize, queue: &Queue, now: Now) -> Option<Op> {
    let some = |count: usize| {
        let all = ids(queue, now);
        let picked = all.into_iter().skip(1).skip(number % 2).take(count);
        AfterOp::Jobs(picked.collect(), OnDead::ALL[number % 3])
    };
    let add = |after| AddOp {
        group: number.is_multiple_of(4).then(|| b"g1".to_vec()),
        after: Some(after),
        ..AddOp::like(number.to_string().as_bytes())
    };
    let reserved = || tokens(queue, now).into_iter().next();
    Some(match byte {
        b'C' => Op::Configure(SettingsChange {
            history: Some(3),
            done_len: Some(6),
            done_ttl_ms: Some(90),
            ..SettingsChange::default()
        }),
        b'E' => {
            let (id, token) = reserved()?;
            Op::Ack {
                id,
                token: Some(token),
                result: Some(vec![byte; number % 30]),
            }
        }
        b'B' => Op::Add(add(some(2))),
        b'G' => Op::Add(AddOp {
            group: None,
            ..add(AfterOp::Group(b"g1".to_vec()))
        }),
        b'Y' => {
            let (id, token) = reserved()?;
            Op::Nack(NackOp {
                id,
                token: Some(token),
                delay: None,
                priority: None,
                kind: NackKind::Silent,
                server_backoff: vec![3, 9],
                reason: None,
                awaits: None,
                after: Some(some(1)),
            })
        }
        b'M' => {
            let job = |part: usize| NewOp {
                id: Some(format!("{number}.{part}").into_bytes()),
                payload: vec![byte; part],
            };
            let alike = AddOp {
                id: None,
                said: Said::costing(1 + number as u32 % 3).keeping(Some(50)),
                ..AddOp::like(b"")
            };
            Op::AddMany(alike, (0..3).map(job).collect())
        }
        b'D' => Op::Del {
            id: ids(queue, now).pop()?,
            unreserved: false,
        },
        _ => return None,
    })
}

fn furnish(byte: u8, number: usize) -> Op {
    match byte {
        b'r' => Op::Pop(PopOp {
            ttr: Some(50),
            ..PopOp::FIRST
        }),
        b'k' => Op::Pop(PopOp {
            noack: true,
            ..PopOp::FIRST
        }),
        b's' => Op::Signal {
            id: (number / 3).to_string().into_bytes(),
            name: vec![b'a' + (number % 3) as u8],
            value: vec![byte; number % 40],
        },
        b'u' => Op::Touch(TouchOp {
            progress: Some(vec![byte; number]),
            ..TouchOp::like((number / 2).to_string().as_bytes())
        }),
        b'o' => Op::Touch(TouchOp {
            cost: Some(1 + number as u32 % 9),
            ..TouchOp::like((number / 2).to_string().as_bytes())
        }),
        b'w' => Op::Nack(NackOp {
            id: (number / 2).to_string().into_bytes(),
            token: None,
            delay: number.is_multiple_of(2).then_some(70),
            priority: None,
            kind: NackKind::Silent,
            server_backoff: vec![3, 9],
            reason: None,
            awaits: Some(b"signed".to_vec()),
            after: None,
        }),
        b'x' => Op::Nack(NackOp {
            id: (number % 3).to_string().into_bytes(),
            token: None,
            delay: None,
            priority: None,
            kind: NackKind::Fatal,
            server_backoff: vec![3, 9],
            reason: number.is_multiple_of(2).then(|| b"why".to_vec()),
            awaits: None,
            after: None,
        }),
        b'l' => Op::Configure(SettingsChange {
            dedupe_ms: Some(1000),
            dead_len: Some(3),
            max_reserved: Some(5),
            rate: Some(Some(Rate {
                count: 9,
                window_ms: 5,
            })),
            ..SettingsChange::default()
        }),
        b'm' | b'f' => Op::Configure(SettingsChange {
            group_max: (byte == b'm').then_some(1),
            group_fifo: Some(byte == b'f'),
            ..SettingsChange::default()
        }),
        b'z' => Op::Purge(Some(State::Ready)),
        _ => Op::Add(AddOp {
            id: Some(
                if byte == b'n' {
                    format!("{}", number / 2)
                } else {
                    number.to_string()
                }
                .into_bytes(),
            ),
            payload: vec![byte; number % 5],
            condition: if byte == b'n' {
                Condition::Next
            } else {
                Condition::New
            },
            when: matches!(byte, b'd' | b'v').then_some(When::Delay(60_000)),
            priority: if byte == b'p' {
                number as i32 % 3 - 1
            } else {
                0
            },
            attempts: Some(2),
            ttl: (byte == b't' || byte == b'n' && number.is_multiple_of(3)).then_some(90_000),
            said: Said::costing(if byte == b'c' { number as u32 } else { 1 })
                .keeping((byte == b'h').then_some(number as u64)),
            group: matches!(byte, b'g' | b'v' | b'c').then(|| vec![b'g', b'0' + number as u8 % 3]),
            ..AddOp::like(b"")
        }),
    }
}

/// All queues on which [`effects`] is played, as dumps.
pub fn furnished_dumps() -> Vec<Vec<u8>> {
    let all = (0..FURNITURE.len() as u8).map(|which| snapshot(&furnished(which).queue).concat());
    all.chain([snapshot(&new_queue(1)).concat()]).collect()
}

/// The effects that make each of these queues, on an empty queue and on a furnished one.
pub fn furnishing_effects() -> Vec<Vec<u8>> {
    let all = (0..FURNITURE.len() as u8).flat_map(|which| {
        let mut effects = Vec::new();
        furnish_with(which, &mut effects);
        [0, which / 2 * 2].map(|on| [&[on, EFFECTS_VERSION], &effects[..]].concat())
    });
    all.collect()
}
