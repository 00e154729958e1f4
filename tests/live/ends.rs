//! A server dies in the middle of commands, and its successor takes over: itself, from its AOF, or the replica. What
//! was answered must exist, together with a prefix of what was sent after it; the model knows each possible state.

use crate::compare::{difference, expected, seen};
use crate::model::Model;
use crate::op::{Op, Reply};
use crate::run::{builder, clock, execute, forget_empty, set_clock, Run};
use crate::support::{wait_until, Raw, PATIENCE};
use crate::wire;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// SIGKILL; the server starts again from its AOF.
    Killed,
    /// SIGKILL; the replica is promoted, its clock as at its start or far ahead.
    Promoted,
}

/// Commands that are sent together, and answered in part.
const BURST: u64 = 5;

impl Run {
    /// Ends the life and begins the next.
    pub fn end_life(&mut self, end: End) -> Result<(), String> {
        self.begin_next(end)?;
        self.judge(&|_, _| ())
    }

    /// Sends a burst and kills the master in the middle of it. Until they are judged, the possible states are in
    /// `self.candidates`.
    pub fn begin_next(&mut self, end: End) -> Result<(), String> {
        if end == End::Promoted {
            self.replica.wait_for_offset_of(&self.master);
        }
        let burst: Vec<Op> = (0..BURST).map(|_| self.foreseeable()).collect();
        let bytes: Vec<u8> = burst
            .iter()
            .flat_map(|op| wire::words(op, false).bytes())
            .collect();
        self.client.send(&bytes);
        let answered = self.generator.rng.below(BURST + 1) as usize;
        let now_ms = self.now_ms();
        self.candidates = vec![self.model.clone()];
        for (number, op) in burst.iter().enumerate() {
            let mut model = self.candidates[self.candidates.len() - 1].clone();
            let wanted = execute(&mut model, op, &Reply::Nil, now_ms);
            if number < answered {
                let reply = wire::reply(op, false, self.client.read())?;
                let both_refuse = matches!((&reply, &wanted), (Reply::Error(_), Reply::Error(_)));
                if reply != wanted && !both_refuse {
                    return Err(format!("{op:?}\n  {reply:?}\nand not\n  {wanted:?}"));
                }
                if end == End::Killed {
                    self.candidates.clear();
                }
            }
            self.candidates.push(model);
        }
        self.master.kill();
        match end {
            End::Killed => self.master.restart(),
            End::Promoted => self.promote(),
        }
        self.client = self.master.raw();
        self.generator.now_us = clock(&mut self.client) * 1000;
        Ok(())
    }

    /// An operation whose effect does not depend on the reply.
    fn foreseeable(&mut self) -> Op {
        loop {
            let op = self.operation();
            let chosen = match &op {
                Op::Add(add) => add.id.is_none(),
                Op::Pop(pop) => !pop.noack,
                _ => false,
            };
            if !chosen {
                return op;
            }
        }
    }

    fn promote(&mut self) {
        let replica = &self.replica;
        wait_until("the link is down", PATIENCE, || {
            replica.info("replication", "master_link_status") == "down"
        });
        if self.generator.rng.one_in(2) {
            // Ahead by no, one or about a hundred occurrences.
            let ahead = self.now_ms() + *self.generator.rng.pick(&[0, 1500, 100_000]);
            set_clock(&mut replica.raw(), ahead);
        }
        replica.promote();
        std::mem::swap(&mut self.master, &mut self.replica);
        // Alternately with the system's time zones and the built-in ones.
        let builder = match self.generator.rng.one_in(2) {
            true => builder().zones("/nonexistent"),
            false => builder(),
        };
        self.replica = builder.start();
        self.replica.replica_of(&self.master);
    }

    /// The server must show one of the possible states. `tamper` may change it before.
    pub fn judge(&mut self, tamper: &dyn Fn(&mut Raw, &Model)) -> Result<(), String> {
        let now_ms = self.now_ms();
        let mut candidates = std::mem::take(&mut self.candidates);
        for model in &mut candidates {
            // All models are advanced: what has become due meanwhile is noticed now.
            model.advance(now_ms * 1000);
            model.moved_house();
            forget_empty(model);
        }
        tamper(&mut self.client, &candidates[0]);
        let seen = seen(&mut self.client)?;
        let mut differences = Vec::new();
        for model in candidates.into_iter().rev() {
            match difference(&seen, &expected(&model, now_ms)) {
                None => {
                    self.model = model;
                    return Ok(());
                }
                Some(difference) => differences.push(difference),
            }
        }
        let all = differences.join("\nor ");
        Err(format!("a new life at {now_ms}: {all}"))
    }
}
