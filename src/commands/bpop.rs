//! DQ.BPOP key [key ...] timeout [COUNT n [FILL m ms]] [TTR ms | LEASE ms] [NOACK] [WITHDUE] [WITHRESULTS] [WITHSTEPS] [WITHTERMS]

use super::parse::{
    end_of_wait, out_of_range, positive, positive_millis, syntax_error, timeout, wrong_arity,
    Options, Words,
};
use super::syntax::options;
use super::{change_open, reply_delivery, Waiting};
use crate::queue::budget::EXPIRE_BUDGET;
use crate::queue::clock::Now;
use crate::queue::deliver::Delivery;
use crate::queue::job::State;
use crate::queue::Queue;
use crate::server::api::acl;
use crate::server::api::command_info::OptionWord;
use crate::server::api::{Args, Ctx, Elements, KeyName, Refusal};
use crate::server::blocked::filling::Fill;
use crate::server::blocked::{self, PopRequest};
use crate::server::clock::{real, with_mint};
use crate::server::key::OpenKey;
use crate::server::waits::{DeliveredJobs, OwnExtras};
use crate::slots::slot_of;
use std::ffi::c_int;
use std::ops::Range;

options! { BPOP: COUNT FILL TTR LEASE NOACK WITHDUE WITHRESULTS WITHSTEPS WITHTERMS }

// The errors of the server's own commands.
const CROSSSLOT: &str = "CROSSSLOT Keys in request don't hash to the same slot";
const TRYAGAIN: &str = "TRYAGAIN Multiple keys request during rehashing of slot";

/// The places of the keys and the timeout, and the options.
struct Layout {
    keys: Range<usize>,
    timeout: usize,
    request: PopRequest,
}

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    let layout = layout(ctx, args)?;
    check_keys(ctx, args, &layout)?;
    let until = end_of_wait(args.get(layout.timeout).unwrap_or_default(), real())?;
    let may_block = !ctx.flags().denies_blocking();
    let mut queues = Vec::new();
    let mut in_line = false;
    for (key, name) in layout.keys(args) {
        let mut open = OpenKey::open(ctx, key)?;
        if open.value().is_none() {
            continue;
        }
        queues.push(key);
        if in_line {
            continue;
        }
        match pop_at_once(ctx, open, name, layout.request, may_block)? {
            AtOnce::Popped => return Ok(()),
            AtOnce::InLine => in_line = true,
            AtOnce::Nothing => {}
        }
    }
    if !may_block {
        ctx.reply_null_array();
        return Ok(());
    }
    blocked::block(
        ctx,
        layout.keys(args).map(|(_, name)| name),
        layout.request,
        until,
    );
    for key in queues {
        // A client waits now, so the timer must know when a job can be delivered.
        change_open(ctx, OpenKey::open(ctx, key)?, Waiting::Left, |_, _, _| ())?;
    }
    Ok(())
}

impl Layout {
    fn keys<'a>(&self, args: Args<'a>) -> impl Iterator<Item = (KeyName<'a>, &'a [u8])> + Clone {
        let keys = self.keys.clone();
        keys.filter_map(move |index| Some((args.key(index)?, args.get(index)?)))
    }
}

/// Checks what the server checks for all keys of its own commands, but here only for the first.
fn check_keys(ctx: Ctx<'_>, args: Args<'_>, layout: &Layout) -> Result<(), Refusal> {
    if layout.keys.len() < 2 {
        return Ok(());
    }
    acl::check_keys(ctx, args, layout.keys.start + 1..layout.keys.end)?;
    if ctx.flags().is_cluster() {
        let mut slots = layout.keys(args).map(|(_, name)| slot_of(name));
        let first = slots.next();
        if slots.any(|slot| Some(slot) != first) {
            return Err(Refusal(CROSSSLOT.into()));
        }
        if !ctx.serves(&args.all()[layout.keys.clone()]) {
            return Err(Refusal(TRYAGAIN.into()));
        }
    }
    Ok(())
}

/// The length of the shortest option word.
const SHORTEST: usize = {
    let (mut least, mut at) = (usize::MAX, 0);
    while at < Word::KNOWN.len() {
        let len = Word::KNOWN[at].text.len();
        least = if len < least { len } else { least };
        at += 1;
    }
    least
};

/// The option whose word is at this index, if it takes a value or none as asked.
fn option_at(args: Args<'_>, index: usize, takes_value: bool) -> Option<&'static OptionWord> {
    let arg = args.get(index).filter(|_| index > 0)?;
    // Usually a timeout.
    if arg.len() < SHORTEST {
        return None;
    }
    let is_it = |known: &&OptionWord| {
        known.takes_value == takes_value && arg.eq_ignore_ascii_case(known.text.as_bytes())
    };
    Word::KNOWN.iter().find(is_it)
}

/// The option that ends before `end`, and how many values it has there. A word without a value is tried first: it may be
/// where a value is missing. FILL alone has two.
fn option_before(args: Args<'_>, end: usize) -> Option<(&'static OptionWord, usize)> {
    let with = |values: usize| {
        let option = option_at(args, end.checked_sub(1 + values)?, values > 0)?;
        Some((option, values))
    };
    let with_two = || with(2).filter(|(option, _)| option.text == "FILL");
    with(0).or_else(|| with(1)).or_else(with_two)
}

/// Reads from the end: options while there are any, then the timeout; all before it are keys.
fn layout(ctx: Ctx<'_>, args: Args<'_>) -> Result<Layout, Refusal> {
    if args.len() < 3 {
        return Err(wrong_arity(args));
    }
    let mut end = args.len();
    let mut first = None;
    while let Some((option, values)) = option_before(args, end) {
        end -= 1 + values;
        first = Some(option);
    }
    let has_timeout =
        |end: usize| end >= 3 && is_like_number(args.get(end - 1).unwrap_or_default());
    let is_lease = first.is_some_and(|option| option.text == "LEASE");
    if is_lease && !has_timeout(end) && has_timeout(end + 2) {
        // No option: a key of this name. COUNT and TTR are refused, as the timeout is often forgotten.
        end += 2;
    } else if !has_timeout(end) {
        // An option without its value is where the timeout should be.
        if let Some(option) = option_at(args, end - 1, true).or(first) {
            return Err(no_timeout(option.text));
        }
    }
    Ok(Layout {
        keys: 1..end - 1,
        timeout: end - 1,
        request: request(ctx, args, end)?,
    })
}

/// The options, which begin at `first`.
fn request(ctx: Ctx<'_>, args: Args<'_>, first: usize) -> Result<PopRequest, Refusal> {
    let mut request = PopRequest {
        reply: Some(reply),
        ..PopRequest::of(ctx)
    };
    let mut options = Options::new(args, first);
    while let Some(word) = options.word()? {
        match word {
            Word::COUNT => request.count = Some(positive(options.value()?)?),
            Word::FILL => {
                let (least, ms) = (options.value()?, options.value()?);
                request.fill = Some(Fill {
                    least: positive(least)?,
                    ms: positive_millis(ms)?,
                });
            }
            Word::TTR => request.ttr_ms = Some(positive_millis(options.value()?)?),
            Word::LEASE => request.lease_ms = Some(positive_millis(options.value()?)?),
            Word::NOACK => request.noack = true,
            Word::WITHDUE => request.with_due = true,
            Word::WITHRESULTS => request.with.results = true,
            Word::WITHSTEPS => request.with.steps = true,
            Word::WITHTERMS => request.with.terms = true,
        }
    }
    options.only_one_of(&[Word::TTR, Word::LEASE])?;
    if let Some(fill) = request.fill {
        let Some(count) = request.count else {
            return Err(syntax_error("FILL needs COUNT"));
        };
        if !(2..=count).contains(&fill.least) {
            return Err(out_of_range());
        }
    }
    Ok(request)
}

/// Whether an argument looks like a number, by its first byte. Anything else is a key, and the
/// timeout was forgotten.
fn is_like_number(arg: &[u8]) -> bool {
    let first = arg.first().unwrap_or(&b'0');
    first.is_ascii_digit() || b"+-. ".contains(first) || timeout(arg).is_some()
}

/// Without this error the option's word would be a key, and the client would wait on it.
fn no_timeout(word: &str) -> Refusal {
    Refusal(format!("ERR timeout is missing before {word}").into())
}

/// The outcome for one queue.
enum AtOnce {
    Popped,
    /// The queue has ready jobs, but other clients wait for them: the timer decides who gets one.
    InLine,
    Nothing,
}

/// Pops from one queue if it has a ready job that no other client waits for.
fn pop_at_once(
    ctx: Ctx<'_>,
    open: OpenKey<'_>,
    name: &[u8],
    request: PopRequest,
    may_block: bool,
) -> Result<AtOnce, Refusal> {
    let db = ctx.selected_db();
    let has_line = may_block && blocked::any(db, name);
    let pop = request.pop();
    let many = request.count.is_some();
    let mut delivered = 0;
    let fill = request.fill.filter(|_| may_block);
    let in_line = change_open(ctx, open, Waiting::Left, |queue, now, effects| {
        if let Some(fill) = fill {
            queue.expire_overdue(now, EXPIRE_BUDGET, effects);
            if (queue.at(now).len(Some(State::Ready)) as u64) < fill.least {
                return false;
            }
        }
        if has_line {
            queue.expire_overdue(now, EXPIRE_BUDGET, effects);
            if is_others_turn(queue, db, name, now) {
                let delivery = queue.serving().next_delivery(now, request.noack);
                return delivery.is_some_and(|instant| instant <= now.ms());
            }
        }
        let mut jobs = None;
        with_mint(|mint| {
            delivered = queue.pop(&pop, now, mint, effects, |job| {
                let jobs = jobs.get_or_insert_with(|| {
                    if many {
                        ctx.reply_array(2);
                        ctx.reply_bytes(name);
                    }
                    Elements::begin(ctx, many)
                });
                let key = (!many).then_some(name);
                reply_delivery(ctx, key, request.with_due, job);
                jobs.count();
            });
        });
        false
    })?;
    Ok(match in_line {
        Some(true) => AtOnce::InLine,
        _ if delivered > 0 => AtOnce::Popped,
        _ => AtOnce::Nothing,
    })
}

/// Whether the next job is for another waiting client. A full MAXRESERVED or GROUPMAX holds most of
/// them back.
fn is_others_turn(queue: &Queue, db: c_int, name: &[u8], now: Now) -> bool {
    let only_noack = queue.serving().serves_only_noack(now);
    blocked::first_in_line((db, name), only_noack, queue, now).is_some()
}

/// Writes the reply of a client that was blocked.
fn reply(ctx: Ctx<'_>, delivered: &DeliveredJobs) {
    if delivered.many {
        ctx.reply_array(2);
        ctx.reply_bytes(&delivered.key);
        ctx.reply_array(delivered.jobs.len());
    }
    for job in &delivered.jobs {
        let extras = job.extras.as_ref().map(OwnExtras::shown);
        let (id, payload) = job.content();
        let delivery = Delivery {
            id,
            payload,
            attempts: job.attempts,
            lease: job.lease,
            due: job.due,
            extras: extras.as_ref(),
        };
        let key = (!delivered.many).then_some(&*delivered.key);
        reply_delivery(ctx, key, delivered.with_due, delivery);
    }
}
