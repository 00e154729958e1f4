//! DQ.PEEK key DELAYED | READY | RESERVED | DEAD [FROM unix-ms] [TO unix-ms] [COUNT n]

use super::look;
use super::parse::{at_least, millis, positive, state, syntax_error, Options};
use super::syntax;
use crate::queue::job::INSTANT_MAX;
use crate::queue::view::Peek;
use crate::server::api::command_info::Arg;
use crate::server::api::elements::Elements;
use crate::server::api::{Args, Ctx, Refusal};

const WORDS: [&str; 3] = Arg::options(syntax::PEEK);

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 3)?;
    let mut peek = Peek {
        state: state(args.get(2).unwrap_or_default()).ok_or_else(syntax_error)?,
        from: 0,
        to: INSTANT_MAX,
        count: 1,
    };
    let mut options = Options::new(args, 3, &WORDS);
    while let Some(word) = options.word()? {
        match word {
            "FROM" => peek.from = millis(options.value()?)?,
            "TO" => peek.to = millis(options.value()?)?,
            _ => peek.count = positive(options.value()?)?,
        }
    }
    look(ctx, args, |queue, now| {
        let mut jobs = Elements::begin(ctx, true);
        if let Some(queue) = queue {
            queue.peek(&peek, now, |job| {
                jobs.count();
                ctx.reply_array(5);
                ctx.reply_bytes(job.id);
                ctx.reply_bytes(job.payload);
                ctx.reply_integer(job.at() as i64);
                ctx.reply_integer(job.life.attempts.into());
                ctx.reply_integer(job.terms.priority.into());
            });
        }
    })
}
