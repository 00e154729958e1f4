//! DQ.MADD key n id|* payload [id|* payload ...] [NX | XX | REPLACE] [DELAY ms | AT unix-ms] and each [`Attr`](crate::queue::attr::Attr)

use super::parse::{at_least, millis, out_of_range, positive, syntax_error, Options};
use super::syntax::options;
use super::{change_or_create, open_to_add};
use crate::queue::add::{Add, Condition};
use crate::queue::add_many::{NewOne, MADD_MAX};
use crate::queue::clock::When;
use crate::server::api::{Args, Ctx, Elements, Refusal};
use crate::server::clock::with_mint;
use crate::server::config;

options! { MADD: NX XX REPLACE DELAY AT [SAID] }

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 5)?;
    let count = positive(args.get(2).unwrap_or_default())?;
    if count > MADD_MAX as u64 {
        return Err(out_of_range());
    }
    let count = count as usize;
    if 2 * count > args.len() - 3 {
        return Err(syntax_error(format_args!(
            "{count} jobs need {count} pairs of id and payload"
        )));
    }
    let mut add = Add::new(None, b"");
    add.server_ttr_ms = config::default_ttr_ms();
    read(args, 3 + 2 * count, &mut add)?;

    let arg = |at| args.get(at).unwrap_or_default();
    let job = |number| NewOne {
        id: Some(arg(3 + 2 * number)).filter(|id| *id != b"*"),
        payload: arg(4 + 2 * number),
    };
    let jobs: Vec<NewOne<'_>> = (0..count).map(job).collect();
    let key = open_to_add(ctx, args)?;
    change_or_create(ctx, key, |queue, now, effects| {
        let mut ids = None;
        let report = |id: Option<&[u8]>| {
            let ids = ids.get_or_insert_with(|| Elements::begin_fixed(ctx, Some(count)));
            match id {
                Some(id) => ctx.reply_bytes(id),
                None => ctx.reply_null(),
            }
            ids.count();
        };
        with_mint(|mint| queue.add_many(&add, &jobs, now, mint, effects, report))
    })??;
    Ok(())
}

/// Reads the options, which apply to all the jobs, as DQ.ADD does.
fn read<'a>(args: Args<'a>, first: usize, add: &mut Add<'a>) -> Result<(), Refusal> {
    let mut options = Options::new(args, first);
    while let Some(word) = options.word()? {
        match word {
            Word::NX => add.condition = Condition::New,
            Word::XX => add.condition = Condition::Existing,
            Word::REPLACE => add.condition = Condition::Replace,
            Word::DELAY => add.when = When::Delay(millis(options.value()?)?),
            Word::AT => add.when = When::At(millis(options.value()?)?),
            Word::Said(attr) => options.said(attr, add)?,
        }
    }
    options.only_one_of(&[Word::NX, Word::XX, Word::REPLACE])?;
    options.only_one_of(&[Word::DELAY, Word::AT])
}
