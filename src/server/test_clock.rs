//! The clock for tests: DQ.CLOCK moves it from one instant at which something happens to the next.
//!
//! The client that moves it is blocked, and the timer does the work in its usual small steps: only
//! the timer may deliver jobs to waiting clients. Other clients are served meanwhile, however much
//! becomes due. Requests are carried out one after the other.
//!
//! Each request is answered by the next firing of the timer. By then the server has written the
//! jobs that it delivered to waiting clients.

use super::api::{api, guarded, log, Ctx, OwnString, RawString, Refusal, OK};
use super::key::OpenKey;
use super::{agenda, blocked, clock, timer};
use crate::queue::clock::When;
use redis_module::raw;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};

/// How far to move.
#[derive(Clone, Copy, Debug)]
pub enum Move {
    To(u64),
    By(u64),
    /// To the next instant at which anything happens in any queue.
    Next,
}

/// The clock's instant, or nil if nothing is to come; or why it was not moved.
type Answer = Result<Option<u64>, Refusal>;

type Client = *mut raw::RedisModuleBlockedClient;

struct Request {
    client: Client,
    by: Move,
    /// Known once the request's turn has come.
    target: Option<u64>,
    search: NextEventSearch,
}

/// The instant at which a request ends.
enum Aim {
    At(u64),
    /// Nothing is to come.
    Nothing,
    /// Not known yet.
    Searching,
}

/// A search through all queues for the earliest future instant at which something happens.
#[derive(Default)]
struct NextEventSearch {
    /// The last queue that was checked.
    after: Option<agenda::Place>,
    earliest: Option<u64>,
}

#[derive(Default)]
struct Work {
    requests: VecDeque<Request>,
    answers: Vec<(Client, Answer)>,
}

thread_local! {
    static WORK: RefCell<Work> = RefCell::default();
}

/// Called once, at load.
pub fn start() {
    clock::stand_still();
    let text = "test-clock is on: for jobs time stands still until DQ.CLOCK moves it";
    log(c"warning", text);
}

/// Moves the clock for the client that runs the command, which is answered when all is done.
pub fn request(ctx: Ctx<'_>, by: Move) {
    // SAFETY: live context of a command that may block; the callbacks are static. As there is
    // neither a timeout nor a callback for a client that disconnects, the handle is ours until
    // `answer` gives it back.
    let client = unsafe {
        api!(
            RedisModule_BlockClient,
            ctx.raw(),
            Some(reply),
            None,
            Some(free_answer),
            0
        )
    };
    WORK.with_borrow_mut(|work| {
        work.requests.push_back(Request {
            client,
            by,
            target: None,
            search: NextEventSearch::default(),
        });
    });
    timer::arm(0);
}

/// Whether a client waits for the clock: then the timer fires again at once.
pub fn has_work() -> bool {
    WORK.with_borrow(|work| !work.requests.is_empty() || !work.answers.is_empty())
}

/// Answers the clients whose requests are done.
pub fn answer() {
    let answers = WORK.with_borrow_mut(|work| std::mem::take(&mut work.answers));
    for (client, answer) in answers {
        let answer = Box::into_raw(Box::new(answer));
        // SAFETY: blocked in `request`, and unblocked once; the server gives the answer to `reply` if
        // the client is still there, and to `free_answer` in any case.
        unsafe { api!(RedisModule_UnblockClient, client, answer.cast()) };
    }
}

/// Called when nothing is left to do at the clock's instant: moves it to the next instant at which
/// something happens. False if there is no request, or the steps do not suffice to find out where
/// it ends.
pub fn step(ctx: Ctx<'_>, next_deadline: impl Fn() -> Option<u64>, steps: &mut usize) -> bool {
    let Some(mut request) = WORK.with_borrow_mut(|work| work.requests.pop_front()) else {
        return false;
    };
    let aim = request.aim(ctx, steps);
    let is_known = !matches!(aim, Ok(Aim::Searching));
    let answer = match aim {
        Ok(Aim::Searching) => None,
        Ok(Aim::Nothing) => Some(Ok(None)),
        Ok(Aim::At(target)) => {
            let stop = next_deadline().filter(|&at| at <= target);
            clock::move_to(stop.unwrap_or(target));
            stop.is_none().then_some(Ok(Some(target)))
        }
        Err(refusal) => Some(Err(refusal)),
    };
    *steps = steps.saturating_sub(1);
    WORK.with_borrow_mut(|work| match answer {
        Some(answer) => work.answers.push((request.client, answer)),
        None => work.requests.push_front(request),
    });
    is_known
}

impl Request {
    /// Where the request ends.
    fn aim(&mut self, ctx: Ctx<'_>, steps: &mut usize) -> Result<Aim, Refusal> {
        if let Some(target) = self.target {
            return Ok(Aim::At(target));
        }
        let now = clock::now();
        let aim = match self.by {
            Move::Next => self.search.go_on(ctx, steps),
            Move::By(ms) => Aim::At(When::Delay(ms).instant(now)?),
            Move::To(instant) if instant < now.ms() => {
                const BACK: &str =
                    "ERR unix-time-milliseconds is before the clock, which never goes back";
                return Err(Refusal(BACK.into()));
            }
            Move::To(instant) => Aim::At(instant),
        };
        if let Aim::At(target) = aim {
            self.target = Some(target);
        }
        Ok(aim)
    }
}

impl NextEventSearch {
    /// Continues the search; checks at most `steps` queues.
    fn go_on(&mut self, ctx: Ctx<'_>, steps: &mut usize) -> Aim {
        let (names, next) = agenda::names_from(self.after, *steps);
        for (db, name) in &names {
            let instant = next_instant(ctx, *db, name);
            self.earliest = self.earliest.into_iter().chain(instant).min();
        }
        *steps = steps.saturating_sub(names.len().max(1));
        self.after = next;
        match self.earliest {
            _ if next.is_some() => Aim::Searching,
            Some(instant) => Aim::At(instant),
            None => Aim::Nothing,
        }
    }
}

fn next_instant(ctx: Ctx<'_>, db: c_int, name: &[u8]) -> Option<u64> {
    let raw_name = OwnString::new(name);
    if !ctx.select_db(db) {
        return None;
    }
    let (now, mut open) = (clock::now(), OpenKey::peek(ctx, raw_name.name()).ok()?);
    let of_queue = open.queue()?.next_instant(now);
    let filling = blocked::filling(db, name, now).and_then(|it| it.1);
    of_queue.into_iter().chain(filling).min()
}

unsafe extern "C" fn reply(
    ctx: *mut raw::RedisModuleCtx,
    _argv: *mut RawString,
    _argc: c_int,
) -> c_int {
    guarded("the answer of DQ.CLOCK", OK, || {
        // SAFETY: the server passed the context, and what `answer` gave it, which is not freed yet.
        unsafe {
            let answer = api!(RedisModule_GetBlockedClientPrivateData, ctx).cast::<Answer>();
            let ctx = Ctx::new(ctx);
            match &*answer {
                Ok(Some(ms)) => ctx.reply_integer(*ms as i64),
                Ok(None) => ctx.reply_null(),
                Err(refusal) => ctx.reply_error(&refusal.0),
            }
        }
        OK
    })
}

unsafe extern "C" fn free_answer(_ctx: *mut raw::RedisModuleCtx, answer: *mut c_void) {
    guarded("the end of DQ.CLOCK", (), || {
        if !answer.is_null() {
            // SAFETY: made in `answer`, and freed once.
            drop(unsafe { Box::from_raw(answer.cast::<Answer>()) });
        }
    });
}
