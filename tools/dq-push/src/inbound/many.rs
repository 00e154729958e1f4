//! Many jobs in one request: one command for all that have the same options, and an answer for each.

use std::collections::{BTreeSet, HashMap};

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use dq_serve::answer::json_text;
use futures_util::stream::{self, StreamExt};
use redis::cmd;
use serde_json::{json, Map, Value as Json};

use super::job::{self, Asked, Job, Object};
use super::refusal::Refusal;
use super::requests::Caller;
use super::shown;

/// As many as DQ.MADD takes.
const MOST: usize = 10_000;
/// Commands under way at a time.
const AT_ONCE: usize = 64;

type Answer = Result<StatusCode, Refusal>;

pub async fn add(caller: &Caller<'_>, request: Request) -> Result<Response, Refusal> {
    let (headers, body, _memory) = caller.body(request).await?;
    if !Asked::of_headers(&headers)?.given.is_empty() {
        return Err(Refusal::asked(
            "options stand with each job, not in headers",
        ));
    }
    let objects: Vec<Object> = serde_json::from_slice(&body).map_err(|it| job::not_json(&it))?;
    if objects.len() > MOST {
        return Err(
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "at most 10000 jobs").because("size"),
        );
    }
    let read = |object: &Object| Job::new(Asked::default().and_of_json(object)?, caller.token);
    let jobs: Vec<Result<Job, Refusal>> = objects.iter().map(read).collect();
    caller.token.spend(jobs.iter().flatten().count())?;
    let answers = answers(caller, &jobs).await;
    let whys: BTreeSet<_> = answers
        .iter()
        .filter_map(|it| it.as_ref().err()?.why)
        .collect();
    for why in whys {
        let name = Some(&*caller.token.name).filter(|name| !name.is_empty());
        caller.inbound.refused(caller.from, why, name);
    }
    Ok(said(&jobs, answers))
}

/// The server's answers, in the order of the jobs.
async fn answers(caller: &Caller<'_>, jobs: &[Result<Job, Refusal>]) -> Vec<Answer> {
    let mut sets = Vec::<Vec<usize>>::new();
    let mut known: HashMap<&Vec<Vec<u8>>, usize> = HashMap::new();
    let mut answers: Vec<Option<Answer>> = vec![None; jobs.len()];
    for (at, job) in jobs.iter().enumerate() {
        match job {
            Err(refusal) => answers[at] = Some(Err(refusal.clone())),
            Ok(job) if job.of_many => match known.get(&job.words) {
                Some(&set) => sets[set].push(at),
                None => {
                    known.insert(&job.words, sets.len());
                    sets.push(vec![at]);
                }
            },
            Ok(_) => sets.push(vec![at]),
        }
    }
    let added = sets.clone().into_iter().map(|set| {
        let jobs = set.into_iter().filter_map(|at| jobs[at].as_ref().ok());
        added(caller, jobs.collect())
    });
    let added: Vec<Vec<Answer>> = stream::iter(added).buffered(AT_ONCE).collect().await;
    for (at, answer) in sets.concat().into_iter().zip(added.into_iter().flatten()) {
        answers[at] = Some(answer);
    }
    answers.into_iter().flatten().collect()
}

/// Adds jobs that have the same options.
async fn added(caller: &Caller<'_>, jobs: Vec<&Job>) -> Vec<Answer> {
    if let [job] = jobs[..] {
        return vec![caller.added(job).await];
    }
    let mut add = cmd("DQ.MADD");
    add.arg(&caller.queue).arg(jobs.len());
    for job in &jobs {
        add.arg(&job.id).arg(&job.payload);
    }
    add.arg(&jobs[0].words);
    match caller.ask(&add, jobs[0].again).await {
        Err(refusal) => vec![Err(refusal); jobs.len()],
        Ok(replies) => match replies.as_sequence() {
            Some(replies) if replies.len() == jobs.len() => {
                let pairs = replies.iter().zip(&jobs);
                pairs.map(|(reply, job)| job.answered(reply)).collect()
            }
            _ => vec![Err(Refusal::unavailable("the server's answer is not whole")); jobs.len()],
        },
    }
}

/// The status is that of all, if they have the same; 200 where some are new and some were there; else 207.
fn said(jobs: &[Result<Job, Refusal>], answers: Vec<Answer>) -> Response {
    let status = |answer: &Answer| answer.as_ref().map_or_else(|it| it.status, |it| *it);
    let statuses: BTreeSet<StatusCode> = answers.iter().map(status).collect();
    let each = jobs.iter().zip(&answers).map(|(job, answer)| {
        let mut said = match answer {
            Ok(_) => Map::new(),
            Err(refusal) => refusal.json(),
        };
        said.insert("status".to_owned(), json!(status(answer).as_u16()));
        if let Ok(job) = job {
            shown::put(&mut said, "id", &job.id);
        }
        Json::Object(said)
    });
    let text = Json::Array(each.collect()).to_string();
    let all = match statuses.iter().collect::<Vec<_>>()[..] {
        [] => StatusCode::OK,
        [one] => *one,
        _ if statuses.iter().all(StatusCode::is_success) => StatusCode::OK,
        _ => StatusCode::MULTI_STATUS,
    };
    let later = answers
        .into_iter()
        .find_map(Result::err)
        .filter(|it| it.status == all);
    let mut response = (all, json_text(text)).into_response();
    if let Some(later) = later {
        later.mark(response.headers_mut());
    }
    response
}
