//! DQ.SCAN key cursor [STATE s] [MATCH pattern] [COUNT n]

use super::look;
use super::parse::{at_least, positive, state, syntax_error, Options};
use super::syntax;
use crate::queue::glob::matches;
use crate::server::api::command_info::Arg;
use crate::server::api::{Args, Ctx, Refusal};

const WORDS: [&str; 3] = Arg::options(syntax::SCAN);

pub const COUNT_DEFAULT: u64 = 10;

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 3)?;
    let cursor = cursor(args.get(2).unwrap_or_default())?;
    let (mut of, mut pattern, mut count) = (None, None, COUNT_DEFAULT);
    let mut options = Options::new(args, 3, &WORDS);
    while let Some(word) = options.word()? {
        match word {
            "STATE" => of = Some(state(options.value()?).ok_or_else(syntax_error)?),
            "MATCH" => pattern = Some(options.value()?),
            _ => count = positive(options.value()?)?,
        }
    }
    look(ctx, args, |queue, now| {
        let mut cursor = cursor;
        let mut ids: Vec<Vec<u8>> = Vec::new();
        let mut looked_at = 0;
        if let Some(queue) = queue {
            loop {
                cursor = queue.scan(cursor, now, |job| {
                    looked_at += 1;
                    let wanted = of.is_none_or(|of| of == job.state)
                        && pattern.is_none_or(|pattern| matches(pattern, job.id));
                    if wanted {
                        ids.push(job.id.to_vec());
                    }
                });
                if cursor == 0 || looked_at >= count {
                    break;
                }
            }
        } else {
            cursor = 0;
        }
        ctx.reply_array(2);
        ctx.reply_bytes(cursor.to_string().as_bytes());
        ctx.reply_array(ids.len());
        ids.iter().for_each(|id| ctx.reply_bytes(id));
    })
}

pub fn cursor(digits: &[u8]) -> Result<u64, Refusal> {
    let text = std::str::from_utf8(digits).ok();
    let digits_only = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    text.filter(digits_only)
        .and_then(|text| text.parse().ok())
        .ok_or(Refusal("ERR invalid cursor".into()))
}
