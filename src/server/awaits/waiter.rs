//! What one client waits for, and what it has heard of that.

use super::AwaitedId;
use crate::queue::clock::Now;
use crate::queue::outcome::{Departure, JobEnd, Known, Outcome};
use crate::queue::Queue;
use crate::server::api::acl::Call;
use crate::server::api::{Ctx, WRONG_TYPE};
use crate::server::waits::{Answer, End};
use crate::storage::few::Few;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::rc::Rc;
use std::sync::Arc;

/// What a client hears of one job.
#[derive(Clone, Debug)]
pub enum Report {
    Ended(JobEnd),
    /// The queue does not hold it.
    Unknown,
}

/// Writes what a client gets that has waited for ends: those that it has heard of, by their ids.
pub type ReplyEnds = fn(Ctx<'_>, &[(AwaitedId, Report)]);
/// Writes until when each lease runs, where it does.
pub type ReplyLeases = fn(Ctx<'_>, &[Option<u64>]);

/// What a client has heard of a job, and of which delivery that was the end; 0 is none.
#[derive(Clone)]
struct Heard {
    report: Report,
    token: u64,
}

/// One who waits for ends.
pub(super) struct Awaiting {
    heard: Few<Option<Heard>>,
    reply: ReplyEnds,
}

/// One who has leases.
pub(super) struct Holding {
    /// For each id, and whether it went by its own worker's word.
    tokens: Vec<(u64, bool)>,
    /// As the client has named them, by their places among the ids.
    named: Vec<(usize, u64)>,
    reply: ReplyLeases,
}

pub(super) enum Wants {
    Ends(Awaiting),
    Leases(Holding),
}

pub(super) struct Waiter {
    pub db: c_int,
    pub key: Arc<[u8]>,
    /// Each once.
    pub ids: Few<AwaitedId>,
    wants: Wants,
    /// It is to be answered.
    pub is_ready: bool,
    /// A key of another type is under the name.
    is_refused: bool,
}

/// What is under a name.
pub enum Found<'a> {
    Queue(&'a Queue),
    Nothing,
    /// A key of another type.
    Other,
}

impl Wants {
    /// The ends of these jobs.
    pub fn ends(ids: &Few<AwaitedId>, reply: ReplyEnds) -> Wants {
        Wants::Ends(Awaiting {
            heard: ids.map(|_| None),
            reply,
        })
    }

    /// That these deliveries stay current; and the ids of those, each once.
    pub fn leases(deliveries: &[(Vec<u8>, u64)], reply: ReplyLeases) -> (Wants, Few<AwaitedId>) {
        let mut places = BTreeMap::new();
        let (mut ids, mut tokens, mut named) = (Vec::new(), Vec::new(), Vec::new());
        for (id, token) in deliveries {
            let place = *places.entry(id).or_insert_with(|| {
                ids.push(AwaitedId::from(&id[..]));
                tokens.push((*token, false));
                ids.len() - 1
            });
            named.push((place, *token));
        }
        let holding = Holding {
            tokens,
            named,
            reply,
        };
        (Wants::Leases(holding), ids.into())
    }
}

impl Waiter {
    pub fn new(db: c_int, key: Arc<[u8]>, ids: Few<AwaitedId>, wants: Wants) -> Waiter {
        Waiter {
            db,
            key,
            ids,
            wants,
            is_ready: false,
            is_refused: false,
        }
    }

    /// Whether it is to be answered now.
    pub fn hear(&mut self, place: usize, departure: &Departure, now: Now) -> bool {
        match &mut self.wants {
            Wants::Ends(awaiting) => {
                let Some(end) = &departure.end else {
                    return false;
                };
                // The first end of each job counts.
                let heard = &mut awaiting.heard.get_mut()[place];
                let known = heard.take();
                *heard = known.filter(|it| !it.is_corrected_by(departure));
                heard.get_or_insert_with(|| Heard {
                    report: Report::Ended(JobEnd {
                        at: end.at.or(Some(now.ms())),
                        ..end.clone()
                    }),
                    token: departure.token,
                });
                true
            }
            Wants::Leases(holding) => {
                let (token, is_over) = &mut holding.tokens[place];
                if *token != departure.token || *is_over {
                    return false;
                }
                if !departure.is_claimed {
                    return true;
                }
                *is_over = true;
                holding.tokens.iter().all(|&(_, is_over)| is_over)
            }
        }
    }

    /// Whether it is to be answered now.
    pub fn look_at(&mut self, found: &Found<'_>, now: Now) -> bool {
        match (&mut self.wants, found) {
            (Wants::Ends(awaiting), Found::Other) => {
                self.is_refused = !awaiting.has_heard();
                true
            }
            (Wants::Ends(awaiting), found) => {
                let places = awaiting.heard.get_mut().iter_mut().zip(self.ids.get());
                for (heard, id) in places.filter(|(heard, _)| heard.is_none()) {
                    let report = match found {
                        Found::Queue(queue) => report_of(queue.known_of(id)),
                        _ => Some(Report::Unknown),
                    };
                    *heard = report.map(|report| Heard { report, token: 0 });
                }
                awaiting.has_heard()
            }
            (Wants::Leases(holding), Found::Queue(queue)) => {
                let mut held = holding.tokens.iter().zip(self.ids.get());
                !held.all(|(&(token, is_over), id)| {
                    let until = || queue.held_until(id, token);
                    is_over || until().is_some_and(|until| until > now.ms())
                })
            }
            (Wants::Leases(_), _) => true,
        }
    }

    /// What its wait ends with. Leases are those of this queue.
    pub fn end(self, is_allowed: bool, queue: Option<&Queue>, now: Now) -> End {
        match self.wants {
            Wants::Ends(_) if !self.is_ready => End::Nothing,
            _ if !is_allowed => End::Denied(self.key.to_vec()),
            Wants::Ends(awaiting) if self.is_refused && !awaiting.has_heard() => {
                End::Reply(Box::new(|ctx| ctx.reply_error(WRONG_TYPE)))
            }
            Wants::Ends(awaiting) => End::Reply(awaiting.answer(&self.ids)),
            Wants::Leases(holding) => {
                let leases = holding.leases(self.ids.get(), queue, now);
                End::Reply(Box::new(move |ctx| (holding.reply)(ctx, &leases)))
            }
        }
    }

    pub fn call(&self) -> Call {
        match self.wants {
            Wants::Ends(_) => Call::AWAIT,
            Wants::Leases(_) => Call::BTOUCH,
        }
    }
}

impl Heard {
    /// Its worker's late word, after its lease had ended.
    fn is_corrected_by(&self, departure: &Departure) -> bool {
        let Report::Ended(known) = &self.report else {
            return false;
        };
        let is_done = |end: &JobEnd| end.outcome == Outcome::Done;
        known.outcome == Outcome::Dead
            && departure.end.as_ref().is_some_and(is_done)
            && self.token == departure.token
            && self.token != 0
    }
}

impl Awaiting {
    fn has_heard(&self) -> bool {
        self.heard.get().iter().any(Option::is_some)
    }

    fn answer(mut self, ids: &Few<AwaitedId>) -> Answer {
        let heard = ids.get().iter().zip(self.heard.get_mut());
        let reports = heard.filter_map(|(id, heard)| Some((Rc::clone(id), heard.take()?.report)));
        let reports: Vec<_> = reports.collect();
        let reply = self.reply;
        Box::new(move |ctx| reply(ctx, &reports))
    }
}

impl Holding {
    fn leases(&self, ids: &[AwaitedId], queue: Option<&Queue>, now: Now) -> Vec<Option<u64>> {
        let lease = |&(place, token): &(usize, u64)| {
            let until = queue?.held_until(ids.get(place)?, token)?;
            (until > now.ms()).then_some(until)
        };
        self.named.iter().map(lease).collect()
    }
}

/// What there is to tell of a job; none where it lives.
pub fn report_of(known: Known) -> Option<Report> {
    match known {
        Known::Lives => None,
        Known::Ended(end) => Some(Report::Ended(end)),
        Known::Nothing => Some(Report::Unknown),
    }
}
