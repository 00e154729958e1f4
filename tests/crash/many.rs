//! Many deliveries given back, or touched, by one command.

use redis::{cmd, Cmd, Value};

use crate::actor::{Actor, Asked, Gone, Held};
use crate::history::{Claim, Kind, Nack, Touch, What};
use crate::link::number;
use crate::support::Client;

impl Actor {
    /// Claims of jobs of one queue, with their tokens, each id once, as IDS requires.
    fn several_held(&mut self) -> Option<(String, Vec<Claim>)> {
        const MOST: usize = 6;
        if self.held.is_empty() {
            return None;
        }
        let queue = self.rng.pick(&self.held).queue.clone();
        let mut claims: Vec<Claim> = Vec::new();
        for held in self.held.iter().rev().filter(|held| held.queue == queue) {
            let is_new = claims.iter().all(|claim| claim.id != held.claim.id);
            if is_new && held.claim.token.is_some() && claims.len() < MOST {
                claims.push(held.claim.clone());
            }
        }
        (!claims.is_empty()).then_some((queue, claims))
    }

    /// Records an answer for each claim, as if it had been sent alone.
    fn record_each(
        &mut self,
        (queue, claims): (&str, Vec<Claim>),
        asked: &Asked,
        what: impl Fn(Claim, Option<&Value>) -> What,
    ) -> Result<(), Gone> {
        let answers: &[Value] = match &asked.reply {
            Some(Value::Array(answers)) => answers,
            Some(other) => panic!("IDS -> {other:?}"),
            None => &[],
        };
        let answered = asked.reply.is_some();
        assert!(!answered || answers.len() == claims.len(), "{answers:?}");
        for (at, claim) in claims.into_iter().enumerate() {
            self.record_in(None, queue, asked, what(claim, answers.get(at)));
        }
        answered.then_some(()).ok_or(Gone)
    }

    pub fn nack_many(&mut self, client: &mut Client) -> Result<(), Gone> {
        let Some((queue, claims)) = self.several_held() else {
            return Ok(());
        };
        // Sometimes it remembers them, to use tokens that are no longer valid.
        if !self.rng.one_in(8) {
            let given = |held: &Held| held.queue == queue && claims.contains(&held.claim);
            self.held.retain(|held| !given(held));
        }
        let delay_ms = self.rng.maybe(2, |rng| rng.below(150));
        let mut command = of_many("DQ.NACK", &queue, &claims);
        if let Some(ms) = delay_ms {
            command.arg("DELAY").arg(ms);
        }
        let kind = match self.rng.one_in(3) {
            true => Kind::Silent,
            false => Kind::Fail,
        };
        if kind == Kind::Silent {
            command.arg("SILENT");
        }
        let asked = self.ask(client, &command)?;
        self.record_each((&queue, claims), &asked, |claim, answer| {
            What::Nack(Nack {
                claim,
                delay_ms,
                kind,
                answer: answer.map(|reply| *reply != Value::Nil),
            })
        })
    }

    pub fn touch_many(&mut self, client: &mut Client) -> Result<(), Gone> {
        let Some((queue, claims)) = self.several_held() else {
            return Ok(());
        };
        let mut command = of_many("DQ.TOUCH", &queue, &claims);
        let ttr_ms = self.rng.maybe(2, |rng| 10 + rng.below(200));
        if let Some(ms) = ttr_ms {
            command.arg("TTR").arg(ms);
        }
        let asked = self.ask(client, &command)?;
        let deadline = |reply: &Value| (*reply != Value::Nil).then(|| number(reply));
        self.record_each((&queue, claims), &asked, |claim, answer| {
            What::Touch(Touch {
                ttr_ms,
                ..Touch::of(claim, answer.map(deadline))
            })
        })
    }
}

fn of_many(command: &str, queue: &str, claims: &[Claim]) -> Cmd {
    let mut command = cmd(command);
    command.arg(queue).arg("IDS").arg(claims.len());
    for claim in claims {
        command.arg(&claim.id).arg(claim.token);
    }
    command
}
