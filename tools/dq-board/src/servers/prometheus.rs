//! A queue's history from Prometheus, with the metric names of tools/metrics.

use axum::body::Bytes;
use dq_watch::model::QueueKey;
use hyper::header::HeaderMap;
use hyper::{Method, Uri};
use serde::Deserialize;

use crate::core::history::{Parts, Rates};
use crate::core::wire;
use crate::web::Web;

/// A shorter time may have too few scrapes for a rate.
const SHORTEST_MS: i64 = 60_000;

#[derive(Clone)]
pub struct Source {
    /// Without a slash at its end.
    pub url: String,
    /// More matchers, such as `instance="10.0.0.5:9121"`.
    pub labels: String,
    pub headers: HeaderMap,
}

#[derive(Clone)]
pub struct Prometheus {
    pub web: Web,
    pub source: Source,
}

#[derive(Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    /// Pairs of seconds and a number as text.
    values: Vec<(f64, String)>,
}

impl Prometheus {
    /// Fills the parts that are before now.
    pub async fn past(&self, key: &QueueKey, parts: Parts) -> Result<Parts, String> {
        let Ok(name) = std::str::from_utf8(&key.name) else {
            return Ok(parts);
        };
        let labels = match self.source.labels.as_str() {
            "" => String::new(),
            more => format!(",{more}"),
        };
        let of = |metric: &str| format!("{metric}{{queue={}{labels}}}", quoted(name));
        let (from_ms, each_ms) = (parts.range_ms().0, parts.part_ms());
        let window = format!("[{}ms]", each_ms.max(SHORTEST_MS));
        let grown = |total: &str| format!("sum(rate({}{window}))", of(total));
        let delivered = grown("dq_queue_delivered_total");
        let failed = format!(
            "{} + {}",
            grown("dq_queue_nacked_total"),
            grown("dq_queue_timed_out_total")
        );
        let buckets = of("dq_queue_lateness_us_bucket");
        let late = format!("histogram_quantile(0.99, sum by (le) (rate({buckets}{window})))");
        // Within a bucket Prometheus guesses.
        let latest = of("dq_queue_lateness_us_max");
        let latest = format!("max(max_over_time({latest}{window}))");
        let count = parts.known.len();
        let ask = |query: String| self.ask(query, from_ms, each_ms, count);
        let (delivered, failed, late_us, latest_us) =
            futures_util::try_join!(ask(delivered), ask(failed), ask(late), ask(latest))?;
        Ok(parts.of_rates(Rates {
            delivered,
            failed,
            late_us,
            latest_us,
        }))
    }

    /// Asks for a value at the end of each part; None where there is none.
    async fn ask(
        &self,
        query: String,
        from_ms: i64,
        each_ms: i64,
        count: usize,
    ) -> Result<Vec<Option<f64>>, String> {
        let mut values = vec![None; count];
        if count == 0 {
            return Ok(values);
        }
        let seconds = |ms: i64| ms as f64 / 1000.0;
        let (first, step) = (seconds(from_ms + each_ms), seconds(each_ms));
        let last = seconds(from_ms + each_ms * count as i64);
        let url = format!(
            "{}/api/v1/query_range?query={}&start={first:.3}&end={last:.3}&step={step:.3}",
            self.source.url,
            wire::encoded(query.as_bytes())
        );
        let url: Uri = url
            .parse()
            .map_err(|_| format!("Prometheus: no URL: {url}"))?;
        let asking = self
            .web
            .ask(Method::GET, &url, &self.source.headers, Bytes::new());
        let said = asking
            .await
            .map_err(|error| format!("Prometheus: {error}"))?;
        let answer: Answer = serde_json::from_slice(&said)
            .map_err(|_| "Prometheus: an answer that is not one of query_range".to_owned())?;
        for (at, value) in answer
            .data
            .result
            .into_iter()
            .flat_map(|series| series.values)
        {
            let index = ((at - first) / step).round();
            let value = value.parse::<f64>().ok().filter(|value| !value.is_nan());
            if (0.0..count as f64).contains(&index) && value.is_some() {
                values[index as usize] = value;
            }
        }
        Ok(values)
    }
}

/// Quotes a string for PromQL.
fn quoted(name: &str) -> String {
    let mut text = String::from('"');
    for letter in name.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_its_string() {
        assert_eq!(quoted("orders"), r#""orders""#);
        assert_eq!(quoted("a\"} or b{x=\"\\"), r#""a\"} or b{x=\"\\""#);
        assert_eq!(quoted("a\nb"), r#""a\nb""#);
    }
}
