//! Clients wait in DQ.AWAIT, on the master and on its replica, for jobs of random operations. The model says which jobs
//! have ended, and how. No end may be missed, and none reported that did not happen.

use std::time::Duration;

use crate::model::{Ended, Fault, Model, Outcome, Phase};
use crate::op::Id;
use crate::run::Run;
use crate::support::{raw, wait_until, Raw, Reply, Server, PATIENCE};

const WAITING: usize = 8;
const IDS: u64 = 12;
/// A report without a cause would have arrived by then.
const MOMENT: Duration = Duration::from_millis(2);

/// A planted fault of the judge, to prove that it is noticed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// It ignores one end in ten.
    EndUnknown,
    /// It expects the end of a live job.
    EndExpected,
    /// It expects another outcome.
    OtherOutcome,
}

struct Waiting {
    client: Raw,
    ids: Vec<Id>,
    on_replica: bool,
}

fn text(reply: &Reply) -> String {
    match reply {
        Reply::Bulk(bytes) => bytes.escape_ascii().to_string(),
        Reply::Integer(number) => number.to_string(),
        Reply::NullBulk => "nil".to_owned(),
        other => format!("{other:?}"),
    }
}

/// The reply, one line for each end.
fn lines(reply: &Reply) -> Result<Vec<Vec<String>>, String> {
    let Reply::Array(told) = reply else {
        return Err(format!("no ends: {reply:?}"));
    };
    let line = |told: &Reply| match told {
        Reply::Array(words) => words.iter().map(text).collect(),
        other => vec![text(other)],
    };
    Ok(told.iter().map(line).collect())
}

/// The line that is expected. A replica reports other instants, by its own clock.
fn expected(ended: &Ended, on_replica: bool) -> Vec<String> {
    let outcome = match ended.outcome {
        Outcome::Done => "done",
        Outcome::Dead => "dead",
        Outcome::Deleted => "deleted",
        Outcome::Expired => "expired",
    };
    let value = ended.value.as_ref();
    let value = value.map_or("nil".to_owned(), |value| value.escape_ascii().to_string());
    let line = [
        ended.id.escape_ascii().to_string(),
        outcome.into(),
        value,
        ended.at.to_string(),
        ended.attempts.to_string(),
    ];
    known_everywhere(&line, on_replica)
}

/// A replica does not know the instant of some ends, and the reason if the job has a successor: these are not compared.
fn known_everywhere(line: &[String], on_replica: bool) -> Vec<String> {
    match line {
        [id, outcome, _, _, attempts] if on_replica => {
            vec![id.clone(), outcome.clone(), attempts.clone()]
        }
        line => line.to_vec(),
    }
}

/// Whether the job is dead or missing: then DQ.AWAIT answers at once.
fn is_over(model: &Model, id: &Id) -> bool {
    let job = model.find(id).map(|at| &model.jobs[at]);
    job.is_none_or(|job| matches!(job.phase, Phase::Dead { .. }))
}

struct Judge {
    run: Run,
    waiting: Vec<Waiting>,
    wrong: Wrong,
    told: usize,
}

impl Judge {
    fn start(seed: u64, wrong: Wrong) -> Judge {
        Judge {
            run: Run::start(seed, Fault::None),
            waiting: Vec::new(),
            wrong,
            told: 0,
        }
    }

    fn steps(&mut self, count: u64) -> Result<(), String> {
        for step in 0..count {
            if step.is_multiple_of(5) {
                self.begin_some()?;
            }
            self.run.steps(1)?;
            self.hear()
                .map_err(|fault| format!("step {step}: {fault}"))?;
        }
        for waiting in &mut self.waiting {
            if let Some(reply) = waiting.client.try_read(MOMENT) {
                return Err(format!("told for no reason: {reply:?}"));
            }
        }
        Ok(())
    }

    fn server(&self, on_replica: bool) -> &Server {
        if on_replica {
            &self.run.replica
        } else {
            &self.run.master
        }
    }

    /// Adds clients until enough wait, each for a few jobs.
    fn begin_some(&mut self) -> Result<(), String> {
        self.run.replica.wait_for_offset_of(&self.run.master);
        while self.waiting.len() < WAITING {
            let rng = &mut self.run.generator.rng;
            let on_replica = rng.one_in(2);
            let count = rng.within(1, 3);
            let known: Vec<Id> = self.run.model.jobs.iter().map(|it| it.id.clone()).collect();
            let mut ids: Vec<Id> = (0..count)
                .map(|_| match known.is_empty() || rng.one_in(20) {
                    true => rng.below(IDS).to_string().into_bytes(),
                    false => rng.pick(&known).clone(),
                })
                .collect();
            ids.sort();
            ids.dedup();
            let over = ids.iter().any(|id| is_over(&self.run.model, id));
            let mut client = self.server(on_replica).raw();
            let mut words: Vec<&[u8]> = vec![b"DQ.AWAIT", b"q", b"0"];
            words.extend(ids.iter().map(Vec::as_slice));
            client.send(&raw::encode(&words));
            if over {
                let told = lines(&client.read())?;
                let wanted = ids.iter().filter(|id| is_over(&self.run.model, id)).count();
                if told.len() != wanted {
                    return Err(format!("{ids:?}: {told:?} at once"));
                }
                return Ok(());
            }
            self.waiting.push(Waiting {
                client,
                ids,
                on_replica,
            });
            let of_both = |on: bool| self.waiting.iter().filter(|it| it.on_replica == on).count();
            let count = of_both(on_replica).to_string();
            wait_until("the client waits", PATIENCE, || {
                self.server(on_replica).info("clients", "blocked_clients") == count
            });
        }
        Ok(())
    }

    /// A waiting client is told the first end of each of its jobs, and certainly of the job that ended first.
    fn hear(&mut self) -> Result<(), String> {
        let mut ends = std::mem::take(&mut self.run.model.ends);
        self.spoil(&mut ends);
        let mut still = Vec::new();
        for mut waiting in std::mem::take(&mut self.waiting) {
            let mine = ends.iter().filter(|end| waiting.ids.contains(&end.id));
            let mut first: Vec<&Ended> = Vec::new();
            for end in mine {
                if !first.iter().any(|before| before.id == end.id) {
                    first.push(end);
                }
            }
            let patience = match first.is_empty() {
                true => Duration::ZERO,
                false if self.wrong == Wrong::Nothing => PATIENCE,
                false => MOMENT * 500,
            };
            let Some(reply) = waiting.client.try_read(patience) else {
                if let Some(missed) = first.first() {
                    return Err(format!("not told: {missed:?}"));
                }
                still.push(waiting);
                continue;
            };
            self.told += 1;
            let on_replica = waiting.on_replica;
            let told = lines(&reply)?;
            let told: Vec<_> = told
                .iter()
                .map(|line| known_everywhere(line, on_replica))
                .collect();
            let wanted: Vec<_> = first.iter().map(|end| expected(end, on_replica)).collect();
            let is_right = told.iter().all(|line| wanted.contains(line))
                && wanted.first().is_some_and(|line| told.contains(line));
            if !is_right {
                return Err(format!("{:?}: {told:?} and not {wanted:?}", waiting.ids));
            }
        }
        self.waiting = still;
        Ok(())
    }

    fn spoil(&mut self, ends: &mut Vec<Ended>) {
        let rng = &mut self.run.generator.rng;
        match self.wrong {
            Wrong::Nothing => {}
            Wrong::EndUnknown => ends.retain(|_| !rng.one_in(10)),
            Wrong::EndExpected => {
                if let Some(waiting) = self.waiting.first() {
                    let id = waiting.ids[0].clone();
                    ends.push(Ended {
                        id,
                        outcome: Outcome::Done,
                        value: None,
                        at: 0,
                        attempts: 0,
                    });
                }
            }
            Wrong::OtherOutcome => {
                for end in ends
                    .iter_mut()
                    .filter(|end| end.outcome == Outcome::Deleted)
                {
                    end.outcome = Outcome::Expired;
                }
            }
        }
    }
}

#[test]
fn nobody_misses_an_end() {
    for seed in crate::seeds(3) {
        let mut judge = Judge::start(seed, Wrong::Nothing);
        if let Err(fault) = judge.steps(1200) {
            panic!("DQ_SEED={seed} {fault}");
        }
        assert!(judge.told > 50, "{} ends were told", judge.told);
    }
}

#[test]
fn a_wrong_judge_is_noticed() {
    for wrong in [Wrong::EndUnknown, Wrong::EndExpected, Wrong::OtherOutcome] {
        let noticed = (1..=6).any(|seed| Judge::start(seed, wrong).steps(600).is_err());
        assert!(noticed);
    }
}
