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

use super::api::{Ctx, KeyName};
use super::blocked::{self, PopRequest};
use super::queue_value::Value;
use super::waits::{BlockedClient, DeliveredJobs, Occasion, OwnDelivery, OwnExtras, WaitEnd};
use super::{agenda, clock};
use crate::queue::budget::OUT_OF_TURN;
use crate::queue::clock::Now;
use crate::queue::deliver::Delivery;
use crate::queue::effects::Effects;

/// So many bytes of payload cost one step: copying them takes as long as the rest of a delivery.
const BYTES_OF_STEP: usize = 4096;

/// Clients that were taken out of the line, each with its reply. Dropping this answers them, also
/// when a panic unwinds: no other code would.
pub struct Served<'a> {
    pub occasion: Occasion<'a>,
    pub clients: Vec<(BlockedClient, WaitEnd)>,
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        for (client, end) in self.clients.drain(..) {
            client.answer(self.occasion, end);
        }
    }
}

/// Whether any client waits and this server delivers jobs. Checked by each command.
#[inline]
pub fn may_have_clients() -> bool {
    blocked::are_there() && agenda::is_master()
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
) -> Option<Served<'a>> {
    let (db, name) = (ctx.selected_db(), key.bytes());
    let armed_for = value.armed_for;
    let queue = value.queue();
    let has_come = |instant: Option<u64>| instant.is_some_and(|at| at <= now.ms());
    let only_noack = queue.serves_only_noack(now);
    let (ticket, request) = blocked::first_in_line((db, name), only_noack, queue, now)?;
    if !has_come(queue.next_delivery(now, request.noack)) || request.count.is_some() {
        return None;
    }
    let is_for_timer = armed_for <= now.ms() || has_come(queue.next_event());
    if is_for_timer || blocked::keys_named(ticket) != 1 {
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
    let end = jobs_of(name, request, jobs);
    Some(Served {
        occasion,
        clients: vec![(client, end)],
    })
}

/// The reply to this request.
pub fn jobs_of(key: &[u8], request: PopRequest, jobs: Vec<OwnDelivery>) -> WaitEnd {
    let Some(reply) = request.reply else {
        return WaitEnd::Nothing;
    };
    WaitEnd::Jobs(DeliveredJobs {
        key: key.to_vec(),
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
        let mut keep = |delivery: Delivery<'_>| {
            jobs.push(OwnDelivery {
                id: delivery.id.to_vec(),
                payload: delivery.payload.to_vec(),
                attempts: delivery.attempts,
                lease: delivery.lease,
                due: delivery.due,
                extras: delivery.extras.map(OwnExtras::of),
            });
        };
        value
            .queue()
            .take(&pop, now, mint, effects, steps, &mut keep)
    });
    let len =
        |job: &OwnDelivery| job.payload.len() + job.extras.as_ref().map_or(0, OwnExtras::steps_len);
    let bytes: usize = jobs.iter().map(len).sum();
    *steps = steps.saturating_sub(jobs.len() + bytes / BYTES_OF_STEP);
    jobs
}
