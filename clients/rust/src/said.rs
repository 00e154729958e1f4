//! The lines of a worker's log.

use crate::core::{Delivered, Reason, Said};
use crate::guard::log;
use crate::values::{at_ms, ms};
use std::time::SystemTime;

pub(crate) fn say(said: &Said) {
    match said {
        Said::Trouble(error) => log!(warn, error, "trouble with the server, trying again"),
        Said::Refused {
            job,
            error,
            is_wait,
        } => {
            let (id, queue) = named(job);
            let text = match is_wait {
                true => "the server refuses how a job would wait, so its attempt failed",
                false => "the server refuses how a job ended, leaving out what it does not like, such as the delay",
            };
            log!(warn, job = id, queue, error, "{text}");
        }
        Said::UnknownKind(job, meant) => {
            let kind = job.shown_kind();
            let meant = meant.as_ref();
            let hint = meant.map(|kind| format!(": did it mean {kind:?}?"));
            log!(
                warn,
                job = named(job).0,
                kind,
                "no handler for this kind, the attempt failed{}",
                hint.unwrap_or_default()
            );
        }
        Said::RunsHere(job) => {
            let (id, queue) = named(job);
            log!(
                warn,
                job = id,
                queue,
                "a job that still runs here was delivered again, gave it back"
            );
        }
        Said::UsedUp(job) => {
            let (id, queue) = named(job);
            log!(
                warn,
                job = id,
                queue,
                "the attempts of a job are used up, and its workers were lost: it is dead"
            );
        }
        Said::NoUnblock(error) => log!(
            warn,
            error,
            "DQ.UNBLOCK is refused: connections that wait are closed at the stop"
        ),
        Said::NoReasons(error) => log!(
            warn,
            error,
            "DQ.GET is refused: a job that may have killed its worker is not run alone"
        ),
        Said::Uncounted(error) => log!(
            warn,
            error,
            "DQ.STEP is refused: jobs of unknown kinds use up attempts of handlers"
        ),
        Said::Idle { queue, why } => {
            let why: Vec<String> = why.iter().map(reason).collect();
            let why = why.join(", ");
            log!(
                warn,
                queue,
                why,
                "no job for a minute, although some are ready: {why}"
            );
        }
        Said::Unexplained(error) => log!(
            warn,
            error,
            "DQ.EXPLAIN is refused: an idle worker cannot say why it gets no jobs"
        ),
        Said::Unheard(error) => log!(
            info,
            error,
            "cancelled jobs are noticed by heartbeats alone: DQ.BTOUCH is refused"
        ),
        Said::Stopping { jobs } => log!(info, jobs, "stopping, waiting for handlers"),
        Said::Stopped { gave_back } => log!(debug, gave_back, "stopped"),
    }
}

fn reason(of: &Reason) -> String {
    let mut text = of.code.clone();
    if let Some(number) = of.number {
        text += &format!(" {number}");
    }
    if let Some(until) = of.until_ms {
        let left = at_ms(until)
            .duration_since(SystemTime::now())
            .unwrap_or_default();
        text += &format!(" for {} s", ms(left).div_ceil(1000));
    }
    text
}

fn named(job: &Delivered) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&job.job.id), text(&job.job.key))
}
