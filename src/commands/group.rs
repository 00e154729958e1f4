//! DQ.GROUPSET key name [WEIGHT n] [MAX n] [RATE n ms] [MAXLEN n] | CLEAR, DQ.GROUPGET key name

use super::configure::{need_room, of_rate, open_with_room, rate};
use super::fields::{reply_integers, Fields};
use super::parse::{at_least, exactly, natural, out_of_range, syntax_error, Options};
use super::syntax::options;
use super::{change, change_or_create, query};
use crate::queue::clock::Now;
use crate::queue::configure::{paused_shown, GroupChange};
use crate::queue::job::check_group_name;
use crate::queue::overdue::GroupSeen;
use crate::queue::settings::{GroupSettings, WEIGHT_MAX};
use crate::server::api::{Args, Ctx, Refusal};

options! { GROUPSET: WEIGHT MAX RATE MAXLEN CLEAR }

pub fn set(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 4)?;
    let name = args.get(2).unwrap_or_default();
    let (mut new, mut clears) = (GroupSettings::default(), false);
    let mut options = Options::new(args, 3);
    while let Some(word) = options.word()? {
        match word {
            Word::WEIGHT => new.weight = Some(weight(options.value()?)?),
            Word::MAX => new.max_reserved = Some(natural(options.value()?)?),
            Word::RATE => new.rate = Some(rate(&mut options)?),
            Word::MAXLEN => new.max_len = Some(natural(options.value()?)?),
            Word::CLEAR => clears = true,
        }
    }
    if !clears {
        let open = open_with_room(ctx, args)?;
        change_or_create(ctx, open, |queue, now, effects| {
            if !queue.parts().group_settings(queue.jobs(), name).any() {
                need_room(ctx)?;
            }
            Ok::<(), Refusal>(queue.change_group(name, GroupChange::Set(new), now, effects)?)
        })??;
    } else if new.any() {
        return Err(syntax_error("CLEAR cannot be combined with other options"));
    } else {
        check_group_name(name)?;
        change(ctx, args, |queue, now, effects| {
            queue.change_group(name, GroupChange::Clear, now, effects)
        })?
        .transpose()?;
    }
    ctx.reply_simple(c"OK");
    Ok(())
}

fn weight(number: &[u8]) -> Result<u32, Refusal> {
    match natural(number)? {
        weight if (1..=WEIGHT_MAX.into()).contains(&weight) => Ok(weight as u32),
        _ => Err(out_of_range()),
    }
}

pub fn get(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    exactly(args, 3)?;
    let name = args.get(2).unwrap_or_default();
    query(ctx, args, |queue, at| {
        match queue.and_then(|queue| queue.at(at).group_seen(name)) {
            Some(group) => reply(ctx, &group, at.now),
            None => ctx.reply_null(),
        }
    })
}

fn reply(ctx: Ctx<'_>, group: &GroupSeen, now: Now) {
    let own = &group.own;
    Fields::reply(ctx, |fields| {
        fields.integer_or_null("weight", own.weight.map(u64::from));
        fields.integer_or_null("max", own.max_reserved);
        fields.with("rate", |ctx| match own.rate {
            Some(rate) => reply_integers(ctx, of_rate(rate).into_iter()),
            None => ctx.reply_null(),
        });
        fields.integer_or_null("maxlen", own.max_len);
        fields.integer("paused", paused_shown(own.paused_until, now));
        fields.integer("waiting", group.waiting as i64);
        fields.integer("reserved", group.reserved as i64);
        fields.integer("rate-used", group.rate_used as i64);
    });
}
