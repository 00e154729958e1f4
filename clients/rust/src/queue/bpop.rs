//! Waits for jobs, on a connection of its own.

use super::options::Pop;
use super::records::Reserved;
use super::waits::UNBLOCK_AGAIN;
use super::Queue;
use crate::connect::{silent, Waiter};
use crate::error::Error;
use crate::server::{answer, Server};
use crate::values::{self, seconds};
use redis::{cmd, Cmd, Pipeline, RedisError, Value};
use std::pin::pin;
use std::time::Duration;
use tokio::sync::oneshot;

const SLACK: Duration = Duration::from_secs(5);

impl Queue {
    /// Waits for ready jobs for up to `timeout` (zero: without limit), on a connection of its own. If the future is
    /// dropped meanwhile, a job that was just delivered is given back. It does not work with a sharded queue in a
    /// cluster.
    pub async fn bpop(&self, timeout: Duration, options: Pop) -> Result<Vec<Reserved>, Error> {
        options.check()?;
        let mut bpop = cmd("DQ.BPOP");
        self.keys().iter().for_each(|key| _ = bpop.arg(&**key));
        options.words(bpop.arg(seconds(timeout)));
        let connection = self.server().connect(&self.keys()[0]).await?;
        let (answers, answered) = oneshot::channel();
        let patience = if timeout.is_zero() {
            Duration::MAX
        } else {
            timeout + SLACK
        };
        tokio::spawn(wait_for_jobs(
            self.server().clone(),
            Waiter::new(connection).await,
            bpop.clone(),
            patience,
            answers,
        ));
        let reply = answered
            .await
            .map_err(|_| Error::Connection("the wait was aborted".into()))??;
        Ok(reserved(answer(&bpop, reply)?))
    }
}

fn reserved(reply: Value) -> Vec<Reserved> {
    let mut pair = values::list(reply).into_iter();
    let key = pair.next().and_then(values::bytes).unwrap_or_default();
    let rows = pair.next().map(values::list).unwrap_or_default();
    rows.into_iter()
        .filter_map(|row| Reserved::of(&key, row))
        .collect()
}

/// Waits for jobs. If the caller drops its future, the wait is ended, and jobs that were delivered are given back.
async fn wait_for_jobs(
    server: Server,
    waiter: Waiter,
    bpop: Cmd,
    patience: Duration,
    mut answers: oneshot::Sender<Result<Value, RedisError>>,
) {
    let mut connection = waiter.connection.clone();
    let mut pipe = Pipeline::with_capacity(1);
    pipe.add_command(bpop);
    let mut waiting = pin!(async {
        match tokio::time::timeout(patience, connection.send_packed_commands(&pipe, 0, 1)).await {
            Ok(replies) => replies.map(|mut replies| replies.pop().unwrap_or(Value::Nil)),
            Err(_) => Err(silent()),
        }
    });
    let reply = tokio::select! {
        biased;
        reply = &mut waiting => reply,
        () = answers.closed() => {
            let unblocking = async {
                while waiter.unblock().await {
                    tokio::time::sleep(UNBLOCK_AGAIN).await;
                }
                Err(silent())
            };
            let ended = async {
                tokio::select! { reply = &mut waiting => reply, refused = unblocking => refused }
            };
            tokio::time::timeout(SLACK, ended).await.unwrap_or_else(|_| Err(silent()))
        }
    };
    let Err(Ok(unread)) = answers.send(reply) else {
        return;
    };
    for job in reserved(unread) {
        let mut nack = cmd("DQ.NACK");
        nack.arg(&job.queue)
            .arg(&job.id_bytes)
            .arg("TOKEN")
            .arg(job.token.unwrap_or_default())
            .arg("SILENT");
        _ = server.ask(job.queue.as_bytes(), &nack).await;
    }
}
