//! How many workers a queue needs, as a number for KEDA's metrics-api scaler.

use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use dq_watch::model::row::Row;
use dq_watch::model::QueueKey;
use serde_json::{json, Value};

use super::site::{Shared, Site};
use crate::core::failure::Failure;
use crate::core::{scale, wire};
use crate::views;
use dq_serve::answer::json_text;

const AHEAD: &str = "60s";

pub async fn scale(State(site): Shared, RawQuery(query): RawQuery) -> Response {
    match wanted(&site, &query.unwrap_or_default()).await {
        Ok(wanted) => json_text(wanted.to_string()),
        Err(failure) => failure.into_response(),
    }
}

async fn wanted(site: &Site, query: &str) -> Result<Value, Failure> {
    let words = wire::query(query);
    let text = |name: &str, otherwise: &'static str| match words.get(name) {
        None => Some(otherwise.to_owned()),
        Some(bytes) => String::from_utf8(bytes.clone()).ok(),
    };
    let number = |name: &str, otherwise| text(name, otherwise)?.parse::<u32>().ok();
    let queue = words.get("queue").filter(|name| !name.is_empty());
    let queue = queue.ok_or_else(|| Failure::asked("Which queue?"))?;
    let db = number("db", "0").ok_or_else(|| Failure::asked("db: not a number"))?;
    let per = number("per", "0").ok_or_else(|| Failure::asked("per: not a number of jobs"))?;
    let ahead = text("ahead", AHEAD).and_then(|ahead| scale::span_ms(&ahead));
    let ahead = ahead.ok_or_else(|| Failure::asked("ahead: not a time such as 60s, 5m or 1h"))?;
    let key = QueueKey::new(db, queue.clone());
    site.board.shows(&key)?;
    let measured = site.board.reader.measured(&key);
    let each = scale::each(Some(per.into()), measured, ahead);
    let load = views::load(&site.board, &key, ahead).await?;
    let attended = views::attended(&site.board, &key).await?;
    let workers = scale::wanted(load, each, attended).ok_or_else(|| {
        let why = match site.board.reader.of_row(&key, Row::is_unseen) {
            Some(true) => "This cannot be measured: no job was seen reserved, as with NOACK.",
            _ => "None was measured yet.",
        };
        let asked = format!("How many jobs does a worker do in that time (per)? {why}");
        Failure::asked(&asked)
    })?;
    Ok(json!({
        "workers": workers,
        "ready": load.ready,
        "reserved": load.reserved,
        "coming": load.coming,
        "held": load.held,
        "attended": attended,
        "per": each,
        "ahead": ahead,
    }))
}
