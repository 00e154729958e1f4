//! Operations as a client sends them, and what it is answered.

use dq::queue::add::{Condition, When};
use dq::queue::deliver::NackKind;
use dq::queue::job::State;

use crate::model::LAST;
use crate::op::{AddOp, Delivered, NackOp, Op, PopOp, Reply, RuleOp};
use crate::support;

type Wire = support::Reply;

/// Of all rules that have one: its minutes are those of UTC, which the model has.
pub const ZONE: &str = "Asia/Kathmandu";

/// A command, word by word.
#[derive(Default)]
pub struct Words(pub Vec<Vec<u8>>);

impl Words {
    fn of(command: &str) -> Words {
        Words(vec![command.into(), b"q".to_vec()])
    }

    fn word(mut self, word: impl Into<Vec<u8>>) -> Words {
        self.0.push(word.into());
        self
    }

    fn option(self, name: &str, value: Option<impl ToString>) -> Words {
        match value {
            Some(value) => self.word(name).word(value.to_string()),
            None => self,
        }
    }

    fn when(self, when: Option<When>) -> Words {
        match when {
            Some(When::Delay(ms)) => self.word("DELAY").word(ms.to_string()),
            Some(When::At(at)) => self.word("AT").word(at.to_string()),
            None => self,
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let words: Vec<&[u8]> = self.0.iter().map(Vec::as_slice).collect();
        support::raw::encode(&words)
    }
}

/// Whether it is one that no parser refuses: what is refused there is another test's.
pub fn is_plain(op: &Op) -> bool {
    let short = |ms: Option<u64>| ms.is_none_or(|ms| ms < 1 << 40);
    let instant = |when: Option<When>| match when {
        Some(When::Delay(ms)) => short(Some(ms)),
        Some(When::At(at)) => at <= LAST,
        None => true,
    };
    match op {
        Op::Add(add) => {
            let named = |id: &Vec<u8>| (1..=1024).contains(&id.len()) && id != b"*";
            let steps = add.backoff.iter().flatten();
            let rule = add.rule.as_ref();
            let grouped = |name: &Vec<u8>| (1..=256).contains(&name.len());
            add.id.as_ref().is_none_or(named)
                && add.group.as_ref().is_none_or(grouped)
                && instant(add.when)
                && add.ttr != Some(0)
                && short(add.ttr.max(add.ttl))
                && steps.clone().all(|&ms| ms > 0 && short(Some(ms)))
                && steps.count() < 1000
                && !(rule.is_some() && add.condition == Condition::Next)
                && rule.is_none_or(|rule| short(Some(rule.grace)))
        }
        Op::Pop(pop) => short(pop.ttr),
        Op::Nack(nack) => short(nack.delay),
        Op::Touch { ttr, .. } => short(*ttr),
        Op::Reschedule { when, .. } => instant(*when),
        Op::Settle(_) | Op::Pause(_) | Op::Resume | Op::Configure(_) => false,
        _ => true,
    }
}

/// `many`: in the form for many at once, where it has one.
pub fn words(op: &Op, many: bool) -> Words {
    match op {
        Op::Add(add) => words_of_add(add),
        Op::Pop(pop) => words_of_pop(pop),
        Op::Ack { id, token } => match token {
            Some(token) => Words::of("DQ.ACK")
                .word("WITHTOKENS")
                .word(id.clone())
                .word(token.clone()),
            None => Words::of("DQ.ACK").word(id.clone()),
        },
        Op::Nack(nack) => words_of_nack(nack, many),
        Op::Touch { id, token, ttr } => {
            claim(Words::of("DQ.TOUCH"), id, token, many).option("TTR", *ttr)
        }
        Op::Reschedule { id, when, priority } => Words::of("DQ.RESCHEDULE")
            .when(*when)
            .option("PRIORITY", *priority)
            .word(id.clone()),
        Op::Kick(id) => Words::of("DQ.KICK").word("IDS").word("1").word(id.clone()),
        Op::KickOldest(count) => Words::of("DQ.KICK").option("COUNT", Some(count)),
        Op::Del { id, unreserved } => {
            let words = Words::of("DQ.DEL");
            let words = if *unreserved {
                words.word("UNRESERVED")
            } else {
                words
            };
            words.word(id.clone())
        }
        Op::Purge(state) => Words::of("DQ.PURGE").word(state.map_or("ALL", State::name)),
        Op::Settle(_) | Op::Pause(_) | Op::Resume | Op::Configure(_) => {
            unreachable!("{op:?} is not plain")
        }
    }
}

fn claim(words: Words, id: &[u8], token: &Option<Vec<u8>>, many: bool) -> Words {
    match token {
        Some(token) if many => words.word("IDS").word("1").word(id).word(token.clone()),
        Some(token) => words.word(id).word("TOKEN").word(token.clone()),
        None => words.word(id),
    }
}

fn words_of_add(add: &AddOp) -> Words {
    let id = add.id.clone().unwrap_or_else(|| b"*".to_vec());
    let words = Words::of("DQ.ADD").word(id).word(add.payload.clone());
    let words = match add.condition {
        Condition::New => words,
        Condition::Existing => words.word("XX"),
        Condition::Replace => words.word("REPLACE"),
        Condition::Next => words.word("NEXT"),
    };
    let words = words
        .when(add.when)
        .option("PRIORITY", Some(add.priority))
        .option("TTR", add.ttr)
        .option("ATTEMPTS", add.attempts)
        .option("TTL", add.ttl);
    let words = match &add.group {
        Some(name) => words.word("GROUP").word(name.clone()),
        None => words,
    };
    let words = match add.backoff.as_deref() {
        None => words,
        Some([]) => words.word("BACKOFF").word("0"),
        Some(steps) => {
            let words = words.option("BACKOFF", Some(steps.len()));
            steps
                .iter()
                .fold(words, |words, ms| words.word(ms.to_string()))
        }
    };
    add.rule.iter().fold(words, words_of_rule)
}

fn words_of_rule(words: Words, rule: &RuleOp) -> Words {
    let given = |value: u64| (value != 0).then_some(value);
    let words = match rule.text {
        Some(text) => words.word("CRON").word(text).word("TZ").word(ZONE),
        None => words.option("EVERY", Some(rule.ms)),
    };
    words
        .option("UNTIL", given(rule.until))
        .option("TIMES", given(rule.times))
        .option("GRACE", given(rule.grace))
        .option("JITTER", given(rule.jitter))
}

fn words_of_pop(pop: &PopOp) -> Words {
    let many = (pop.count != 1).then_some(pop.count.min(1_000_000));
    let words = Words::of("DQ.POP").option("COUNT", many);
    let words = match &pop.id {
        Some(id) => words.word("ID").word(id.clone()),
        None => words,
    };
    let words = words.option("TTR", pop.ttr);
    if pop.noack {
        words.word("NOACK")
    } else {
        words
    }
}

fn words_of_nack(nack: &NackOp, many: bool) -> Words {
    let words = claim(Words::of("DQ.NACK"), &nack.id, &nack.token, many)
        .option("DELAY", nack.delay)
        .option("PRIORITY", nack.priority);
    let words = match nack.kind {
        NackKind::Fail => words.word("FAIL"),
        NackKind::Silent => words.word("SILENT"),
        NackKind::Fatal => words.word("FATAL"),
    };
    match &nack.reason {
        Some(reason) => words.word("REASON").word(reason.clone()),
        None => words,
    }
}

/// What the answer says; an error is an error, whatever its words.
pub fn reply(op: &Op, many: bool, wire: Wire) -> Result<Reply, String> {
    let wire = match (op, wire) {
        (Op::Nack(NackOp { token, .. }) | Op::Touch { token, .. }, Wire::Array(mut all))
            if many && token.is_some() && all.len() == 1 =>
        {
            all.remove(0)
        }
        (_, wire) => wire,
    };
    let unexpected = |wire: &Wire| Err(format!("{op:?} is answered {wire:?}"));
    Ok(match (op, wire) {
        (_, Wire::Error(_)) => Reply::Error(""),
        (Op::Pop(_), Wire::NullArray) => Reply::Jobs(Vec::new()),
        (Op::Pop(pop), Wire::Array(items)) if pop.count == 1 => {
            Reply::Jobs(vec![delivered(&items)?])
        }
        (Op::Pop(_), Wire::Array(items)) => {
            let jobs = items.iter().map(|item| match item {
                Wire::Array(item) => delivered(item),
                other => Err(format!("{other:?} is no job")),
            });
            Reply::Jobs(jobs.collect::<Result<_, _>>()?)
        }
        (_, Wire::NullBulk) => Reply::Nil,
        (Op::Add(_), Wire::Bulk(id)) => Reply::Added(id),
        (Op::Nack(_), Wire::Bulk(state)) => {
            let states = [State::Delayed, State::Ready, State::Dead];
            let state = states.into_iter().find(|it| it.name().as_bytes() == state);
            Reply::State(state.ok_or("no state")?)
        }
        (Op::Touch { .. }, Wire::Integer(deadline)) => Reply::Deadline(deadline as u64),
        (_, Wire::Integer(count)) => Reply::Count(count as u64),
        (_, wire) => return unexpected(&wire),
    })
}

fn delivered(items: &[Wire]) -> Result<Delivered, String> {
    let [Wire::Bulk(id), Wire::Bulk(payload), token, Wire::Integer(attempts), deadline] = items
    else {
        return Err(format!("{items:?} is no job"));
    };
    let lease = match (token, deadline) {
        (Wire::Bulk(token), Wire::Integer(deadline)) => {
            let token = String::from_utf8_lossy(token).parse();
            Some((token.map_err(|_| "no token")?, *deadline as u64))
        }
        (Wire::NullBulk, Wire::NullBulk) => None,
        _ => return Err(format!("{items:?} has half a lease")),
    };
    Ok(Delivered {
        id: id.clone(),
        payload: payload.clone(),
        attempts: *attempts as u32,
        lease,
    })
}
