//! Operations as a client sends them, and the parsing of replies.

use dq::queue::add::Condition;
use dq::queue::after::Outcome;
use dq::queue::claim::NackKind;
use dq::queue::clock::When;
use dq::queue::job::State;

use crate::model::LAST;
use crate::op::{
    AddOp, AfterOp, Delivered, NackOp, NewOp, Op, Pairs, PopOp, Reply, RuleOp, TouchOp, Value,
};
use crate::support;

type Wire = support::Reply;

/// The zone of all rules that name one: its minutes are those of UTC, which the model uses.
pub const ZONE: &str = "Asia/Kathmandu";

/// The words of a command.
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

    /// The only id; `counted`: behind IDS.
    fn id(self, id: &[u8], counted: bool) -> Words {
        let words = if counted {
            self.word("IDS").word("1")
        } else {
            self
        };
        words.word(id)
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

/// Whether no parser refuses the operation: refused ones have tests of their own.
pub fn is_plain(op: &Op) -> bool {
    let short = |ms: Option<u64>| ms.is_none_or(|ms| ms < 1 << 40);
    let instant = |when: Option<When>| match when {
        Some(When::Delay(ms)) => short(Some(ms)),
        Some(When::At(at)) => at <= LAST,
        None => true,
    };
    let step_named = |name: &Vec<u8>| (1..=256).contains(&name.len());
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
                && !(add.after.is_some() && add.condition == Condition::Next)
        }
        Op::AddMany(add, jobs) => jobs.iter().all(|job| {
            let alone = AddOp {
                id: job.id.clone(),
                ..add.clone()
            };
            is_plain(&Op::Add(alone))
        }),
        Op::Pop(pop) => short(pop.ttr.max(pop.lease)),
        Op::Nack(nack) => short(nack.delay) && nack.awaits.as_ref().is_none_or(step_named),
        Op::Touch(touch) => short(touch.ttr),
        Op::Step(step) => step.pairs.iter().all(|(name, _)| step_named(name)),
        Op::Signal { name, .. } => step_named(name),
        Op::Reschedule { when, .. } => instant(*when),
        Op::Expire(_) | Op::Pause(_) | Op::Resume => false,
        Op::Configure(_) | Op::Group(..) | Op::PauseGroup(..) | Op::ResumeGroup(_) => false,
        _ => true,
    }
}

/// `many`: uses the form for several jobs, if the command has one.
pub fn words(op: &Op, many: bool) -> Words {
    match op {
        Op::Add(add) => words_of_add(add),
        Op::AddMany(add, jobs) => words_of_many(add, jobs),
        Op::Pop(pop) => words_of_pop(pop),
        Op::Ack { id, token, result } => {
            let words = Words::of("DQ.ACK");
            let words = match (token, result) {
                (Some(_), Some(_)) => words.word("RESULTS"),
                (Some(_), None) => words.word("WITHTOKENS"),
                (None, _) => words,
            };
            let result = token.as_ref().and(result.as_ref());
            let more = token.iter().chain(result);
            more.fold(words.id(id, many), |words, it| words.word(it.clone()))
        }
        Op::Nack(nack) => words_of_nack(nack, many),
        Op::Touch(touch) => {
            let many = many && touch.progress.is_none() && touch.cost.is_none();
            let words = claim(Words::of("DQ.TOUCH"), &touch.id, &touch.token, many);
            let words = words.option("TTR", touch.ttr).option("COST", touch.cost);
            match &touch.progress {
                Some(text) => words.word("PROGRESS").word(text.clone()),
                None => words,
            }
        }
        Op::Step(step) => {
            let words = Words::of("DQ.STEP").word(step.id.clone());
            let words = words.word(step.token.clone());
            let pair = |words: Words, (name, value): &(Vec<u8>, Vec<u8>)| {
                words.word(name.clone()).word(value.clone())
            };
            step.pairs.iter().fold(words, pair)
        }
        Op::Signal { id, name, value } => Words::of("DQ.SIGNAL")
            .word(id.clone())
            .word(name.clone())
            .word(value.clone()),
        Op::Reschedule { id, when, priority } => Words::of("DQ.RESCHEDULE")
            .when(*when)
            .option("PRIORITY", *priority)
            .id(id, many),
        Op::Kick(id) => Words::of("DQ.KICK").id(id, true),
        Op::KickOldest(count) => Words::of("DQ.KICK").option("COUNT", Some(count)),
        Op::Del { id, unreserved } => {
            let words = Words::of("DQ.DEL");
            let words = if *unreserved {
                words.word("UNRESERVED")
            } else {
                words
            };
            words.id(id, many)
        }
        Op::Purge(state) => Words::of("DQ.PURGE").word(state.map_or("ALL", State::name)),
        Op::Expire(_)
        | Op::Pause(_)
        | Op::Resume
        | Op::Configure(_)
        | Op::Group(..)
        | Op::PauseGroup(..)
        | Op::ResumeGroup(_) => {
            unreachable!("{op:?} is not plain")
        }
    }
}

fn claim(words: Words, id: &[u8], token: &Option<Vec<u8>>, many: bool) -> Words {
    match token {
        Some(token) if many => words.id(id, true).word(token.clone()),
        Some(token) => words.word(id).word("TOKEN").word(token.clone()),
        None => words.word(id),
    }
}

fn words_of_add(add: &AddOp) -> Words {
    let words = Words::of("DQ.ADD").word(id_word(&add.id));
    words_of_options(words.word(add.payload.clone()), add)
}

fn words_of_many(add: &AddOp, jobs: &[NewOp]) -> Words {
    let words = Words::of("DQ.MADD").word(jobs.len().to_string());
    let words = jobs.iter().fold(words, |words, job| {
        words.word(id_word(&job.id)).word(job.payload.clone())
    });
    words_of_options(words, add)
}

fn id_word(id: &Option<Vec<u8>>) -> Vec<u8> {
    id.clone().unwrap_or_else(|| b"*".to_vec())
}

fn words_of_options(words: Words, add: &AddOp) -> Words {
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
    let words = add.said.values().fold(words, |words, (attr, value)| {
        let word = attr.row().word();
        match value {
            None => words,
            Some(Value::Number(number)) => words.option(word, Some(number)),
            Some(Value::Text(text)) => words.word(word).word(text),
        }
    });
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
    let words = add.after.iter().fold(words, words_of_after);
    add.rule.iter().fold(words, words_of_rule)
}

fn words_of_after(words: Words, after: &AfterOp) -> Words {
    match after {
        AfterOp::Group(name) => words.word("AFTER").word("GROUP").word(name.clone()),
        AfterOp::Jobs(ids, on_dead) => {
            let words = words.option("AFTER", Some(ids.len()));
            let words = ids.iter().fold(words, |words, id| words.word(id.clone()));
            words.word("ONDEAD").word(on_dead.name())
        }
    }
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
    let words = words.option("TTR", pop.ttr).option("LEASE", pop.lease);
    let flags = [
        (pop.noack, "NOACK"),
        (pop.with_terms, "WITHTERMS"),
        (pop.with_steps, "WITHSTEPS"),
    ];
    let given = flags.into_iter().filter(|(is_given, _)| *is_given);
    let words = given.fold(words, |words, (_, word)| words.word(word));
    words.word("WITHRESULTS")
}

fn words_of_nack(nack: &NackOp, many: bool) -> Words {
    let many = many && nack.awaits.is_none() && nack.after.is_none();
    let words = claim(Words::of("DQ.NACK"), &nack.id, &nack.token, many)
        .option("DELAY", nack.delay)
        .option("PRIORITY", nack.priority);
    let words = match nack.kind {
        NackKind::Fail => words.word("FAIL"),
        NackKind::Silent => words.word("SILENT"),
        NackKind::Fatal => words.word("FATAL"),
    };
    let words = match &nack.awaits {
        Some(name) => words.word("AWAIT").word(name.clone()),
        None => words,
    };
    let words = nack.after.iter().fold(words, words_of_after);
    match &nack.reason {
        Some(reason) => words.word("REASON").word(reason.clone()),
        None => words,
    }
}

/// The reply; of an error only the fact counts, not its words.
pub fn reply(op: &Op, many: bool, wire: Wire) -> Result<Reply, String> {
    let wire = match (op, wire) {
        (
            Op::Ack { token, .. }
            | Op::Nack(NackOp { token, .. })
            | Op::Touch(TouchOp { token, .. }),
            Wire::Array(mut all),
        ) if many && token.is_some() && all.len() == 1 => all.remove(0),
        (_, wire) => wire,
    };
    let unexpected = |wire: &Wire| Err(format!("{op:?} is answered {wire:?}"));
    Ok(match (op, wire) {
        (_, Wire::Error(_)) => Reply::Error(""),
        (Op::Pop(_), Wire::NullArray) => Reply::Jobs(Vec::new()),
        (Op::Pop(pop), Wire::Array(items)) if pop.count == 1 => {
            Reply::Jobs(vec![delivered(pop, &items)?])
        }
        (Op::Pop(pop), Wire::Array(items)) => {
            let jobs = items.iter().map(|item| match item {
                Wire::Array(item) => delivered(pop, item),
                other => Err(format!("{other:?} is no job")),
            });
            Reply::Jobs(jobs.collect::<Result<_, _>>()?)
        }
        (_, Wire::NullBulk) => Reply::Nil,
        (Op::Add(_), Wire::Bulk(id)) => Reply::Added(id),
        (Op::AddMany(..), Wire::Array(ids)) => {
            let id = |item| match item {
                Wire::Bulk(id) => Ok(Some(id)),
                Wire::NullBulk => Ok(None),
                other => Err(format!("{other:?} is no id")),
            };
            Reply::AddedMany(ids.into_iter().map(id).collect::<Result<_, _>>()?)
        }
        (Op::Nack(_), Wire::Bulk(state)) => {
            let states = [State::Delayed, State::Ready, State::Dead, State::Blocked];
            let state = states.into_iter().find(|it| it.name().as_bytes() == state);
            Reply::State(state.ok_or("no state")?)
        }
        (Op::Touch(_), Wire::Integer(deadline)) => Reply::Deadline(deadline as u64),
        (_, Wire::Integer(count)) => Reply::Count(count as u64),
        (_, wire) => return unexpected(&wire),
    })
}

fn delivered(pop: &PopOp, items: &[Wire]) -> Result<Delivered, String> {
    let [Wire::Bulk(id), Wire::Bulk(payload), token, Wire::Integer(attempts), deadline, appended @ ..] =
        items
    else {
        return Err(format!("{items:?} is no job"));
    };
    let [Wire::Array(results), rest @ ..] = appended else {
        return Err(format!("{items:?} has no results"));
    };
    let (steps, terms) = match rest.split_first() {
        Some((steps, terms)) if pop.with_steps => (Some(steps_of(steps)?), terms),
        _ => (None, rest),
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
        terms: terms_of(terms)?,
        steps,
        results: results.iter().map(result_of).collect::<Result<_, _>>()?,
    })
}

/// The steps that WITHSTEPS appends.
fn steps_of(appended: &Wire) -> Result<Pairs, String> {
    let no_steps = || format!("{appended:?} are no steps");
    let Wire::Array(flat) = appended else {
        return Err(no_steps());
    };
    let pair = |pair: &[Wire]| match pair {
        [Wire::Bulk(name), Wire::Bulk(value)] => Ok((name.clone(), value.clone())),
        _ => Err(no_steps()),
    };
    flat.chunks(2).map(pair).collect()
}

type Ended = (Vec<u8>, Option<Outcome>, Option<Vec<u8>>);

/// `[id, outcome, value]`
fn result_of(item: &Wire) -> Result<Ended, String> {
    let wrong = || format!("{item:?} is no result");
    let Wire::Array(parts) = item else {
        return Err(wrong());
    };
    let [Wire::Bulk(id), outcome, value] = &parts[..] else {
        return Err(wrong());
    };
    let text = |wire: &Wire| match wire {
        Wire::Bulk(text) => Ok(Some(text.clone())),
        Wire::NullBulk => Ok(None),
        _ => Err(wrong()),
    };
    let all = [
        Outcome::Done,
        Outcome::Dead,
        Outcome::Deleted,
        Outcome::Expired,
    ];
    let named = |name: Vec<u8>| all.into_iter().find(|it| it.name().as_bytes() == name);
    Ok((id.clone(), text(outcome)?.and_then(named), text(value)?))
}

/// The terms that WITHTERMS appends.
fn terms_of(appended: &[Wire]) -> Result<Option<(u64, u32, Option<u64>)>, String> {
    let [Wire::Array(terms)] = appended else {
        return match appended {
            [] => Ok(None),
            _ => Err(format!("{appended:?} are no terms")),
        };
    };
    match terms.as_slice() {
        [Wire::Integer(ttr), Wire::Integer(attempts), wait] => {
            let wait = match wait {
                Wire::Integer(ms) => Some(*ms as u64),
                _ => None,
            };
            Ok(Some((*ttr as u64, *attempts as u32, wait)))
        }
        _ => Err(format!("{terms:?} are no terms")),
    }
}
