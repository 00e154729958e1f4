//! The methods of one group of a queue.

use crate::args::Args;
use dq_redis::{Error, GroupSettings, GroupStats, Queue, Rate};
use serde_json::{json, Value};

pub async fn call(queue: &Queue, method: &str, a: &Args<'_>) -> Result<Option<Value>, Error> {
    let group = queue.group(a.text("group"));
    Ok(Some(match method {
        "group_set" => {
            let rate = a.lengths("rate").map(|pair| Rate {
                jobs: pair[0].as_millis() as u32,
                window: pair[1],
            });
            let (weight, max, maxlen) = (a.number("weight"), a.number("max"), a.number("maxlen"));
            let settings = GroupSettings {
                weight,
                max,
                rate,
                maxlen,
            };
            json!(group.set(settings).await?)
        }
        "group_clear" => json!(group.clear().await?),
        "group_pause" => json!(group.pause(a.length("duration")).await?),
        "group_resume" => json!(group.resume().await?),
        "group_stats" => group.stats().await?.map_or(Value::Null, shown),
        _ => return Ok(None),
    }))
}

fn shown(stats: GroupStats) -> Value {
    let of = stats.settings;
    let rate = of
        .rate
        .map(|rate| json!([rate.jobs, rate.window.as_millis() as u64]));
    json!({
        "weight": of.weight, "max": of.max, "rate": rate, "maxlen": of.maxlen, "paused": stats.paused,
        "waiting": stats.waiting, "reserved": stats.reserved, "rate_used": stats.rate_used,
    })
}
