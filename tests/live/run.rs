//! One run: a master, its replica, a model; all from one seed.

use crate::compare::{difference, expected, seen};
use crate::generate::{Generator, Shape};
use crate::model::{Fault, Model};
use crate::op::{AddOp, Op, PopOp, Reply};
use crate::rng::Rng;
use crate::shapes::{FLOWS_OF_GROUPS, RECURRING_GROUPS};
use crate::support::{Builder, Raw, Reply as Wire, Server};
use crate::wire;
use dq::queue::settings::SettingsChange;

/// The server's delays.
const BACKOFF: [u64; 3] = [30, 200, 900];

pub fn builder() -> Builder {
    let arguments = format!("default-backoff {BACKOFF:?} test-clock yes").replace(['[', ']'], "");
    Server::builder().aof().module_arguments(&arguments)
}

pub struct Run {
    pub master: Server,
    pub replica: Server,
    pub client: Raw,
    pub model: Model,
    pub generator: Generator,
    /// The possible states after the end of a life.
    pub candidates: Vec<Model>,
    /// The number of operations so far, which reports of faults contain.
    steps: u64,
}

impl Run {
    pub fn start(seed: u64, fault: Fault) -> Run {
        let (master, replica) = (builder().start(), builder().start());
        replica.replica_of(&master);
        let mut client = master.raw();
        let shape = Shape {
            settings_every: 0,
            span_ms: 1500,
            start_ms: clock(&mut client),
            steps_every: 6,
            costs_every: 4,
            ..if seed.is_multiple_of(2) {
                FLOWS_OF_GROUPS
            } else {
                RECURRING_GROUPS
            }
        };
        let mut model = Model::new(fault);
        set_limits(seed, &mut client, &mut model, shape.start_ms);
        Run {
            client,
            master,
            replica,
            model,
            generator: Generator::new(Rng::new(seed ^ 0x11fe), shape),
            candidates: Vec::new(),
            steps: 0,
        }
    }

    pub fn now_ms(&self) -> u64 {
        self.generator.now_us / 1000
    }

    pub fn steps(&mut self, count: u64) -> Result<(), String> {
        for _ in 0..count {
            self.steps += 1;
            let step = self.steps;
            self.step()
                .map_err(|fault| format!("step {step} at {}: {fault}", self.now_ms()))?;
        }
        self.compare()
    }

    fn step(&mut self) -> Result<(), String> {
        self.turn_clock();
        let op = self.operation();
        let many = self.generator.rng.one_in(2);
        self.client.send(&wire::words(&op, many).bytes());
        let reply = wire::reply(&op, many, self.client.read())?;
        self.generator.recent.note(&op, &reply);
        let now_ms = self.now_ms();
        let wanted = execute(&mut self.model, &op, &reply, now_ms);
        let both_refuse = matches!((&reply, &wanted), (Reply::Error(_), Reply::Error(_)));
        if reply != wanted && !both_refuse {
            return Err(format!("{op:?}\n  {reply:?}\nand not\n  {wanted:?}"));
        }
        if self.steps.is_multiple_of(8) {
            self.compare().map_err(|fault| format!("{op:?}\n{fault}"))?;
        }
        Ok(())
    }

    /// An operation that a client can send.
    pub fn operation(&mut self) -> Op {
        loop {
            let mut op = self.generator.operation();
            if let Op::Add(AddOp { server_ttr, .. })
            | Op::AddMany(AddOp { server_ttr, .. }, _)
            | Op::Pop(PopOp { server_ttr, .. }) = &mut op
            {
                *server_ttr = 60_000;
            }
            if let Op::Nack(nack) = &mut op {
                nack.server_backoff = BACKOFF.into();
            }
            if wire::is_plain(&op) {
                return op;
            }
        }
    }

    fn turn_clock(&mut self) {
        let before = self.now_ms();
        self.generator.step_clock();
        let now_ms = self.generator.now_us.div_ceil(1000);
        self.generator.now_us = now_ms * 1000;
        if now_ms == before {
            return;
        }
        set_clock(&mut self.client, now_ms);
        // The clock stops at each instant at which something happens.
        while let Some(at) = self.model.next_event().filter(|&at| at <= now_ms) {
            self.model.advance(at * 1000);
        }
        self.model.advance(now_ms * 1000);
        forget_empty(&mut self.model);
    }

    pub fn compare(&mut self) -> Result<(), String> {
        let now_ms = self.now_ms();
        let seen = seen(&mut self.client)?;
        difference(&seen, &expected(&self.model, now_ms)).map_or(Ok(()), Err)
    }

    /// The replica, a reload, and a rewritten and replayed AOF have the same data.
    pub fn all_copies(&mut self) -> Result<(), String> {
        self.replica.assert_same_data_as(&self.master);
        let digest = self.master.digest();
        self.client.call(&[b"DEBUG", b"RELOAD"]);
        let reloaded = self.master.digest();
        self.client.call(&[b"DEBUG", b"LOADAOF"]);
        let replayed = self.master.digest();
        if [&reloaded, &replayed] != [&digest, &digest] {
            return Err(format!(
                "{digest}, {reloaded} reloaded, {replayed} replayed"
            ));
        }
        self.compare()
    }
}

/// All runs keep a few done jobs. Of three runs one has GROUPMAX and one GROUPFIFO. GROUPRATE is left out, as its
/// window does not outlive a server.
fn set_limits(seed: u64, client: &mut Raw, model: &mut Model, now_ms: u64) {
    let change = SettingsChange {
        group_max: (seed % 3 == 1).then_some(1),
        group_fifo: (seed % 3 == 2).then_some(true),
        done_len: Some(6),
        done_ttl_ms: Some(700),
        done_bytes: Some(90),
        history: Some(2),
        ..SettingsChange::default()
    };
    let group: &[&[u8]] = match seed % 3 {
        0 => &[],
        1 => &[b"GROUPMAX", b"1"],
        _ => &[b"GROUPFIFO", b"1"],
    };
    let done: &[&[u8]] = &[b"DONELEN", b"6", b"DONETTL", b"700", b"DONEBYTES", b"90"];
    let history: &[&[u8]] = &[b"HISTORY", b"2"];
    let words = [&[&b"DQ.CFGSET"[..], b"q"], done, history, group].concat();
    let answer = client.call(&words);
    assert_eq!(answer, Wire::Simple("OK".into()));
    execute(model, &Op::Configure(change), &Reply::Nil, now_ms);
}

pub fn clock(client: &mut Raw) -> u64 {
    match client.call(&[b"DQ.CLOCK", b"ADVANCE", b"0"]) {
        Wire::Integer(ms) => ms as u64,
        other => panic!("DQ.CLOCK says {other:?}"),
    }
}

pub fn set_clock(client: &mut Raw, ms: u64) {
    let text = ms.to_string();
    let set: [&[u8]; 3] = [b"DQ.CLOCK", b"SET", text.as_bytes()];
    assert_eq!(client.call(&set), Wire::Integer(ms as i64));
}

pub fn execute(model: &mut Model, op: &Op, reply: &Reply, now_ms: u64) -> Reply {
    let wanted = model.execute(op, now_ms * 1000, reply);
    model.advance(now_ms * 1000);
    forget_empty(model);
    wanted
}

pub fn forget_empty(model: &mut Model) {
    if model.is_disposable() {
        model.drop_key();
    }
}
