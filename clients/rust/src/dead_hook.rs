//! Calls the hook of dead jobs, in a thread of its own: all else goes on whatever it does.

use crate::core::trouble::trouble_wait;
use crate::core::Delivered;
use crate::deaths::{is_final, Death, Finder, Place};
use crate::error::Error;
use crate::guard::{catch, log};
use crate::hooks::Hooks;
use crate::queue::job_info::JobInfo;
use crate::queue::records::State;
use crate::source::Source;
use crate::values::instant_ms;
use redis::cmd;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{channel, Receiver, Sender};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// How many deaths wait for the hook. Only their ids do: payloads may be large.
const MOST: usize = 1000;

/// The keys of a link, and their queues.
type Keys = Vec<(Arc<[u8]>, Arc<Source>)>;

pub(crate) struct DeadHook {
    list: Sender<Death>,
    /// Of each link.
    places: Vec<Vec<Arc<Place>>>,
    finders: JoinSet<()>,
    /// Ends with the thread that calls.
    calling: oneshot::Receiver<()>,
    /// Dropped: the thread ends, if the hook does not block it.
    leave: oneshot::Sender<()>,
}

impl DeadHook {
    /// `keys`: of each link. `every`: how often to look for deaths; `None`: never.
    pub fn start(
        hooks: &[Hooks],
        keys: Vec<Keys>,
        every: Option<Duration>,
        handlers: &Handle,
    ) -> Option<Self> {
        let hooks: Vec<Hooks> = hooks
            .iter()
            .filter(|it| it.hear_deaths())
            .cloned()
            .collect();
        if hooks.is_empty() {
            return None;
        }
        let (list, died) = channel(MOST);
        let (mut finders, is_said) = (JoinSet::new(), Arc::default());
        let mut of_link = |keys: Keys| {
            let server = keys.first().map(|(_, source)| source.server.anew());
            let place = |(key, source)| {
                let place = Place::new(key, source, Arc::clone(&is_said));
                if let (Some(every), Some(server)) = (every, &server) {
                    let finder = Finder::new(place.clone(), server.clone(), every, list.clone());
                    finders.spawn(finder.run());
                }
                place
            };
            keys.into_iter().map(place).collect()
        };
        let places = keys.into_iter().map(&mut of_link).collect();
        let ((leave, left), (ended, calling)) = (oneshot::channel(), oneshot::channel());
        let handlers = handlers.clone();
        let work = move || {
            let call = async {
                tokio::select! {
                    biased;
                    _ = left => {}
                    () = call_all(hooks, died) => {}
                }
            };
            _ = catch(|| handlers.block_on(call)); // the handlers' runtime may be over
            _ = ended.send(());
        };
        if let Err(error) = std::thread::Builder::new()
            .name("dq-dead".into())
            .spawn(work)
        {
            log!(error, %error, "no thread for the hook of dead jobs: it is not called");
        }
        Some(DeadHook {
            list,
            places,
            finders,
            calling,
            leave,
        })
    }

    /// An answer said that the job is dead, or may be. An occurrence of a recurring one is a dead job of its own.
    pub fn answered(&self, link: usize, of: &Delivered) {
        let Some(place) = self.places[link].iter().find(|it| it.key == of.job.key) else {
            return;
        };
        let occurrence = format!("@{}", of.due_ms);
        let death = Death {
            place: place.clone(),
            ids: vec![
                [&of.job.id, occurrence.as_bytes()].concat(),
                of.job.id.to_vec(),
            ],
            at: None,
            is_any: true,
        };
        if self.list.try_send(death).is_err() {
            place.is_short();
        }
    }

    /// Waits until the hook has been called for all that wait, at most until then, or until a second stop.
    pub async fn end(self, by: Instant, second: impl Future<Output = ()>) {
        let DeadHook {
            list,
            finders,
            mut calling,
            leave,
            ..
        } = self;
        drop((list, finders));
        let by = tokio::time::sleep_until(by.into());
        tokio::select! {
            biased;
            _ = &mut calling => return,
            () = by => {}
            () = second => {}
        }
        drop(leave);
        log!(
            warn,
            "stopped without the hook of dead jobs: it has not ended, and is called no more"
        );
    }
}

async fn call_all(hooks: Vec<Hooks>, mut died: Receiver<Death>) {
    while let Some(death) = died.recv().await {
        let job = match record(&death).await {
            Ok(Some(job)) => job,
            Ok(None) => continue,
            Err(error) => {
                death.place.refused(&error);
                continue;
            }
        };
        let name = &death.place.source.name;
        if let Some((last, others)) = hooks.split_last() {
            for each in others {
                each.died(name, job.clone()).await;
            }
            last.died(name, job).await;
        }
    }
}

/// The job, right before the hook is called. `None`: it is dead no more, or the hook was called.
async fn record(death: &Death) -> Result<Option<JobInfo>, Error> {
    let place = &death.place;
    if death
        .at
        .is_some_and(|at| place.is_called(&death.ids[0], at))
    {
        return Ok(None);
    }
    if !death.is_any {
        let dead = dead(place, &death.ids[0], Some(0)).await?;
        if !dead.is_some_and(|job| is_by_time(&job.reason.unwrap_or_default())) {
            return Ok(None);
        }
    }
    for id in &death.ids {
        if let Some(job) = dead(place, id, None).await? {
            let at = job.failed.map_or(0, instant_ms) as i64;
            return Ok(Some(job).filter(|_| place.claim(id, at)));
        }
    }
    Ok(None)
}

/// The job, if it is dead. While the server is not there, it waits.
async fn dead(place: &Place, id: &[u8], prefix: Option<usize>) -> Result<Option<JobInfo>, Error> {
    let mut get = cmd("DQ.GET");
    get.arg(&*place.key).arg(id);
    if let Some(bytes) = prefix {
        get.arg("PREFIX").arg(bytes);
    }
    let mut troubles = 0;
    loop {
        match place.source.server.ask(&place.key, &get).await {
            Ok(reply) => return Ok(JobInfo::read(reply).filter(|job| job.state == State::Dead)),
            Err(error) if is_final(&error) => return Err(error),
            Err(_) => troubles += 1,
        }
        tokio::time::sleep(trouble_wait(troubles, 0.0)).await;
    }
}

/// Whether this is a reason of the server. All others were said in a NACK, whose sender heard of the death.
fn is_by_time(reason: &str) -> bool {
    let ends = [": dead", ": deleted", ": expired"];
    reason == "lease ended"
        || reason.starts_with("after ") && ends.iter().any(|end| reason.ends_with(end))
}
