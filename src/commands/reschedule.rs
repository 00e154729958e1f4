//! DQ.RESCHEDULE key [DELAY ms | AT unix-ms] [PRIORITY n] id [id ...] | IDS n id [id ...]

use super::change;
use super::parse::{at_least, millis, priority, syntax_error, unexpected, Ids};
use crate::queue::clock::When;
use crate::queue::reschedule::Reschedule;
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::clock::now;
use std::collections::HashSet;

/// What was given of a job's new terms, and the index at which the ids begin.
#[derive(Default)]
struct Asked {
    when: Option<When>,
    priority: Option<i32>,
    first_id: usize,
}

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 5)?;
    let asked = read(args)?;
    // Computed from one reading of the clock, whether or not the queue exists.
    let new = Reschedule {
        due: asked.when.map(|when| when.instant(now())).transpose()?,
        priority: asked.priority,
    };
    let ids = Ids::read(args, asked.first_id, 1)?;
    let found = change(ctx, args, |queue, now, effects| {
        // An id that is named twice counts once.
        let (mut named, is_only) = (HashSet::new(), ids.indices().len() == 1);
        ids.iter()
            .filter(|&id| is_only || named.insert(id))
            .filter(|id| queue.reschedule(id, new, now, effects))
            .count()
    })?;
    ctx.reply_integer(found.unwrap_or(0) as i64);
    Ok(())
}

/// Reads the options. A word is an option if a value and an id follow it and it was not given before.
fn read(args: Args<'_>) -> Result<Asked, Refusal> {
    let mut asked = Asked {
        first_id: 2,
        ..Asked::default()
    };
    let (mut delay, mut at) = (None, None);
    while asked.first_id + 2 < args.len() {
        let word = args.get(asked.first_id).unwrap_or_default();
        let value = args.get(asked.first_id + 1).unwrap_or_default();
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        if is("DELAY") && delay.is_none() {
            delay = Some(When::Delay(millis(value)?));
        } else if is("AT") && at.is_none() {
            at = Some(When::At(millis(value)?));
        } else if is("PRIORITY") && asked.priority.is_none() {
            asked.priority = Some(priority(value)?);
        } else {
            break;
        }
        asked.first_id += 2;
    }
    if delay.is_some() && at.is_some() {
        return Err(syntax_error("DELAY and AT cannot be combined"));
    }
    asked.when = delay.or(at);
    if asked.when.is_none() && asked.priority.is_none() {
        let word = args.get(2).unwrap_or_default();
        return Err(unexpected(word, &["DELAY", "AT", "PRIORITY"]));
    }
    Ok(asked)
}
