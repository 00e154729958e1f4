//! DQ.APPLY key effects: what replication and the AOF carry. Not for users.

use super::parse::exactly;
use crate::queue::error::QueueError;
use crate::server::api::{Args, Ctx, Refusal};
use crate::server::arrival::{Arrival, Origin};
use crate::server::awaits;
use crate::server::clock::now;
use crate::server::key::OpenKey;
use crate::server::queue_value::{self, Value};
use crate::server::{replicate, unreadable};

const NOT_FOR_CLIENTS: &str = "ERR DQ.APPLY is only for replication and the AOF";

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    exactly(args, 3)?;
    if !ctx.flags().is_trusted() {
        return Err(Refusal(NOT_FOR_CLIENTS.into()));
    }
    let (Some(key), Some(bytes)) = (args.key(1), args.get(2)) else {
        return Ok(());
    };
    let mut open = OpenKey::open(ctx, key)?;
    let applied = apply(&mut open, bytes);
    open.arm(now());
    let touches = applied.map_err(|error| {
        unreadable::met_in_effects(ctx, open.name(), error);
        Refusal::from(error)
    })?;
    drop(open);
    ctx.replicate_verbatim();
    if touches {
        ctx.signal_modified(key);
    }
    replicate::announce(ctx, key, bytes);
    ctx.reply_simple(c"OK");
    Ok(())
}

/// Whether the effects count as a change for `WATCH`.
fn apply(open: &mut OpenKey<'_>, bytes: &[u8]) -> Result<bool, QueueError> {
    let mut arrival = Arrival::from(Origin::Trusted);
    let (touches, whole);
    if awaits::are_there() {
        open.listen();
    }
    match open.queue() {
        Some(queue) => {
            let applied = arrival.carry_out(queue, bytes);
            touches = arrival.touches();
            whole = arrival.end_lots(queue);
            let dropped = applied.and_then(|()| arrival.end(queue));
            open.note_departures(now());
            if dropped? {
                open.delete();
            }
        }
        None => {
            let mut queue = queue_value::new_queue();
            arrival.carry_out(&mut queue, bytes)?;
            touches = arrival.touches();
            whole = arrival.end_lots(&mut queue);
            if !arrival.end(&mut queue)? {
                open.create(Value::new(queue));
            }
        }
    }
    whole.map(|()| touches)
}
