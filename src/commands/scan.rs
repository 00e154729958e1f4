//! DQ.SCAN key cursor [STATE s] [MATCH pattern] [GROUP name] [PAYLOAD pattern] [LABEL pattern]
//! [RECURRING] [COUNT n]

use super::parse::{at_least, positive, state, Options};
use super::query;
use super::syntax::options;
use crate::queue::attr::Attr;
use crate::queue::glob::matches;
use crate::server::api::{Args, Ctx, Refusal};

options! { SCAN: STATE MATCH GROUP PAYLOAD LABEL RECURRING COUNT }

pub const COUNT_DEFAULT: u64 = 10;

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 3)?;
    let cursor = cursor(args.get(2).unwrap_or_default())?;
    let (mut of, mut pattern, mut count) = (None, None, COUNT_DEFAULT);
    let (mut group, mut payload, mut label, mut recurring) = (None, None, None, false);
    let mut options = Options::new(args, 3);
    while let Some(word) = options.word()? {
        match word {
            Word::STATE => of = Some(state(options.value()?)?),
            Word::MATCH => pattern = Some(options.value()?),
            Word::GROUP => group = Some(options.value()?),
            Word::PAYLOAD => payload = Some(options.value()?),
            Word::LABEL => label = Some(options.value()?),
            Word::RECURRING => recurring = true,
            Word::COUNT => count = positive(options.value()?)?,
        }
    }
    query(ctx, args, |queue, at| {
        let mut cursor = cursor;
        let mut ids: Vec<Vec<u8>> = Vec::new();
        let mut looked_at = 0;
        if let Some(queue) = queue {
            loop {
                cursor = queue.scan(cursor, at, |job| {
                    looked_at += 1;
                    let wanted = of.is_none_or(|of| of == job.state)
                        && pattern.is_none_or(|pattern| matches(pattern, job.id))
                        && group.is_none_or(|group| job.group == Some(group))
                        && payload.is_none_or(|pattern| matches(pattern, job.payload))
                        && (!recurring || job.recurring.is_some())
                        && label.is_none_or(|pattern| {
                            let label = job.terms.rest.text(Attr::Label);
                            label.is_some_and(|label| matches(pattern, label))
                        });
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
