//! Fetches jobs: never more than can be started at once.

use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Duration;

use dq_connect::link::PATIENCE;
use dq_connect::source::{Trouble, Wire};
use redis::{cmd, Cmd, ConnectionInfo, RedisResult, Value};
use tokio::time::{sleep, timeout};

use super::Queue;
use crate::hand::Job;
use crate::places::Places;

/// A fetch that found nothing ends after this time, so that a dead connection is noticed.
const WAIT: Duration = Duration::from_secs(10);
const PROBE: Duration = Duration::from_millis(100);
/// Jobs that are fetched at once, at most.
const AT_ONCE: usize = 1000;
const WITHDRAWAL: Duration = Duration::from_secs(2);
const BETWEEN_WITHDRAWALS: Duration = Duration::from_millis(50);

/// The connection that fetches, with its number on its server.
struct Line {
    wire: Wire,
    server: ConnectionInfo,
    client: i64,
}

impl Queue {
    pub(super) async fn keep_fetching(self: Arc<Queue>) {
        let mut troubles = 0;
        while !self.stop.is_set() {
            let Err(trouble) = self.fetch_by_one_connection(&mut troubles).await else {
                return;
            };
            tokio::select! {
                goes_on = self.goes_on(trouble, &mut troubles) => if !goes_on { return },
                () = self.stop.wait() => return,
            }
        }
    }

    async fn fetch_by_one_connection(self: &Arc<Queue>, troubles: &mut u32) -> Result<(), Trouble> {
        let (wire, server) = tokio::select! {
            connected = self.source.connect() => connected?,
            () = self.stop.wait() => return Ok(()),
        };
        let Value::Int(client) = self.source.ask(&wire, cmd("CLIENT").arg("ID")).await? else {
            return Err(Trouble::Passing(
                "unexpected answer to CLIENT ID".to_owned(),
            ));
        };
        let line = Line {
            wire,
            server,
            client,
        };
        self.metrics.up.store(true, Relaxed);
        loop {
            self.metrics.held.store(self.host.pace.is_open(), Relaxed);
            let taken = async {
                self.caller.alone.none().await;
                let most = self.host.pace.ready().await;
                let mut places = Places::take(&self.own, &self.host).await.ok()?;
                places.keep(most);
                Some(places)
            };
            let places = tokio::select! {
                biased;
                () = self.stop.wait() => return Ok(()),
                places = taken => places,
            };
            let Some(places) = places else { return Ok(()) };
            self.fetch(&line, places).await?;
            self.is_well();
            *troubles = 0;
        }
    }

    /// Fetches jobs; acknowledgements go in the same write.
    async fn fetch(self: &Arc<Queue>, line: &Line, mut places: Places) -> Result<(), Trouble> {
        let wire = &line.wire;
        let count = places.count().min(AT_ONCE);
        let ends = self.tell(wire, self.hand.take_done(AT_ONCE));
        let Some(turn) = self.host.turn() else {
            let (told, answer) =
                tokio::join!(ends, self.wait_for(line, self.bpop(count, self.wait())));
            self.start_all(answer?, places)?;
            return told;
        };
        let pop = self.command("DQ.POP", count, None);
        let (told, answer) = tokio::join!(ends, self.source.ask(wire, &pop));
        let answer = answer?;
        if answer.as_sequence().is_some_and(|jobs| !jobs.is_empty()) {
            self.start_all(answer, places)?;
            return told;
        }
        told?;
        let Some(place) = places.one() else {
            return Ok(());
        };
        drop(places);
        let answer = self.wait_for(line, self.bpop(1, turn)).await?;
        self.start_all(answer, place)
    }

    /// A stopped queue waits shortly, so that its recovery soon shows.
    fn wait(&self) -> Duration {
        match self.metrics.stopped.load(Relaxed) {
            true => PROBE,
            false => WAIT,
        }
    }

    fn bpop(&self, count: usize, wait: Duration) -> Cmd {
        self.command("DQ.BPOP", count, Some(wait.as_secs_f64()))
    }

    fn command(&self, name: &str, count: usize, wait_s: Option<f64>) -> Cmd {
        let mut command = cmd(name);
        command
            .arg(&self.config.name)
            .arg(wait_s)
            .arg("COUNT")
            .arg(count);
        command
            .arg("TTR")
            .arg(self.config.lease.as_millis() as u64)
            .arg("WITHDUE");
        command
    }

    async fn wait_for(&self, line: &Line, command: Cmd) -> Result<Value, Trouble> {
        let mut wire = line.wire.clone();
        let mut asked = pin!(command.query_async(&mut wire));
        let told = |answer: RedisResult<Value>| answer.map_err(|error| self.source.trouble(&error));
        tokio::select! {
            biased;
            answer = &mut asked => told(answer),
            () = sleep(WAIT + PATIENCE) => Err(Trouble::Passing("no answer to a fetch".to_owned())),
            () = self.stop.wait() => {
                let answered = async {
                    tokio::select! {
                        answer = &mut asked => told(answer),
                        () = self.withdraw(line) => Ok(Value::Nil),
                    }
                };
                let late = |_| Trouble::Passing("no answer to a fetch that was cancelled".to_owned());
                timeout(WITHDRAWAL, answered).await.map_err(late)?
            }
        }
    }

    /// Repeats it until the fetch answers: the server may not have seen the fetch yet, or holds it back during a
    /// failover. It goes to the server that numbered the connection: on another one the number is another client's.
    /// Returns if it is of no use; then the connection is closed.
    async fn withdraw(&self, line: &Line) {
        let mut unblock = cmd("DQ.UNBLOCK");
        unblock.arg(line.client);
        let mut control = None;
        loop {
            let asked = async {
                let wire = match control.take() {
                    Some(wire) => wire,
                    None => self.source.connect_to(&line.server).await?,
                };
                self.source.ask(&wire, &unblock).await?;
                Ok(wire)
            };
            match asked.await {
                Ok(wire) => control = Some(wire),
                Err(Trouble::Passing(_) | Trouble::Refused(_)) => {}
                Err(Trouble::Final(why) | Trouble::OfQueue(why)) => {
                    self.report(format!("DQ.UNBLOCK: {why}"), "the fetch is cut off");
                    return;
                }
            }
            sleep(BETWEEN_WITHDRAWALS).await;
        }
    }

    fn start_all(self: &Arc<Queue>, answer: Value, mut places: Places) -> Result<(), Trouble> {
        let jobs = jobs(answer)
            .ok_or_else(|| Trouble::Passing("unexpected answer to a fetch".to_owned()))?;
        for job in jobs {
            match places.one() {
                Some(place) if !self.stop.is_set() && self.caller.alone.is_none() => {
                    self.start(job, place)
                }
                _ => {
                    self.hand.refuse(Arc::new(job));
                    self.bell.notify_one();
                }
            }
        }
        Ok(())
    }
}

/// The jobs in the reply to POP, or to BPOP, which begins with the key.
fn jobs(answer: Value) -> Option<Vec<Job>> {
    let mut items = match answer {
        Value::Nil => return Some(Vec::new()),
        Value::Array(items) => items,
        _ => return None,
    };
    if matches!(items.first(), Some(Value::BulkString(_))) {
        match items.pop() {
            Some(Value::Array(jobs)) => items = jobs,
            _ => return None,
        }
    }
    items.into_iter().map(job).collect()
}

fn job(value: Value) -> Option<Job> {
    let Value::Array(fields) = value else {
        return None;
    };
    let fields: [Value; 6] = fields.try_into().ok()?;
    match fields {
        [Value::BulkString(id), Value::BulkString(payload), Value::BulkString(token), Value::Int(attempt), _, Value::Int(due)] => {
            Some(Job {
                id,
                token,
                payload: payload.into(),
                attempt: attempt.try_into().ok()?,
                due,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reply: &str) -> Option<Vec<Job>> {
        jobs(redis::parse_redis_value(reply.replace(' ', "\r\n").as_bytes()).unwrap())
    }

    #[test]
    fn answers_to_fetches() {
        const JOB: &str = "*6 $1 a $2 {} $3 123 :2 :99 :77 ";
        for (reply, count) in [
            ("*-1 ", 0),
            ("*0 ", 0),
            (&format!("*1 {JOB}"), 1),
            (&format!("*2 $1 q *2 {JOB}{JOB}"), 2),
        ] {
            let jobs = read(reply).expect(reply);
            assert_eq!(jobs.len(), count, "{reply}");
            for job in jobs {
                assert_eq!(
                    (
                        job.id.as_slice(),
                        job.token.as_slice(),
                        job.attempt,
                        job.due
                    ),
                    (&b"a"[..], &b"123"[..], 2, 77)
                );
            }
        }
        for strange in [
            ":1 ",
            "*1 :1 ",
            "*1 $1 q ",
            "*1 *5 $1 a $2 {} $3 123 :2 :99 ",
        ] {
            assert!(read(strange).is_none(), "{strange}");
        }
    }
}
