//! DQ.GROUPS key cursor [MATCH pattern] [COUNT n] [SET]

use super::parse::{at_least, positive, Options};
use super::query;
use super::scan::{cursor, COUNT_DEFAULT};
use super::syntax::options;
use crate::queue::glob::matches;
use crate::server::api::{Args, Ctx, Refusal};

options! { GROUPS: MATCH COUNT SET }

/// For each group asked for, a call visits at most so many: groups with dead jobs only are passed over.
const PASSED_OVER: u64 = 10;

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 3)?;
    let mut cursor = cursor(args.get(2).unwrap_or_default())?;
    let (mut pattern, mut count, mut set) = (None, COUNT_DEFAULT, false);
    let mut options = Options::new(args, 3);
    while let Some(word) = options.word()? {
        match word {
            Word::MATCH => pattern = Some(options.value()?),
            Word::COUNT => count = positive(options.value()?)?,
            Word::SET => set = true,
        }
    }
    query(ctx, args, |queue, at| {
        let mut groups: Vec<(Vec<u8>, usize, usize)> = Vec::new();
        let (mut looked_at, mut steps) = (0, 0);
        let all = queue.map(|queue| queue.at(at).groups());
        while let Some(all) = &all {
            cursor = all.scan(cursor, set, |group| {
                looked_at += 1;
                if pattern.is_none_or(|pattern| matches(pattern, group.name)) {
                    groups.push((group.name.to_vec(), group.waiting, group.reserved));
                }
            });
            steps += 1;
            if cursor == 0 || looked_at >= count || steps >= count.saturating_mul(PASSED_OVER) {
                break;
            }
        }
        if all.is_none() {
            cursor = 0;
        }
        ctx.reply_array(2);
        ctx.reply_bytes(cursor.to_string().as_bytes());
        ctx.reply_array(groups.len());
        for (name, waiting, reserved) in &groups {
            ctx.reply_array(3);
            ctx.reply_bytes(name);
            ctx.reply_integer(*waiting as i64);
            ctx.reply_integer(*reserved as i64);
        }
    })
}
