//! What was delivered, and what is coming.

use std::sync::Arc;

use dq_watch::model::row::{Row, HISTORY};
use dq_watch::model::stats::{Stats, READY};
use dq_watch::model::{clock, QueueKey};
use dq_watch::read::reply;
use dq_watch::text::escape;
use redis::Value;
use serde_json::{json, Value as Json};

use super::asked::{about, attended, refusal, strange};
use super::groups::tenants;
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::history::Parts;
use crate::core::question::Question;
use crate::core::scale::Load;
use crate::core::wire;

/// The last instant that DQ.FORECAST knows.
const LAST: i64 = 4_398_046_511_103;

/// Bars of the chart, for each width of the window.
const ZOOMS: [(&str, i64, usize); 6] = [
    ("minute", 60_000, 60),
    ("hour", 3_600_000, 120),
    ("day", 86_400_000, 96),
    ("week", 604_800_000, 84),
    ("month", 2_592_000_000, 90),
    ("year", 31_536_000_000, 73),
];

/// A chart of another width has about so many parts, each of a second or more, and spans at most so much time.
const PARTS: i64 = 180;
const FINEST_MS: i64 = 1000;
const FARTHEST_MS: i64 = 2 * 31_536_000_000;

/// Parts of a chart: past and coming ones. If it has both, now is where they meet.
#[derive(Debug, PartialEq)]
struct Range {
    from_ms: i64,
    each_ms: i64,
    past: usize,
    coming: usize,
}

impl Range {
    fn named(zoom: &str, now: i64) -> Option<Range> {
        let (_, span, parts) = *ZOOMS.iter().find(|it| it.0 == zoom)?;
        Some(Range {
            from_ms: now - span,
            each_ms: span / parts as i64,
            past: parts,
            coming: parts,
        })
    }

    fn free(from: i64, to: i64, now: i64) -> Option<Range> {
        let span = to.checked_sub(from).filter(|span| *span > 0)?;
        let far = [from, to].map(|at| at.checked_sub(now).map_or(i64::MAX, i64::abs));
        if span > FARTHEST_MS || far.into_iter().any(|far| far > FARTHEST_MS) {
            return None;
        }
        let each_ms = (span / PARTS).max(FINEST_MS);
        let parts = |long: i64| ((long + each_ms - 1) / each_ms).max(0) as usize;
        let past = parts(now.min(to) - from);
        let from_ms = match to <= now {
            true => from,
            false => from.max(now) - each_ms * past as i64,
        };
        Some(Range {
            from_ms,
            each_ms,
            past,
            coming: parts(to - from.max(now)),
        })
    }

    fn of(question: &Question, now: i64) -> Option<Range> {
        match (question.number("from"), question.number("to")) {
            (Some(from), Some(to)) => Range::free(from, to, now),
            _ => Range::named(question.text("zoom"), now),
        }
    }

    /// Where the coming parts begin and end.
    fn coming_ms(&self) -> (i64, i64) {
        let begin = self.from_ms + self.each_ms * self.past as i64;
        (begin, begin + self.each_ms * self.coming as i64)
    }
}

pub async fn forecast(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    let now = board.reader.server_ms();
    let range = Range::of(&question, now);
    let range = range.ok_or_else(|| Failure::asked("There is no such zoom."))?;
    let ask = |from: i64, to: i64, parts: usize| {
        let mut forecast = about(&question.key, "DQ.FORECAST", b"FROM");
        forecast.arg(from).arg("TO").arg(to);
        forecast.arg("BUCKETS").arg(parts).to_owned()
    };
    let (begin, end) = range.coming_ms();
    let end = end.max(now);
    // What is due already is counted apart, and so is what comes after the chart's end.
    let mut commands = vec![ask(0, now, 1), ask(end, LAST, 1)];
    if range.coming > 0 {
        commands.push(ask(begin, end, range.coming));
    }
    let values = board
        .connections
        .ask(question.key.clone(), commands)
        .await?;
    let counts = |value: Option<&Value>| match value {
        None => Ok(Vec::new()),
        Some(value) => match refusal(value) {
            Some(refused) => Err(refused),
            None => reply::instants(value).ok_or_else(strange),
        },
    };
    let (ago, each) = (now - range.from_ms, range.each_ms);
    let past = board.past(&question.key, ago, each, range.past).await;
    // What is coming is shown even without history.
    let (past, wrong) = match past {
        Ok(past) => (past, None),
        Err(error) => (Parts::new(range.from_ms, each, range.past), Some(error)),
    };
    let mut shown = json!({
        "now": now,
        "from": range.from_ms,
        "each": range.each_ms,
        "dues": counts(values.get(2))?,
        "due": counts(values.first())?.first(),
        "later": counts(values.get(1))?.first(),
        "past": whole(&past.delivered),
        "failed": whole(&past.failed),
        "late": past.late_us.iter().map(|&us| (us > 0).then_some(us)).collect::<Vec<_>>(),
        "known": past.known,
        "wrong": wrong.map(|error| escape::line(error.as_bytes())),
        "since": board.since_ms,
        "asked": attended(board, &question.key).await?,
        "shifts": shifts(board, &question.key, range.from_ms, now),
        "measured": board.reader.measured(&question.key).map(wire::measured),
        "unseen": board.reader.of_row(&question.key, Row::is_unseen),
    });
    // Of the last minutes each second is known.
    let by_second = range.each_ms == 1000 && range.coming > 0 && range.past <= HISTORY;
    if by_second {
        let [delivered, failed] = board.reader.seconds(&question.key, range.past);
        (shown["past"], shown["failed"]) = (json!(whole(&delivered)), json!(whole(&failed)));
    }
    Ok(shown)
}

/// When workers came and went since then, by the servers' clock.
fn shifts(board: &Arc<Board>, key: &QueueKey, from_ms: i64, now: i64) -> Vec<Json> {
    let apart = now - clock::now_ms();
    let all = board.reader.shifts(key).into_iter();
    let shown = all.filter(|(it, _)| it.from_ms + apart >= from_ms);
    let shown = shown.map(|(it, of_all)| {
        json!({ "at": it.from_ms + apart, "came": it.came, "went": it.went, "all": of_all })
    });
    shown.collect()
}

/// Whole numbers with the same sum: what is spread over many parts does not vanish by rounding.
pub fn whole(counts: &[f64]) -> Vec<f64> {
    let (mut exact, mut told) = (0.0, 0.0);
    let part = counts.iter().map(|count| {
        exact += count;
        let now = (exact + 1e-6_f64).floor() - told;
        told += now;
        now
    });
    part.collect()
}

/// Jobs that are to be done now and until then. A queue that does not exist has none.
pub async fn load(board: &Arc<Board>, key: &QueueKey, ahead_ms: i64) -> Result<Load, Failure> {
    let now = board.reader.server_ms();
    let mut forecast = about(key, "DQ.FORECAST", b"FROM");
    // With those that are due already: what became due since `now` is ready, and counts once.
    forecast.arg(0).arg("TO").arg(now + ahead_ms);
    forecast.arg("BUCKETS").arg(1);
    let of_queue = |command: &str| redis::cmd(command).arg(&key.name).to_owned();
    let commands = vec![of_queue("DQ.STATS"), forecast, of_queue("DQ.CFGGET")];
    let values = board.connections.ask(key.clone(), commands).await?;
    if let Some(refused) = values[..2].iter().find_map(refusal) {
        return Err(refused);
    }
    let stats = match &values[0] {
        Value::Nil => Stats::default(),
        value => reply::stats(value).ok_or_else(strange)?,
    };
    let due = reply::instants(&values[1]).and_then(|counts| counts.first().copied());
    let due = due.ok_or_else(strange)?.max(0) as u64;
    // A user who may not read the settings is answered without them.
    let settings = reply::settings(&values[2]).unwrap_or_default();
    let tenants = tenants(board, key, &settings, &stats).await;
    let coming = due.saturating_sub(stats.jobs[READY]);
    Ok(tenants.load(&settings, &stats.jobs, coming, now, ahead_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_478_400_000;

    fn free(from: i64, to: i64) -> Option<Range> {
        Range::free(NOW + from, NOW + to, NOW)
    }

    #[test]
    fn what_is_spread_does_not_vanish() {
        let spread = whole(&[0.1; 60]);
        assert_eq!(spread.iter().sum::<f64>(), 6.0);
        assert_eq!(whole(&[0.5, 0.5, 3.0]), [0.0, 1.0, 3.0]);
    }

    #[test]
    fn now_lies_between_two_parts() {
        let range = free(-60_500, 120_000).unwrap();
        assert_eq!((range.past, range.coming, range.each_ms), (61, 120, 1002));
        assert_eq!(range.coming_ms().0, NOW);
        assert!(range.from_ms <= NOW - 60_500 && range.coming_ms().1 >= NOW + 120_000);
        let named = Range::named("hour", NOW).unwrap();
        assert_eq!(named.coming_ms(), (NOW, NOW + 3_600_000));
    }

    #[test]
    fn all_before_or_all_to_come() {
        let past = free(-7_200_000, -3_600_000).unwrap();
        assert_eq!((past.past, past.coming), (180, 0));
        assert_eq!(past.from_ms, NOW - 7_200_000);
        let coming = free(3_600_000, 7_200_000).unwrap();
        assert_eq!((coming.past, coming.coming), (0, 180));
        assert_eq!(coming.coming_ms(), (NOW + 3_600_000, NOW + 7_200_000));
    }

    #[test]
    fn what_is_no_range() {
        assert_eq!(free(5, 5), None);
        assert_eq!(free(5, 4), None);
        assert_eq!(Range::free(i64::MIN, i64::MAX, NOW), None);
        assert_eq!(Range::free(i64::MIN, i64::MIN + 10, NOW), None);
        assert_eq!(free(0, 3 * FARTHEST_MS), None);
        assert_eq!(
            free(0, 10).map(|it| it.coming),
            Some(1),
            "a second at least"
        );
    }
}
