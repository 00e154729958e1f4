//! Delivers jobs to waiting clients, in one of two ways:
//!
//! - The command that makes a job ready delivers it before it ends: one job to one client that waits
//!   on this key alone. That saves a timer, another turn of the event loop, and another look at the key.
//! - The timer serves all others ([`super::worker`]): in transactions and scripts, which have not ended
//!   yet; if clients wait on several keys or for several jobs; if several jobs become ready; and in a
//!   cluster, whose slots may be moving.
//!
//! Both ways keep the order of the line: a command serves nobody if the timer has work on the key
//! already.

use super::agenda::Name;
use super::api::{Ctx, KeyName};
use super::blocked::{self, PopRequest};
use super::clock;
use super::queue_value::Value;
use super::waits::{BlockedClient, DeliveredJobs, Occasion, OwnDelivery, OwnExtras, WaitEnd};
use crate::queue::budget::OUT_OF_TURN;
use crate::queue::clock::Now;
use crate::queue::deliver::Delivery;
use crate::queue::effects::Effects;

/// So many bytes of payload cost one step: copying them takes as long as the rest of a delivery.
const BYTES_OF_STEP: usize = 4096;

/// Clients that were taken out of the line, each with its reply. Dropping this answers them, also
/// when a panic unwinds: no other code would.
pub struct Served<'a, C: IntoIterator<Item = (BlockedClient, WaitEnd)> + Default> {
    pub occasion: Occasion<'a>,
    pub clients: C,
}

impl<C: IntoIterator<Item = (BlockedClient, WaitEnd)> + Default> Drop for Served<'_, C> {
    fn drop(&mut self) {
        for (client, end) in std::mem::take(&mut self.clients) {
            client.answer(self.occasion, end);
        }
    }
}

/// Takes the job that the command has made ready for the client that is first in line, if the
/// command may serve it.
#[cold]
#[inline(never)]
pub fn by_command<'a>(
    ctx: Ctx<'a>,
    key: KeyName<'_>,
    value: &mut Value,
    now: Now,
    effects: &mut Effects,
) -> Option<Served<'a, Option<(BlockedClient, WaitEnd)>>> {
    let (db, name) = (ctx.selected_db(), key.bytes());
    let armed_for = value.armed_for;
    let queue = value.queue();
    let has_come = |instant: Option<u64>| instant.is_some_and(|at| at <= now.ms());
    let only_noack = queue.serving().serves_only_noack(now);
    let first = blocked::first_in_line((db, name), only_noack, queue, now)?;
    let (ticket, request, only_key) = (first.ticket, first.request, first.only_key?);
    // Where others are served, a client with NOACK may be, too.
    if only_noack && !has_come(queue.serving().next_delivery(now, true)) || request.count.is_some()
    {
        return None;
    }
    if armed_for <= now.ms() || has_come(queue.next_event()) {
        return None;
    }
    let occasion = Occasion::of_command(ctx)?;
    if !blocked::is_allowed(ctx, ticket, key) {
        return None;
    }
    let jobs = pop(value, request, now, &mut { OUT_OF_TURN }, effects);
    if jobs.is_empty() {
        return None;
    }
    let client = blocked::take(ticket, Some(name))?;
    let clients = Some((client, jobs_of(only_key, request, jobs)));
    Some(Served { occasion, clients })
}

/// The reply to this request.
pub fn jobs_of(key: Name, request: PopRequest, jobs: Vec<OwnDelivery>) -> WaitEnd {
    let Some(reply) = request.reply else {
        return WaitEnd::Nothing;
    };
    WaitEnd::Jobs(DeliveredJobs {
        key,
        many: request.count.is_some(),
        with_due: request.with_due,
        jobs,
        reply,
    })
}

/// Takes jobs for one client.
pub fn pop(
    value: &mut Value,
    request: PopRequest,
    now: Now,
    steps: &mut usize,
    effects: &mut Effects,
) -> Vec<OwnDelivery> {
    let pop = request.pop();
    // Most clients ask for one job.
    let mut jobs = Vec::with_capacity(usize::from(request.count.is_none()));
    clock::with_mint(|mint| {
        let mut keep = |delivery: Delivery<'_>| jobs.push(OwnDelivery::of(delivery));
        value
            .queue()
            .take(&pop, now, mint, effects, steps, &mut keep)
    });
    let len = |job: &OwnDelivery| {
        let steps = job.extras.as_ref().map_or(0, OwnExtras::steps_len);
        job.content().1.len() + steps
    };
    let bytes: usize = jobs.iter().map(len).sum();
    *steps = steps.saturating_sub(jobs.len() + bytes / BYTES_OF_STEP);
    jobs
}
