//! What one client waits for, and what has been noted for it so far.

use super::AwaitedId;
use crate::queue::clock::Now;
use crate::queue::outcome::{Departure, JobEnd, Known, Outcome};
use crate::queue::Queue;
use crate::server::api::acl::Call;
use crate::server::api::{Ctx, WRONG_TYPE};
use crate::server::waits::{Answer, WaitEnd};
use crate::storage::few::Few;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::rc::Rc;
use std::sync::Arc;

/// What a client is told about one job.
#[derive(Clone, Debug)]
pub enum Report {
    Ended(JobEnd),
    /// The queue does not hold it.
    Unknown,
}

/// Writes the reply of a client that waited for ends: the ends that were noted, with their ids.
pub type ReplyEnds = fn(Ctx<'_>, &[(AwaitedId, Report)]);
/// Writes until when each lease runs, or none where it has ended.
pub type ReplyLeases = fn(Ctx<'_>, &[Option<u64>]);

/// What was noted of a job for a client. `token` is that of the delivery that ended the job; 0 is none.
#[derive(Clone)]
struct Noted {
    report: Report,
    token: u64,
}

/// A client that waits for ends of jobs.
pub(super) struct Awaiting {
    noted: Few<Option<Noted>>,
    reply: ReplyEnds,
}

/// A client that holds leases.
pub(super) struct Holding {
    /// The token for each id, and whether its own worker ended that delivery.
    tokens: Vec<(u64, bool)>,
    /// The deliveries in the client's order: the id's index, and the token.
    named: Vec<(usize, u64)>,
    reply: ReplyLeases,
}

pub(super) enum WaitsFor {
    Ends(Awaiting),
    Leases(Holding),
}

pub(super) struct Waiter {
    pub db: c_int,
    pub key: Arc<[u8]>,
    /// The ids; of leases each once.
    pub ids: Few<AwaitedId>,
    waits_for: WaitsFor,
    /// Whether it is to be answered.
    pub is_ready: bool,
    /// A key of another type is under the name.
    is_refused: bool,
}

/// What a name holds.
pub enum Found<'a> {
    Queue(&'a Queue),
    Nothing,
    /// A key of another type.
    Other,
}

impl WaitsFor {
    /// Waits for the ends of these jobs.
    pub fn ends(ids: &Few<AwaitedId>, reply: ReplyEnds) -> WaitsFor {
        WaitsFor::Ends(Awaiting {
            noted: ids.map(|_| None),
            reply,
        })
    }

    /// Waits until one of these deliveries is lost, or all have ended. Also returns their ids, each once.
    pub fn leases(deliveries: &[(Vec<u8>, u64)], reply: ReplyLeases) -> (WaitsFor, Few<AwaitedId>) {
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
        (WaitsFor::Leases(holding), ids.into())
    }
}

impl Waiter {
    pub fn new(db: c_int, key: Arc<[u8]>, ids: Few<AwaitedId>, waits_for: WaitsFor) -> Waiter {
        Waiter {
            db,
            key,
            ids,
            waits_for,
            is_ready: false,
            is_refused: false,
        }
    }

    /// Notes a departure of the id at `place`. Whether the client is to be answered now.
    pub fn note(&mut self, place: usize, departure: &Departure, now: Now) -> bool {
        match &mut self.waits_for {
            WaitsFor::Ends(awaiting) => {
                let Some(end) = &departure.end else {
                    return false;
                };
                // The first end of each job counts.
                let noted = &mut awaiting.noted.get_mut()[place];
                let known = noted.take();
                *noted = known.filter(|it| !it.is_corrected_by(departure));
                noted.get_or_insert_with(|| Noted {
                    report: Report::Ended(JobEnd {
                        at: end.at.or(Some(now.ms())),
                        ..end.clone()
                    }),
                    token: departure.token,
                });
                true
            }
            WaitsFor::Leases(holding) => {
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

    /// Notes what the key holds now. Whether the client is to be answered now.
    pub fn note_found(&mut self, found: &Found<'_>, now: Now) -> bool {
        match (&mut self.waits_for, found) {
            (WaitsFor::Ends(awaiting), Found::Other) => {
                self.is_refused = !awaiting.has_ended();
                true
            }
            (WaitsFor::Ends(awaiting), found) => {
                let places = awaiting.noted.get_mut().iter_mut().zip(self.ids.get());
                for (noted, id) in places.filter(|(noted, _)| noted.is_none()) {
                    let report = match found {
                        Found::Queue(queue) => report_of(queue.known_of(id)),
                        _ => Some(Report::Unknown),
                    };
                    *noted = report.map(|report| Noted { report, token: 0 });
                }
                awaiting.has_ended()
            }
            (WaitsFor::Leases(holding), Found::Queue(queue)) => {
                let mut held = holding.tokens.iter().zip(self.ids.get());
                !held.all(|(&(token, is_over), id)| {
                    let until = || queue.jobs().held_until(id, token);
                    is_over || until().is_some_and(|until| until > now.ms())
                })
            }
            (WaitsFor::Leases(_), _) => true,
        }
    }

    /// What the wait ends with. Leases are looked up in this queue.
    pub fn end(self, is_allowed: bool, queue: Option<&Queue>, now: Now) -> WaitEnd {
        match self.waits_for {
            WaitsFor::Ends(_) if !self.is_ready => WaitEnd::Nothing,
            _ if !is_allowed => WaitEnd::Denied(self.key.to_vec()),
            WaitsFor::Ends(awaiting) if self.is_refused && !awaiting.has_ended() => {
                WaitEnd::Reply(Box::new(|ctx| ctx.reply_error(WRONG_TYPE)))
            }
            WaitsFor::Ends(awaiting) => WaitEnd::Reply(awaiting.answer(&self.ids)),
            WaitsFor::Leases(holding) => {
                let leases = holding.leases(self.ids.get(), queue, now);
                WaitEnd::Reply(Box::new(move |ctx| (holding.reply)(ctx, &leases)))
            }
        }
    }

    pub fn call(&self) -> Call {
        match self.waits_for {
            WaitsFor::Ends(_) => Call::AWAIT,
            WaitsFor::Leases(_) => Call::BTOUCH,
        }
    }
}

impl Noted {
    /// Whether the departure is a late `DQ.ACK` of the same delivery, whose lease had expired and
    /// left the job dead.
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
    fn has_ended(&self) -> bool {
        self.noted.get().iter().any(Option::is_some)
    }

    fn answer(mut self, ids: &Few<AwaitedId>) -> Answer {
        let noted = ids.get().iter().zip(self.noted.get_mut());
        let reports = noted.filter_map(|(id, noted)| Some((Rc::clone(id), noted.take()?.report)));
        let reports: Vec<_> = reports.collect();
        let reply = self.reply;
        Box::new(move |ctx| reply(ctx, &reports))
    }
}

impl Holding {
    fn leases(&self, ids: &[AwaitedId], queue: Option<&Queue>, now: Now) -> Vec<Option<u64>> {
        let lease = |&(place, token): &(usize, u64)| {
            let until = queue?.jobs().held_until(ids.get(place)?, token)?;
            (until > now.ms()).then_some(until)
        };
        self.named.iter().map(lease).collect()
    }
}

/// What to report of a job; none while it exists.
pub fn report_of(known: Known) -> Option<Report> {
    match known {
        Known::Lives => None,
        Known::Ended(end) => Some(Report::Ended(end)),
        Known::Nothing => Some(Report::Unknown),
    }
}
