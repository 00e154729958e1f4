//! DQ.BPOP key [key ...] timeout [COUNT n] [TTR ms] [NOACK] [WITHDUE]

use super::parse::{positive, positive_millis, wrong_arity, Options};
use super::syntax;
use super::{change_open, reply_delivery, Waiting};
use crate::queue::budget::SETTLE_BUDGET;
use crate::queue::clock::Now;
use crate::queue::deliver::{Delivery, Pop};
use crate::queue::Queue;
use crate::server::api::acl;
use crate::server::api::command_info::Arg;
use crate::server::api::elements::Elements;
use crate::server::api::{Args, Ctx, KeyName, Refusal};
use crate::server::blocked::{self, Handover, PopRequest};
use crate::server::clock::{real, with_mint};
use crate::server::key::OpenKey;
use crate::slots::slot_of;
use std::ffi::c_int;
use std::ops::Range;

const WORDS: [&str; 4] = Arg::options(syntax::BPOP);

// The server's own words.
const CROSSSLOT: &str = "CROSSSLOT Keys in request don't hash to the same slot";
const TRYAGAIN: &str = "TRYAGAIN Multiple keys request during rehashing of slot";

/// Where keys, timeout and options stand.
struct Layout {
    keys: Range<usize>,
    timeout: usize,
    request: PopRequest,
}

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    let layout = layout(args)?;
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
        reply,
    );
    for key in queues {
        // Now that somebody waits, the timer has to know when there is something to hand over.
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

/// What the server does with all keys of its own commands, and here with the first alone.
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

/// The option that ends before `end`: its word, and whether a value stands between.
fn option_before(args: Args<'_>, end: usize) -> Option<(&'static str, bool)> {
    const OPTIONS: [(&str, bool); 4] = [
        ("NOACK", false),
        ("WITHDUE", false),
        ("COUNT", true),
        ("TTR", true),
    ];
    let is_word = |index: usize, word: &str| {
        let arg = args.get(index);
        index > 0 && arg.is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    };
    OPTIONS
        .into_iter()
        .find(|&(word, valued)| is_word(end.saturating_sub(1 + usize::from(valued)), word))
}

/// Read from the end: options while there are any, then the timeout, and all before it are keys.
fn layout(args: Args<'_>) -> Result<Layout, Refusal> {
    if args.len() < 3 {
        return Err(wrong_arity(args));
    }
    let mut end = args.len();
    let mut first = None;
    while let Some((word, valued)) = option_before(args, end) {
        end -= 1 + usize::from(valued);
        first = Some(word);
    }
    // An option whose value is missing stands there itself.
    let in_place = ["COUNT", "TTR"].into_iter().find(|word| {
        let arg = args.get(end - 1).unwrap_or_default();
        arg.eq_ignore_ascii_case(word.as_bytes())
    });
    if let Some(word) = in_place.or(first.filter(|_| end < 3)) {
        return Err(no_timeout(word));
    }
    Ok(Layout {
        keys: 1..end - 1,
        timeout: end - 1,
        request: request(args, end)?,
    })
}

/// The options, which begin at `first`.
fn request(args: Args<'_>, first: usize) -> Result<PopRequest, Refusal> {
    let mut request = PopRequest {
        count: None,
        ttr_ms: None,
        noack: false,
        with_due: false,
    };
    let mut options = Options::new(args, first, &WORDS);
    while let Some(word) = options.word()? {
        match word {
            "COUNT" => request.count = Some(positive(options.value()?)?),
            "TTR" => request.ttr_ms = Some(positive_millis(options.value()?)?),
            "NOACK" => request.noack = true,
            _ => request.with_due = true,
        }
    }
    Ok(request)
}

/// Forgotten, it would make a key of the option's word, and the client would wait on that.
fn no_timeout(word: &str) -> Refusal {
    Refusal(format!("ERR timeout is missing: {word} stands where it must be").into())
}

/// The instant at which a wait of so many seconds ends; u64::MAX for 0, which is for ever.
fn end_of_wait(seconds: &[u8], now: Now) -> Result<u64, Refusal> {
    const NO_FLOAT: &str = "ERR timeout is not a float or out of range";
    let text = std::str::from_utf8(seconds).ok();
    let plain = |text: &&str| !text.is_empty() && !text.starts_with(char::is_whitespace);
    let seconds: f64 = text
        .filter(plain)
        .and_then(|text| text.parse().ok())
        .filter(|&seconds: &f64| seconds < f64::INFINITY)
        .ok_or(Refusal(NO_FLOAT.into()))?;
    if seconds < 0.0 {
        return Err(Refusal("ERR timeout is negative".into()));
    }
    if seconds == 0.0 {
        return Ok(u64::MAX);
    }
    let us = seconds * 1e6;
    if us > (i64::MAX / 2) as f64 {
        return Err(Refusal(NO_FLOAT.into()));
    }
    Ok((now.us() + us.ceil() as u64).div_ceil(1000))
}

/// What looking at one queue has come to.
enum AtOnce {
    Popped,
    /// It has ready jobs, and others who wait for them: the timer hands them over, and knows who gets one.
    InLine,
    Nothing,
}

/// Pops from one queue if it has a ready job, and nobody is in line for it.
fn pop_at_once(
    ctx: Ctx<'_>,
    open: OpenKey<'_>,
    name: &[u8],
    request: PopRequest,
    may_block: bool,
) -> Result<AtOnce, Refusal> {
    let db = ctx.selected_db();
    let has_line = may_block && blocked::any(db, name);
    let pop = Pop {
        count: request.count.unwrap_or(1),
        id: None,
        ttr_ms: request.ttr_ms,
        noack: request.noack,
    };
    let many = request.count.is_some();
    let mut delivered = 0;
    let in_line = change_open(ctx, open, Waiting::Left, |queue, now, effects| {
        if has_line {
            queue.settle(now, SETTLE_BUDGET, effects);
            if is_others_turn(queue, db, name, now) {
                let delivery = queue.next_delivery(now, request.noack);
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
                reply_delivery(ctx, (!many).then_some(name), request.with_due, job);
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

/// Whether the next job is for somebody who waits. A full MAXRESERVED or GROUPMAX holds most of them back.
fn is_others_turn(queue: &Queue, db: c_int, name: &[u8], now: Now) -> bool {
    blocked::first_in_line(db, name, queue.serves_only_noack(now)).is_some()
}

/// What a client that has waited gets.
fn reply(ctx: Ctx<'_>, handover: &Handover) {
    if handover.many {
        ctx.reply_array(2);
        ctx.reply_bytes(&handover.key);
        ctx.reply_array(handover.jobs.len());
    }
    for job in &handover.jobs {
        let delivery = Delivery {
            id: &job.id,
            payload: &job.payload,
            attempts: job.attempts,
            lease: job.lease,
            due: job.due,
        };
        let key = (!handover.many).then_some(&*handover.key);
        reply_delivery(ctx, key, handover.with_due, delivery);
    }
}
