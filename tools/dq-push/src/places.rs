//! How many calls may run at a time: of a queue, and to a host.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::config::Config;
use crate::pace::Pace;

/// Within this time each queue of a host gets a place for a waiting fetch, while there are no jobs.
const ROUND: Duration = Duration::from_secs(1);
/// The shortest turn, however many queues there are: the server has to answer.
const SHORTEST_TURN: Duration = Duration::from_millis(10);

/// A host's limit, and how many queues share it.
#[derive(Clone)]
pub struct Host {
    pub pace: Arc<Pace>,
    limit: Option<(usize, Arc<Semaphore>)>,
    queues: usize,
}

impl Host {
    /// Makes the hosts. Calls still running under an earlier configuration count if a limit has not changed.
    pub fn all(config: &Config, before: &HashMap<String, Host>) -> HashMap<String, Host> {
        let mut hosts = HashMap::new();
        for queue in &config.queues {
            let name = &queue.host;
            let own = config.hosts.get(name).copied().unwrap_or_default();
            let limit = own.concurrency.or(config.every_host.concurrency);
            let rate = own.rate.or(config.every_host.rate);
            let host = hosts.entry(name.clone()).or_insert_with(|| Host {
                pace: Arc::new(Pace::new(name, rate, config.breaker)),
                limit: limit.map(|limit| (limit, places(limit, before.get(name)))),
                queues: 0,
            });
            host.queues += 1;
        }
        hosts
    }

    /// If several queues share the host's limit: how long one of them may wait for a job, holding one place.
    pub fn turn(&self) -> Option<Duration> {
        let (limit, _) = self.limit.as_ref().filter(|_| self.queues > 1)?;
        let turn = ROUND.mul_f64(*limit as f64 / self.queues as f64);
        Some(turn.clamp(SHORTEST_TURN, ROUND))
    }
}

/// Places for calls, taken before their jobs are fetched.
pub struct Places {
    own: OwnedSemaphorePermit,
    host: Option<OwnedSemaphorePermit>,
}

impl Places {
    /// Takes all places that are free, and waits for at least one.
    pub async fn take(own: &Arc<Semaphore>, host: &Host) -> Result<Places, AcquireError> {
        let mut own = all_free(own).await?;
        let host = match &host.limit {
            None => None,
            Some((_, limit)) => {
                let mut permit = all_free(limit).await?;
                let (ours, theirs) = (own.num_permits(), permit.num_permits());
                drop(own.split(ours.saturating_sub(theirs)));
                drop(permit.split(theirs.saturating_sub(ours)));
                Some(permit)
            }
        };
        Ok(Places { own, host })
    }

    pub fn count(&self) -> usize {
        self.own.num_permits()
    }

    pub fn keep(&mut self, most: usize) {
        let excess = self.count().saturating_sub(most);
        drop(self.own.split(excess));
        if let Some(host) = &mut self.host {
            drop(host.split(excess));
        }
    }

    /// Splits off one place; None if none is left.
    pub fn one(&mut self) -> Option<Places> {
        Some(Places {
            own: self.own.split(1)?,
            host: match &mut self.host {
                Some(host) => Some(host.split(1)?),
                None => None,
            },
        })
    }
}

fn places(limit: usize, before: Option<&Host>) -> Arc<Semaphore> {
    match before.and_then(|host| host.limit.as_ref()) {
        Some((same, places)) if *same == limit => Arc::clone(places),
        _ => Arc::new(Semaphore::new(limit)),
    }
}

async fn all_free(places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, AcquireError> {
    let mut permit = Arc::clone(places).acquire_owned().await?;
    let more = u32::try_from(places.available_permits()).unwrap_or(0);
    // Other queues may be faster: then one place is enough.
    if let Ok(more) = Arc::clone(places).try_acquire_many_owned(more) {
        permit.merge(more);
    }
    Ok(permit)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn hosts(lines: &str) -> HashMap<String, Host> {
        let queue = |name: &str, host: &str| {
            format!("[[http.queue]]\nname = \"{name}\"\nurl = \"http://{host}/\"\n")
        };
        let text = format!(
            "{lines}\n{}{}{}",
            queue("a", "one.com"),
            queue("b", "One.com:81"),
            queue("c", "two.com")
        );
        let config = Config::parse(&text, |_| None).unwrap_or_else(|why| panic!("{why}"));
        Host::all(&config, &HashMap::new())
    }

    #[tokio::test]
    async fn a_host_holds_its_queues_back_together() {
        let hosts = hosts("http.host-concurrency = 7\nhttp.hosts = { \"ONE.com\" = 3 }");
        assert!(hosts["one.com"].turn().is_some() && hosts["two.com"].turn().is_none());
        let own = Arc::new(Semaphore::new(5));
        let mut first = Places::take(&own, &hosts["one.com"]).await.unwrap();
        assert_eq!((first.count(), own.available_permits()), (3, 2));
        let other = Arc::new(Semaphore::new(5));
        {
            let mut waits = Box::pin(Places::take(&other, &hosts["one.com"]));
            assert!((&mut waits).now_or_never().is_none(), "all are taken");
            drop(first.one());
            assert_eq!(waits.await.unwrap().count(), 1);
        }
        assert_eq!(
            Places::take(&other, &hosts["two.com"])
                .await
                .unwrap()
                .count(),
            5
        );
        assert!(first.one().is_some() && first.one().is_some() && first.one().is_none());
    }

    #[test]
    fn all_queues_of_a_host_have_their_turn_in_a_second() {
        let turn_ms = |limit, queues| {
            let limit = Some((limit, Arc::new(Semaphore::new(limit))));
            let pace = Arc::new(Pace::new("a", None, None));
            let host = Host {
                pace,
                limit,
                queues,
            };
            host.turn().map(|turn| turn.as_millis())
        };
        assert_eq!(turn_ms(1, 1), None);
        assert_eq!(turn_ms(1, 20), Some(50));
        assert_eq!(turn_ms(10, 40), Some(250));
        assert_eq!((turn_ms(5, 2), turn_ms(1, 1000)), (Some(1000), Some(10)));
    }

    #[tokio::test]
    async fn without_a_limit_the_queue_alone_counts() {
        let hosts = hosts("");
        assert_eq!(hosts["one.com"].turn(), None);
        let own = Arc::new(Semaphore::new(5));
        assert_eq!(
            Places::take(&own, &hosts["one.com"]).await.unwrap().count(),
            5
        );
    }
}
