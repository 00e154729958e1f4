//! The deliveries that DQ.TOUCH and DQ.NACK name: `id [TOKEN t]`, or `IDS n id token [id token ...]`. Without a
//! number behind it, IDS is an id.

use super::parse::{at_least, is_ids, positive, syntax_error};
use crate::queue::claim::Claim;
use crate::server::api::{Args, Ctx, Elements, Refusal};

pub struct Deliveries<'a> {
    args: Args<'a>,
    /// The index at which they begin, with an id or IDS.
    first: usize,
    /// How many pairs of id and token there are; none if there is one id.
    pairs: Option<usize>,
    /// The claim, if there is one id.
    claim: Claim,
}

impl<'a> Deliveries<'a> {
    pub fn read(args: Args<'a>) -> Result<Self, Refusal> {
        Self::read_from(args, 2)
    }

    /// As [`Deliveries::read`], if other arguments come first.
    pub fn read_from(args: Args<'a>, first: usize) -> Result<Self, Refusal> {
        at_least(args, first + 1)?;
        let word = args.get(first).unwrap_or_default();
        let mut pairs = None;
        if let Some(count) = args
            .get(first + 1)
            .filter(|count| is_ids(word) && is_number(count))
        {
            let count = positive(count)?;
            if count > (args.len() - first - 2) as u64 / 2 {
                return Err(syntax_error(format_args!(
                    "IDS {count} needs {count} pairs of id and token"
                )));
            }
            pairs = Some(count as usize);
        }
        Ok(Deliveries {
            args,
            first,
            pairs,
            claim: Claim::Current,
        })
    }

    /// The index at which the options begin.
    pub fn end(&self) -> usize {
        self.pairs
            .map_or(self.first + 1, |count| self.first + 2 + 2 * count)
    }

    /// Sets the token given by TOKEN. With IDS, each id has its own.
    pub fn set_token(&mut self, token: &[u8]) -> Result<(), Refusal> {
        if self.pairs.is_some() {
            let what = "TOKEN cannot be combined with IDS: a token follows each id";
            return Err(syntax_error(what));
        }
        self.claim = Claim::of_token(token);
        Ok(())
    }

    /// The one delivery, unless several are named with IDS.
    pub fn one(&self) -> Option<(&'a [u8], Claim)> {
        let id = self.args.get(self.first).unwrap_or_default();
        self.pairs.is_none().then_some((id, self.claim))
    }

    /// The deliveries after IDS.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], Claim)> + '_ {
        let arg = |at| self.args.get(at).unwrap_or_default();
        (0..self.pairs.unwrap_or(0)).map(move |number| {
            let at = self.first + 2 + 2 * number;
            (arg(at), Claim::of_token(arg(at + 1)))
        })
    }

    /// Begins the reply: an array if IDS was given.
    pub fn begin_reply<'c>(&self, ctx: Ctx<'c>) -> Elements<'c> {
        Elements::begin_fixed(ctx, self.pairs)
    }

    /// Replies as if no delivery had been found, because there is no queue.
    pub fn reply_nulls(&self, ctx: Ctx<'_>) {
        let _reply = self.begin_reply(ctx);
        (0..self.pairs.unwrap_or(1)).for_each(|_| ctx.reply_null());
    }
}

/// Whether these are digits, perhaps after a minus sign, be it in bounds or not.
fn is_number(bytes: &[u8]) -> bool {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}
