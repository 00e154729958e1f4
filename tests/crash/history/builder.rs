//! Hand-written histories, for the canaries.

use super::check::{check, Rule};
use super::{
    payload, Ack, Add, Claim, Corpse, Delivery, Due, End, Entry, History, Kept, Kind, Lease, Life,
    Nack, Pop, Purge, Reschedule, Stamp, Taken, Touch, What, Which,
};

/// The wall clock when the run begins.
pub const START_MS: u64 = 1_800_000_000_000;

/// Writes a history: every entry takes a millisecond, and the clock is advanced by hand.
pub struct HistoryBuilder {
    pub history: History,
    pub now_ms: u64,
}

impl HistoryBuilder {
    pub fn new() -> HistoryBuilder {
        HistoryBuilder {
            history: History::default(),
            now_ms: 0,
        }
    }

    fn stamp(&self) -> Stamp {
        Stamp {
            at_us: 1000 * self.now_ms,
            wall_us: 1000 * (START_MS + self.now_ms),
        }
    }

    pub fn write(&mut self, what: What) -> &mut Entry {
        let sent = self.stamp();
        self.now_ms += 1;
        let ended = self.stamp();
        self.now_ms += 1;
        self.history.entries.push(Entry {
            client: 0,
            life: self.history.lives.len(),
            sent,
            ended,
            unit: None,
            confirmed: false,
            queue: "q".to_owned(),
            what,
        });
        self.history.entries.last_mut().expect("just written")
    }

    pub fn later(&mut self, ms: u64) {
        self.now_ms += ms;
    }

    pub fn crash(&mut self, kept: Kept) {
        let end = End::Crash;
        self.history.lives.push(Life { kept, end });
    }

    /// A job due after `delay_ms`.
    pub fn add(&mut self, serial: u64, delay_ms: u64) -> &mut Add {
        let due = Due::At(START_MS + self.now_ms + delay_ms);
        let add = Add {
            answer: Some(Taken::Added),
            ..Add::of(serial, format!("j{serial}"), due)
        };
        match &mut self.write(What::Add(add)).what {
            What::Add(add) => add,
            _ => unreachable!("just written"),
        }
    }

    /// Delivers jobs in one answer, with leases of 100 ms; returns the first one's token.
    pub fn pop(&mut self, jobs: &[(u64, u32)]) -> u64 {
        let now_ms = START_MS + self.now_ms;
        let jobs: Vec<Delivery> = jobs
            .iter()
            .zip(0..)
            .map(|(&(serial, attempts), at)| Delivery {
                queue: "q".to_owned(),
                id: format!("j{serial}"),
                payload: payload(serial),
                lease: Some(Lease {
                    token: (now_ms << 20) + at,
                    deadline: now_ms + 100,
                }),
                attempts,
            })
            .collect();
        let token = jobs[0].lease.map_or(0, |lease| lease.token);
        self.answer_pop(Some(jobs));
        token
    }

    pub fn answer_pop(&mut self, answer: Option<Vec<Delivery>>) -> &mut Pop {
        let pop = Pop {
            queues: vec!["q".to_owned()],
            count: 10,
            noack: false,
            by_id: false,
            answer,
        };
        match &mut self.write(What::Pop(pop)).what {
            What::Pop(pop) => pop,
            _ => unreachable!("just written"),
        }
    }

    pub fn take(&mut self, serial: u64) {
        let now_ms = self.now_ms;
        self.pop(&[(serial, 1)]);
        let What::Pop(pop) = &mut self.history.entries.last_mut().expect("a POP").what else {
            unreachable!("just written");
        };
        pop.noack = true;
        pop.answer.as_mut().expect("an answer")[0].lease = None;
        assert_eq!(self.now_ms, now_ms + 2);
    }

    pub fn ack(&mut self, serial: u64, token: u64, answer: Option<u64>) {
        let claims = vec![claim(serial, token)];
        self.write(What::Ack(Ack { claims, answer }));
    }

    pub fn nack(&mut self, serial: u64, token: u64, kind: Kind, delay_ms: u64) {
        self.write(What::Nack(Nack {
            claim: claim(serial, token),
            delay_ms: Some(delay_ms),
            kind,
            answer: Some(true),
        }));
    }

    pub fn touch(&mut self, serial: u64, token: u64, ttr_ms: u64) -> &mut Touch {
        let deadline = START_MS + self.now_ms + ttr_ms;
        let touch = Touch {
            ttr_ms: Some(ttr_ms),
            ..Touch::of(claim(serial, token), Some(Some(deadline)))
        };
        match &mut self.write(What::Touch(touch)).what {
            What::Touch(touch) => touch,
            _ => unreachable!("just written"),
        }
    }

    pub fn reschedule(&mut self, serial: u64, delay_ms: u64) {
        self.write(What::Reschedule(Reschedule {
            due: Due::In(delay_ms),
            ids: vec![format!("j{serial}")],
            answer: Some(1),
        }));
    }

    pub fn purge(&mut self, which: Which, answer: Option<u64>) {
        self.write(What::Purge(Purge { which, answer }));
    }

    pub fn dead(&mut self, serial: u64, attempts: u32) {
        let payload = payload(serial);
        self.write(What::Dead(vec![Corpse { payload, attempts }]));
    }

    /// The rules that found faults, each once.
    pub fn found(&self) -> Vec<Rule> {
        let verdict = check(&self.history);
        let mut rules: Vec<Rule> = verdict.faults.iter().map(|fault| fault.rule).collect();
        rules.sort();
        rules.dedup();
        rules
    }
}

pub fn claim(serial: u64, token: u64) -> Claim {
    Claim {
        id: format!("j{serial}"),
        token: Some(token),
    }
}
