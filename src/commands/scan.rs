//! DQ.SCAN key cursor [STATE s] [MATCH pattern] [GROUP name] [PAYLOAD pattern] [LABEL pattern]
//! [RECURRING] [AWAITS pattern] [REASON pattern] [COUNT n]

use super::parse::{at_least, positive, state, Options};
use super::query;
use super::syntax::options;
use crate::queue::attr::Attr;
use crate::queue::glob::matches;
use crate::queue::job::{JobView, State};
use crate::server::api::{Args, Ctx, Refusal};

options! { SCAN: STATE MATCH GROUP PAYLOAD LABEL RECURRING AWAITS REASON COUNT }

pub const COUNT_DEFAULT: u64 = 10;

/// Which jobs are shown: those that fit all that is given.
#[derive(Default)]
struct Filter<'a> {
    state: Option<State>,
    id: Option<&'a [u8]>,
    group: Option<&'a [u8]>,
    payload: Option<&'a [u8]>,
    label: Option<&'a [u8]>,
    recurs: bool,
    awaits: Option<&'a [u8]>,
    reason: Option<&'a [u8]>,
}

impl Filter<'_> {
    fn fits(&self, job: &JobView<'_>) -> bool {
        // A job without such a text fits no pattern.
        let fits = |pattern: Option<&[u8]>, text: Option<&[u8]>| {
            pattern.is_none_or(|pattern| text.is_some_and(|text| matches(pattern, text)))
        };
        self.state.is_none_or(|state| state == job.state)
            && fits(self.id, Some(job.id))
            && self.group.is_none_or(|group| job.group == Some(group))
            && (!self.recurs || job.recurring.is_some())
            && fits(self.label, job.terms.rest.text(Attr::Label))
            && fits(self.awaits, job.awaits())
            && fits(self.reason, job.failure.and_then(|it| it.reason))
            && fits(self.payload, Some(job.payload))
    }
}

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    at_least(args, 3)?;
    let cursor = cursor(args.get(2).unwrap_or_default())?;
    let (mut filter, mut count) = (Filter::default(), COUNT_DEFAULT);
    let mut options = Options::new(args, 3);
    while let Some(word) = options.word()? {
        match word {
            Word::STATE => filter.state = Some(state(options.value()?)?),
            Word::MATCH => filter.id = Some(options.value()?),
            Word::GROUP => filter.group = Some(options.value()?),
            Word::PAYLOAD => filter.payload = Some(options.value()?),
            Word::LABEL => filter.label = Some(options.value()?),
            Word::RECURRING => filter.recurs = true,
            Word::AWAITS => filter.awaits = Some(options.value()?),
            Word::REASON => filter.reason = Some(options.value()?),
            Word::COUNT => count = positive(options.value()?)?,
        }
    }
    query(ctx, args, |queue, at| {
        let mut cursor = cursor;
        let mut ids: Vec<Vec<u8>> = Vec::new();
        let mut looked_at = 0;
        if let Some(queue) = queue {
            loop {
                cursor = queue.at(at).scan(cursor, |job| {
                    looked_at += 1;
                    if filter.fits(&job) {
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
