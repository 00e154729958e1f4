//! Actions on all jobs that a filter means.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::Extension;
use dq_watch::model::QueueKey;
use dq_watch::read::acts::Act;
use dq_watch::read::detail::State as JobState;
use serde_json::{json, Value};

use super::act::{is_typed, may_act, read, Asked};
use super::answer::json_text;
use super::api::Shared;
use crate::core::access::Visitor;
use crate::core::failure::Failure;
use crate::core::filter::Filter;
use crate::core::wire;
use crate::tasks::Order;

/// Those who may only look may count.
pub async fn begin(
    State(site): Shared,
    Extension(visitor): Extension<Visitor>,
    body: Bytes,
) -> Response {
    let begun = read(&body).and_then(|(asked, key)| {
        let order = order(&asked, &key)?;
        site.board.shows(&key)?;
        if order.act.is_some() {
            may_act(&visitor)?;
            asked.is_shown(&site.board, &key)?;
            is_typed_if_it_must(&asked, &key)?;
        }
        let told = log(&site, &visitor, &asked, &order);
        site.tasks.begin(order, told)
    });
    match begun {
        Ok(number) => json_text(json!({ "task": number }).to_string()),
        Err(failure) => failure.into_response(),
    }
}

/// Counting is no action.
fn log(
    site: &super::api::Site,
    visitor: &Visitor,
    asked: &Asked,
    order: &Order,
) -> impl FnOnce(&Value) + Send + 'static {
    let mut about = asked.told(&order.key);
    about["filter"] = order.filter.told().into();
    let acts = order.act.is_some();
    let (audit, visitor) = (std::sync::Arc::clone(&site.guard.audit), visitor.clone());
    if acts {
        let mut begun = about.clone();
        begun["outcome"] = "begun".into();
        audit.visitor(&visitor, "action", begun);
    }
    move |end| {
        if acts {
            (about["count"], about["outcome"]) = (end["changed"].clone(), end["state"].clone());
            if !end["why"].is_null() {
                about["refused"] = end["why"].clone();
            }
            audit.visitor(&visitor, "action", about);
        }
    }
}

fn order(asked: &Asked, key: &QueueKey) -> Result<Order, Failure> {
    let words = wire::query(&asked.filter);
    let filter = Filter::of(|name| words.get(name).map_or(&[], Vec::as_slice));
    let filter = filter.ok_or_else(|| Failure::asked("This is not a filter."))?;
    if filter.is_all() && asked.act != "count" {
        return Err(Failure::asked("Which jobs?"));
    }
    let id = Vec::new;
    let act = match asked.act.as_str() {
        "count" => None,
        "kick" => Some(Act::Kick { id: id() }),
        "now" => Some(Act::Reschedule {
            id: id(),
            delay_ms: 0,
        }),
        // What a worker got in between stays with it.
        "delete" if filter.state != Some(JobState::Reserved) => Some(Act::Cancel { id: id() }),
        "delete" => Some(Act::Delete { id: id() }),
        "cancel" => Some(Act::Cancel { id: id() }),
        "move" => Some(asked.one("")?),
        _ => return Err(Failure::asked("That is not done to all that match.")),
    };
    Ok(Order {
        key: key.clone(),
        filter,
        act,
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
    if let Err(failure) = may_act(&visitor) {
        return failure.into_response();
    }
    match site.tasks.find(number) {
        Some(task) => {
            task.stop();
            json_text(task.told().to_string())
        }
        None => unknown(),
    }
}

fn unknown() -> Response {
    Failure::Unknown("There is no such task any more.".to_owned()).into_response()
}
