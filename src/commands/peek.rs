//! DQ.PEEK key DELAYED | READY | RESERVED | DEAD | BLOCKED | DONE [FROM unix-ms] [TO unix-ms] [COUNT n]
//! [PREFIX n]

use super::parse::{at_least, millis, positive, prefix, state, Options};
use super::syntax::options;
use super::{cut, query};
use crate::queue::job::{State, INSTANT_MAX};
use crate::queue::view::Peek;
use crate::server::api::{Args, Ctx, Elements, Refusal};

options! { PEEK: FROM TO COUNT PREFIX }

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 3)?;
    let mut peek = Peek {
        state: state(args.get(2).unwrap_or_default())?,
        from: 0,
        to: INSTANT_MAX,
        count: 1,
        prefix: usize::MAX,
        is_bounded: false,
    };
    let mut options = Options::new(args, 3);
    while let Some(word) = options.word()? {
        match word {
            Word::FROM => (peek.from, peek.is_bounded) = (millis(options.value()?)?, true),
            Word::TO => (peek.to, peek.is_bounded) = (millis(options.value()?)?, true),
            Word::COUNT => peek.count = positive(options.value()?)?,
            Word::PREFIX => peek.prefix = prefix(options.value()?)?,
        }
    }
    let with_len = options.has_any(&[Word::PREFIX]);
    query(ctx, args, |queue, at| {
        let mut jobs = Elements::begin(ctx, true);
        if let Some(queue) = queue {
            queue.at(at).peek(&peek, |job| {
                jobs.count();
                ctx.reply_array(5 + usize::from(with_len));
                ctx.reply_bytes(job.id);
                ctx.reply_bytes(cut(job.payload, peek.prefix));
                match job.has_due || job.state != State::Blocked {
                    true => ctx.reply_integer(job.at() as i64),
                    false => ctx.reply_null(),
                }
                ctx.reply_integer(job.life.attempts.into());
                ctx.reply_integer(job.terms.priority.into());
                if with_len {
                    ctx.reply_integer(job.payload.len() as i64);
                }
            });
        }
    })
}
