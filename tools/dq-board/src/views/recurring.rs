//! Recurring jobs, of one queue or of all, with their last and next runs.

use std::collections::HashMap;
use std::sync::Arc;

use dq_watch::model::QueueKey;
use dq_watch::read::detail::{get, Job, Settings, State};
use dq_watch::read::reply;
use dq_watch::text::escape;
use serde_json::{json, Value as Json};

use super::asked::{about, refusal};
use super::walk::{scan, Reading};
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::filter::Filter;
use crate::core::question::{Question, Words};
use crate::core::wire;

/// Ids that one step looks at, and how many steps one question may take.
const STEP: usize = 500;
const STEPS: usize = 50;
const FOUND_MAX: usize = 50;
const NEXT_RUNS: usize = 3;
/// Kept jobs among which the last runs are looked for.
const KEPT: usize = 2000;

/// What one question has found, and how many steps it may still take.
struct Found {
    jobs: Vec<Json>,
    steps: usize,
}

pub async fn recurring(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    let mut found = Found {
        jobs: Vec::new(),
        steps: STEPS,
    };
    let more = found
        .search(board, &question.key, question.cursor())
        .await?;
    Ok(json!({ "jobs": found.jobs, "more": more, "now": board.reader.server_ms() }))
}

/// Of all queues, in their order: `from` is where the last question ended, with its cursor there.
pub async fn everywhere(board: &Arc<Board>, words: Words) -> Result<Json, Failure> {
    let keys = board
        .reader
        .queues(|stats| stats.is_some_and(|it| it.recurring > 0));
    let mut found = Found {
        jobs: Vec::new(),
        steps: STEPS,
    };
    let mut more = None;
    for (key, cursor) in words.onwards(&keys) {
        more = found.search(board, key, cursor).await?;
        if let Some(cursor) = &mut more {
            *cursor = Words::place(key, cursor);
            break;
        }
    }
    Ok(json!({ "jobs": found.jobs, "more": more, "now": board.reader.server_ms() }))
}

impl Found {
    fn is_enough(&self) -> bool {
        self.steps == 0 || self.jobs.len() >= FOUND_MAX
    }

    /// Where to continue, if it is not all.
    async fn search(
        &mut self,
        board: &Arc<Board>,
        key: &QueueKey,
        mut cursor: String,
    ) -> Result<Option<String>, Failure> {
        let mut last: Option<Runs> = None;
        while !self.is_enough() {
            self.steps -= 1;
            let (next, ids) = scan(board, key, &cursor, &Filter::recurring(), STEP).await?;
            if !ids.is_empty() {
                if last.is_none() {
                    last = Some(last_runs(board, key).await?);
                }
                self.read(board, key, &ids, last.as_ref()).await?;
            }
            cursor = next;
            if cursor == "0" {
                return Ok(None);
            }
        }
        Ok(Some(cursor))
    }

    async fn read(
        &mut self,
        board: &Arc<Board>,
        key: &QueueKey,
        ids: &[Vec<u8>],
        last: Option<&Runs>,
    ) -> Result<(), Failure> {
        let next = |id: &Vec<u8>| {
            about(key, "DQ.NEXT", id)
                .arg("COUNT")
                .arg(NEXT_RUNS)
                .to_owned()
        };
        let asked = ids.iter().flat_map(|id| [get(&key.name, id, 0), next(id)]);
        // In the same packet: beside the runs of a rule no later number of skipped ones is shown.
        let stats = redis::cmd("DQ.STATS").arg(&key.name).to_owned();
        let asked = std::iter::once(stats).chain(asked);
        let mut values = board.connections.ask(key.clone(), asked.collect()).await?;
        let stats = reply::stats(&values.remove(0)).unwrap_or_default();
        if let Some(refused) = values.iter().find_map(refusal) {
            return Err(refused);
        }
        let now = board.reader.server_ms();
        for (id, both) in ids.iter().zip(values.chunks(2)) {
            let Some(mut job) = reply::job(&both[0], 0) else {
                continue;
            };
            let Some(rule) = &mut job.rule else { continue };
            rule.next_ms = reply::instants(&both[1]).unwrap_or_default();
            let mut shown = wire::job(&job);
            shown["queue"] = json!({
                "key": wire::name_of(key), "name": escape::name(&key.name),
                "totals": stats.totals, "recurring": stats.recurring,
            });
            let run = last.and_then(|last| last.jobs.get(id));
            shown["last"] = run.map(wire::found).into();
            shown["unsearched"] = last.is_some_and(|last| last.is_part).into();
            shown["keeps"] = last.and_then(|last| last.keeps(&job)).into();
            let died = run.and_then(Job::at_ms);
            let is_last = died
                .zip(last)
                .is_some_and(|(at, last)| last.tells_all(&job, now - at));
            shown["isLast"] = is_last.into();
            self.jobs.push(shown);
        }
        Ok(())
    }
}

/// The last run of each recurring job among the first done and dead jobs that the queue keeps.
struct Runs {
    jobs: HashMap<Vec<u8>, Job>,
    /// The queue keeps more jobs than were searched.
    is_part: bool,
    /// None: the user may not read them.
    settings: Option<Settings>,
    /// Done jobs that the queue keeps.
    done: Option<i64>,
}

impl Runs {
    /// Whether successes of the job are kept, if that is known.
    fn keeps(&self, job: &Job) -> Option<bool> {
        let of_queue = || self.settings.as_ref().map(Settings::keeps_done);
        job.keep_ms().map(|ms| ms > 0).or_else(of_queue)
    }

    /// Whether each success of the job in the last milliseconds is still kept.
    fn tells_all(&self, job: &Job, ms: i64) -> bool {
        let Some((settings, done)) = self.settings.as_ref().zip(self.done) else {
            return false;
        };
        let has_room = settings.donelen == 0 || done < settings.donelen as i64;
        let ttl = match job.keep_ms() {
            None if settings.donettl_ms == 0 => u64::MAX,
            own => own.unwrap_or(settings.donettl_ms),
        };
        let is_kept = self.keeps(job) == Some(true) && ttl > ms.max(0) as u64;
        is_kept && has_room && settings.donebytes == 0 && !self.is_part
    }
}

async fn last_runs(board: &Arc<Board>, key: &QueueKey) -> Result<Runs, Failure> {
    let mut is_part = false;
    let mut last: HashMap<Vec<u8>, (i64, Vec<u8>)> = HashMap::new();
    for state in [State::Done, State::Dead] {
        let filter = Filter::of_state(state).with_id(b"@");
        let (next, ids) = scan(board, key, "0", &filter, KEPT).await?;
        is_part |= next != "0";
        for id in ids {
            let Some((job, occurrence)) = occurrence(&id) else {
                continue;
            };
            let known = last.get(job).map(|(at, _)| *at);
            if known.is_none_or(|at| at < occurrence) {
                last.insert(job.to_owned(), (occurrence, id));
            }
        }
    }
    let ids: Vec<Vec<u8>> = last.into_values().map(|(_, id)| id).take(KEPT).collect();
    let (jobs, _) = Reading::default().jobs(board, key, &ids, false).await?;
    let named = jobs
        .into_iter()
        .filter_map(|job| Some((occurrence(&job.id)?.0.to_owned(), job)));
    let jobs = named.collect();
    let settings = redis::cmd("DQ.CFGGET").arg(&key.name).to_owned();
    let asked = vec![settings, about(key, "DQ.LEN", b"DONE")];
    let values = board.connections.ask(key.clone(), asked).await?;
    Ok(Runs {
        jobs,
        is_part,
        settings: values.first().and_then(reply::settings),
        done: values.get(1).and_then(reply::int),
    })
}

/// `report@1795160079790`: an occurrence that is kept.
fn occurrence(id: &[u8]) -> Option<(&[u8], i64)> {
    let at = id.iter().rposition(|&byte| byte == b'@')?;
    let instant = std::str::from_utf8(&id[at + 1..]).ok()?;
    Some((&id[..at], instant.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_is_the_last_run_where_later_successes_would_be_there() {
        let settings = |donelen, donettl_ms, donebytes| Settings {
            donelen,
            donettl_ms,
            donebytes,
            ..Settings::default()
        };
        for (settings, done, ago, is_last) in [
            (settings(0, 0, 0), 0, 5, false),
            (settings(10, 0, 0), 9, 5, true),
            (settings(10, 0, 0), 10, 5, false),
            (settings(0, 1000, 0), 9, 999, true),
            (settings(0, 1000, 0), 9, 1000, false),
            (settings(10, 0, 1), 1, 5, false),
        ] {
            let runs = Runs {
                jobs: HashMap::new(),
                is_part: false,
                settings: Some(settings),
                done: Some(done),
            };
            assert_eq!(
                runs.tells_all(&Job::default(), ago),
                is_last,
                "{done} {ago}"
            );
        }
    }

    #[test]
    fn occurrences_are_named_by_their_instant() {
        assert_eq!(occurrence(b"a@b@17"), Some((b"a@b".as_slice(), 17)));
        for none in ["a", "a@", "a@x", "17"] {
            assert_eq!(occurrence(none.as_bytes()), None, "{none}");
        }
    }
}
