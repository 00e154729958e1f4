//! Actions on all jobs that a filter selects.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::Extension;
use dq_watch::model::QueueKey;
use serde_json::{json, Value};

use super::act::{is_typed, may_act, read, Asked};
use super::site::{Shared, Site};
use crate::audit::record;
use crate::core::access::Visitor;
use crate::core::failure::Failure;
use crate::tasks::Order;
use dq_serve::answer::json_text;
use dq_serve::audit::Audit;

/// Visitors who may only read may count.
pub async fn begin(
    State(site): Shared,
    Extension(visitor): Extension<Visitor>,
    body: Bytes,
) -> Response {
    let begun = read(&body).and_then(|(asked, key)| {
        let order = order(&asked, &key)?;
        let log = Log::new(&site, &visitor, &asked, &order);
        let allowed = is_allowed(&site, &visitor, &asked, &order);
        let refused = log.clone();
        let begun = allowed.and_then(|()| {
            log.begun();
            site.tasks.begin(order, move |end| log.ended(end))
        });
        begun.inspect_err(|failure| refused.refused(failure))
    });
    match begun {
        Ok(number) => json_text(json!({ "task": number }).to_string()),
        Err(failure) => failure.into_response(),
    }
}

fn is_allowed(site: &Site, visitor: &Visitor, asked: &Asked, order: &Order) -> Result<(), Failure> {
    site.board.shows(&order.key)?;
    if order.act.is_none() {
        return Ok(());
    }
    may_act(visitor)?;
    asked.is_shown(&site.board, &order.key)?;
    is_typed_if_it_must(asked, &order.key)
}

/// What is recorded of a task.
#[derive(Clone)]
struct Log {
    audit: Arc<Audit>,
    visitor: Visitor,
    about: Value,
    /// Counting is no action.
    acts: bool,
}

impl Log {
    fn new(site: &Site, visitor: &Visitor, asked: &Asked, order: &Order) -> Log {
        let mut about = asked.told(&order.key);
        about["filter"] = order.filter.told().into();
        Log {
            audit: Arc::clone(&site.guard.audit),
            visitor: visitor.clone(),
            about,
            acts: order.act.is_some(),
        }
    }

    fn write(&self, more: Value) {
        let mut about = self.about.clone();
        if let (true, Value::Object(about), Value::Object(more)) = (self.acts, &mut about, more) {
            about.extend(more);
            record(&self.audit, &self.visitor, "action", json!(about));
        }
    }

    fn begun(&self) {
        self.write(json!({ "outcome": "begun" }));
    }

    fn refused(&self, failure: &Failure) {
        self.write(json!({ "refused": failure.why() }));
    }

    fn ended(&self, end: &Value) {
        let mut more = json!({ "count": end["changed"], "outcome": end["state"] });
        if !end["why"].is_null() {
            more["refused"] = end["why"].clone();
        }
        self.write(more);
    }
}

fn order(asked: &Asked, key: &QueueKey) -> Result<Order, Failure> {
    let filter = asked.filter()?;
    let counts = asked.act == "count";
    if !counts && (filter.is_all() || !asked.named().is_empty()) {
        return Err(Failure::asked("Which jobs?"));
    }
    let act = match asked.act.as_str() {
        "count" => None,
        "kick" | "now" | "delete" | "cancel" | "move" => Some(asked.on_job()?),
        _ => return Err(Failure::asked("That is not done to all that match.")),
    };
    if filter.state.is_none() && !["count", "cancel"].contains(&asked.act.as_str()) {
        return Err(Failure::asked("Jobs of which state?"));
    }
    Ok(Order {
        key: key.clone(),
        filter,
        ids: asked.named(),
        act,
        foresees: match counts {
            true => asked.foresees.clone(),
            false => String::new(),
        },
    })
}

fn is_typed_if_it_must(asked: &Asked, key: &QueueKey) -> Result<(), Failure> {
    match asked.act.as_str() {
        "delete" | "cancel" => is_typed(asked, key),
        _ => Ok(()),
    }
}

pub async fn progress(State(site): Shared, Path(number): Path<u64>) -> Response {
    match site.tasks.find(number) {
        Some(task) => json_text(task.told().to_string()),
        None => unknown(),
    }
}

pub async fn stop(
    State(site): Shared,
    Extension(visitor): Extension<Visitor>,
    Path(number): Path<u64>,
) -> Response {
    let task = site.tasks.find(number);
    let counts = task.as_ref().is_some_and(|task| !task.acts());
    // Whoever may count may stop it, and neither is an action.
    let allowed = if counts { Ok(()) } else { may_act(&visitor) };
    let log = |word: &str, said: &str| {
        let told = json!({ "action": "stop", "task": number, word: said });
        if !counts {
            record(&site.guard.audit, &visitor, "action", told);
        }
    };
    if let Err(failure) = allowed {
        log("refused", failure.why());
        return failure.into_response();
    }
    let Some(task) = task else {
        return unknown();
    };
    task.stop();
    log("outcome", "stopping");
    json_text(task.told().to_string())
}

fn unknown() -> Response {
    Failure::Unknown("There is no such task any more.".to_owned()).into_response()
}
