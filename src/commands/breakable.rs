//! Only in builds for tests. DQ.BREAK key id frees a job's memory and keeps all references to it.
//! DQ.BREAK place makes the next call that reaches this place panic there, once. With DQ.BREAK
//! newer, what it writes from now on has a future version. DQ.BREAK key id NOTED text sets a note that no release has,
//! and without the text replies it; CRITICAL in place of NOTED: one that who does not know it must refuse.

use super::parse::exactly;
use super::{change, query_job};
use crate::queue::note::{CANARY, CRITICAL_CANARY};
use crate::server::api::{Args, Ctx, Refusal};
use crate::storage::broken::plant;

pub fn run(ctx: Ctx<'_>, args: Args<'_>) -> Result<(), Refusal> {
    let id = args.get(2).unwrap_or_default();
    match (args.len(), args.get(1), args.get(4)) {
        (2, Some(place), _) => plant(place),
        (4, ..) => return reply_noted(ctx, args, id),
        (5, _, Some(text)) => {
            let tag = match args.get(3) {
                Some(b"CRITICAL") => CRITICAL_CANARY,
                _ => CANARY,
            };
            change(ctx, args, |queue, _, effects| {
                queue.note_as_newer(id, (tag, text), effects)
            })?;
        }
        _ => {
            exactly(args, 3)?;
            change(ctx, args, |queue, _, _| queue.lose_job(id))?;
        }
    }
    ctx.reply_simple(c"OK");
    Ok(())
}

fn reply_noted(ctx: Ctx<'_>, args: Args<'_>, id: &[u8]) -> Result<(), Refusal> {
    query_job(ctx, args, id, |queue, at| {
        let job = queue.and_then(|queue| queue.at(at).get(id));
        match job.and_then(|job| job.notes.canary()) {
            Some(text) => ctx.reply_bytes(text),
            None => ctx.reply_null(),
        }
    })
}
