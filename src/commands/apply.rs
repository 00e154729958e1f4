//! DQ.APPLY key effects: what replication and the AOF carry. Not for users.

use super::parse::exactly;
use crate::queue::error::QueueError;
use crate::queue::Queue;
use crate::server::clock::now;
use crate::server::ffi::{Args, Ctx, Refusal};
use crate::server::keyspace::OpenKey;
use crate::server::propagate::Origin;
use crate::server::{propagate, value};

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    exactly(args, 3)?;
    let (Some(key), Some(bytes)) = (args.raw(1), args.get(2)) else {
        return Ok(());
    };
    let mut open = OpenKey::open(ctx, key)?;
    let applied = if ctx.flags().is_obeyed() {
        apply(&mut open, bytes, Origin::Obeyed)
    } else {
        apply_whole(&mut open, bytes)
    };
    if let Err(error) = applied {
        propagate::log_refused(open.name(), error);
        return Err(error.into());
    }
    let db = open.db();
    open.arm(db, now());
    drop(open);
    ctx.replicate_verbatim();
    ctx.signal_modified(key);
    propagate::announce(ctx, key, bytes);
    ctx.reply_simple(c"OK");
    Ok(())
}

fn apply(open: &mut OpenKey<'_>, bytes: &[u8], origin: Origin) -> Result<(), QueueError> {
    match open.queue() {
        Some(queue) => {
            if propagate::apply(queue, bytes, origin)? {
                open.delete();
            }
        }
        None => {
            let mut queue = value::new_queue();
            if !propagate::apply(&mut queue, bytes, origin)? {
                open.create(queue);
            }
        }
    }
    Ok(())
}

/// From anybody but a master or a file: all of it, or nothing.
fn apply_whole(open: &mut OpenKey<'_>, bytes: &[u8]) -> Result<(), QueueError> {
    let mut trial: Queue = match open.queue() {
        Some(queue) => queue.copied(),
        None => value::new_queue(),
    };
    propagate::apply(&mut trial, bytes, Origin::Client)?;
    propagate::check_whole(&trial, Origin::Client)?;
    apply(open, bytes, Origin::Client)
}
