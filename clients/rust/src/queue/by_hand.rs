//! Commands for programs that handle jobs without a [`Worker`](crate::Worker), which does all of this.

use super::options::{Nack, Pop, Reschedule};
use super::records::{Reserved, State};
use super::said::{corrected, Said};
use super::{duration, instant, Queue};
use crate::bounds;
use crate::error::Error;
use crate::result::encode;
use crate::values;
use redis::{cmd, Cmd, Value};
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The parts of a command for many jobs of one key: ids, tokens, values.
type Tokens<'a, T> = Vec<(&'a [u8], &'a str, T)>;

impl Queue {
    /// Takes up to `count` ready jobs of each shard, without waiting.
    pub async fn pop(&self, options: Pop) -> Result<Vec<Reserved>, Error> {
        options.check()?;
        let keys: Vec<Arc<[u8]>> = match &options.id {
            Some(id) => vec![self.key(id).clone()],
            None => self.keys().to_vec(),
        };
        let commands = keys.iter().map(|key| {
            let mut pop = cmd("DQ.POP");
            options.words(pop.arg(&**key));
            (key.clone(), pop)
        });
        let mut found = Vec::new();
        for (key, reply) in keys.iter().zip(self.all(commands.collect()).await?) {
            let rows = match options.id {
                Some(_) => vec![reply],
                None => values::list(reply),
            };
            found.extend(rows.into_iter().filter_map(|row| Reserved::of(key, row)));
        }
        Ok(found)
    }

    /// Marks a job as done. False if the token is not the job's current one: another worker has the job, or it is
    /// gone.
    pub async fn ack(&self, id: impl AsRef<[u8]>, token: &str) -> Result<bool, Error> {
        Ok(self.ack_many([(id, token)]).await? == 1)
    }

    /// Marks a job as done, with a result. False as for [`Queue::ack`].
    pub async fn ack_with<R: Serialize + ?Sized>(
        &self,
        id: impl AsRef<[u8]>,
        token: &str,
        result: &R,
    ) -> Result<bool, Error> {
        let id = id.as_ref();
        let mut ack = cmd("DQ.ACK");
        ack.arg(&**self.key(id))
            .arg("RESULTS")
            .arg("IDS")
            .arg(1)
            .arg(id)
            .arg(token)
            .arg(encode(result)?.unwrap_or_default());
        Ok(acked(self.ask(id, &ack).await?) == 1)
    }

    /// Marks jobs as done, by their ids and tokens, and returns how many were.
    pub async fn ack_many<I: AsRef<[u8]>>(
        &self,
        jobs: impl IntoIterator<Item = (I, &str)>,
    ) -> Result<u64, Error> {
        let jobs: Vec<(I, &str)> = jobs.into_iter().collect();
        let commands = self.tokens(&jobs).into_iter().map(|(key, group)| {
            let mut ack = cmd("DQ.ACK");
            ack.arg(&*key).arg("WITHTOKENS").arg("IDS").arg(group.len());
            group
                .iter()
                .for_each(|(id, token, _)| _ = ack.arg(id).arg(token));
            (key, ack)
        });
        let replies = self.all(commands.collect()).await?;
        Ok(replies.into_iter().map(acked).sum())
    }

    /// Gives a job back, and returns its new state; `None` if the token is not the job's current one.
    pub async fn nack(
        &self,
        id: impl AsRef<[u8]>,
        token: &str,
        options: Nack,
    ) -> Result<Option<State>, Error> {
        options.check()?;
        let id = id.as_ref();
        let mut nack = cmd("DQ.NACK");
        options.words(nack.arg(&**self.key(id)).arg(id).arg("TOKEN").arg(token));
        Ok(state(self.ask(id, &nack).await?))
    }

    /// Gives jobs back, by their ids and tokens, and returns their new states in the same order.
    pub async fn nack_many<I: AsRef<[u8]>>(
        &self,
        jobs: impl IntoIterator<Item = (I, &str)>,
        options: Nack,
    ) -> Result<Vec<Option<State>>, Error> {
        options.check()?;
        let replies = self
            .many("DQ.NACK", jobs, |words| options.words(words))
            .await?;
        Ok(replies.into_iter().map(state).collect())
    }

    /// Renews a lease: it lasts `ttr` from now, without one as long as the last one. Returns when the lease expires;
    /// `None` if the token is not the job's current one.
    pub async fn touch(
        &self,
        id: impl AsRef<[u8]>,
        token: &str,
        ttr: Option<Duration>,
    ) -> Result<Option<SystemTime>, Error> {
        bounds::lengths([("ttr", ttr, 1)])?;
        let id = id.as_ref();
        let mut touch = cmd("DQ.TOUCH");
        duration(
            touch.arg(&**self.key(id)).arg(id).arg("TOKEN").arg(token),
            "TTR",
            ttr,
        );
        Ok(values::instant(&self.ask(id, &touch).await?))
    }

    corrected!(queue);

    async fn correct(&self, id: &[u8], token: &str, said: Said) -> Result<bool, Error> {
        said.check()?;
        let mut touch = cmd("DQ.TOUCH");
        touch.arg(&**self.key(id)).arg(id).arg("TOKEN").arg(token);
        said.words(&mut touch);
        Ok(self.ask(id, &touch).await? != Value::Nil)
    }

    /// Renews the leases of many jobs, by their ids and tokens, as [`Queue::touch`] does. Returns when they expire,
    /// in the same order.
    pub async fn touch_many<I: AsRef<[u8]>>(
        &self,
        jobs: impl IntoIterator<Item = (I, &str)>,
        ttr: Option<Duration>,
    ) -> Result<Vec<Option<SystemTime>>, Error> {
        bounds::lengths([("ttr", ttr, 1)])?;
        let replies = self
            .many("DQ.TOUCH", jobs, |words| duration(words, "TTR", ttr))
            .await?;
        Ok(replies.iter().map(values::instant).collect())
    }

    fn tokens<'a, I: AsRef<[u8]>>(
        &self,
        jobs: &'a [(I, &'a str)],
    ) -> Vec<(Arc<[u8]>, Tokens<'a, usize>)> {
        let groups = self.by_key(jobs.iter().map(|(id, _)| id));
        let of = |(at, _): (usize, Vec<u8>)| (jobs[at].0.as_ref(), jobs[at].1, at);
        groups
            .into_iter()
            .map(|(key, group)| (key, group.into_iter().map(of).collect()))
            .collect()
    }

    async fn many<I: AsRef<[u8]>>(
        &self,
        command: &str,
        jobs: impl IntoIterator<Item = (I, &str)>,
        options: impl Fn(&mut Cmd),
    ) -> Result<Vec<Value>, Error> {
        let jobs: Vec<(I, &str)> = jobs.into_iter().collect();
        let groups = self.tokens(&jobs);
        let commands = groups.iter().map(|(key, group)| {
            let mut words = cmd(command);
            words.arg(&**key).arg("IDS").arg(group.len());
            group
                .iter()
                .for_each(|(id, token, _)| _ = words.arg(id).arg(token));
            options(&mut words);
            (key.clone(), words)
        });
        let replies = self.all(commands.collect()).await?;
        let mut found = vec![Value::Nil; jobs.len()];
        for ((_, group), reply) in groups.iter().zip(replies) {
            for ((_, _, at), value) in group.iter().zip(values::list(reply)) {
                found[*at] = value;
            }
        }
        Ok(found)
    }

    /// Keeps a step with a reserved job. False if the token is not the job's current one.
    pub async fn step(
        &self,
        id: impl AsRef<[u8]>,
        token: &str,
        name: &str,
        value: &[u8],
    ) -> Result<bool, Error> {
        let id = id.as_ref();
        let mut step = cmd("DQ.STEP");
        step.arg(&**self.key(id))
            .arg(id)
            .arg(token)
            .arg(name)
            .arg(value);
        Ok(values::int(&self.ask(id, &step).await?) == 1)
    }

    /// Sends a signal to a job, which wakes the job if it waits for it. `Some(true)`: it was sent now; `Some(false)`:
    /// it was sent before, and its first value stays; `None`: the job does not exist or has ended.
    pub async fn signal<V: Serialize + ?Sized>(
        &self,
        id: impl AsRef<[u8]>,
        name: &str,
        value: &V,
    ) -> Result<Option<bool>, Error> {
        let id = id.as_ref();
        let mut signal = cmd("DQ.SIGNAL");
        signal.arg(&**self.key(id)).arg(id).arg(name);
        if let Some(value) = encode(value)? {
            signal.arg(value);
        }
        match self.ask(id, &signal).await? {
            Value::Nil => Ok(None),
            reply => Ok(Some(values::int(&reply) == 1)),
        }
    }

    /// Removes a job, in any state; a handler that works on it is told. False if the job did not exist.
    pub async fn cancel(&self, id: impl AsRef<[u8]>) -> Result<bool, Error> {
        Ok(self.delete([id]).await? == 1)
    }

    /// Removes jobs, in any state, and returns how many it removed.
    pub async fn delete<I: AsRef<[u8]>>(
        &self,
        ids: impl IntoIterator<Item = I>,
    ) -> Result<u64, Error> {
        self.count("DQ.DEL", ids, |_| {}).await
    }

    /// Removes jobs that no worker has: reserved jobs stay. Returns how many it removed.
    pub async fn delete_unreserved<I: AsRef<[u8]>>(
        &self,
        ids: impl IntoIterator<Item = I>,
    ) -> Result<u64, Error> {
        self.count("DQ.DEL", ids, |words| _ = words.arg("UNRESERVED"))
            .await
    }

    /// Gives delayed or ready jobs another due time, another priority, or both. Returns how many jobs it found.
    pub async fn reschedule<I: AsRef<[u8]>>(
        &self,
        ids: impl IntoIterator<Item = I>,
        change: Reschedule,
    ) -> Result<u64, Error> {
        change.check()?;
        let before = |words: &mut Cmd| {
            duration(words, "DELAY", change.delay);
            instant(words, "AT", change.at);
            if let Some(priority) = change.priority {
                words.arg("PRIORITY").arg(priority);
            }
        };
        self.count("DQ.RESCHEDULE", ids, before).await
    }

    /// Makes dead, done or blocked jobs ready again, and returns how many. A done job loses its result.
    pub async fn kick<I: AsRef<[u8]>>(
        &self,
        ids: impl IntoIterator<Item = I>,
    ) -> Result<u64, Error> {
        self.count("DQ.KICK", ids, |_| {}).await
    }

    /// Makes the `count` jobs of each shard that have been dead longest ready again, and returns how many.
    pub async fn kick_oldest(&self, count: usize) -> Result<u64, Error> {
        self.sum("DQ.KICK", |words| _ = words.arg("COUNT").arg(count))
            .await
    }

    /// Removes all jobs in a state, and returns how many.
    pub async fn purge(&self, state: State) -> Result<u64, Error> {
        self.sum("DQ.PURGE", |words| _ = words.arg(state.word()))
            .await
    }

    /// Stops deliveries for a time, or (`None`) until [`Queue::resume`].
    pub async fn pause(&self, length: Option<Duration>) -> Result<(), Error> {
        bounds::lengths([("length", length, 1)])?;
        let pause = |words: &mut Cmd| {
            if let Some(length) = length {
                words.arg(values::ms(length));
            }
        };
        self.each("DQ.PAUSE", pause).await.map(|_| ())
    }

    /// Ends the waits of these connections of the same user, by their `CLIENT ID` on the server that has the queue (the
    /// first shard of it), and returns how many it ended.
    pub async fn unblock(&self, clients: impl IntoIterator<Item = u64>) -> Result<u64, Error> {
        let mut unblock = cmd("DQ.UNBLOCK");
        clients
            .into_iter()
            .for_each(|client| _ = unblock.arg(client));
        let reply = self.server().ask(&self.keys()[0], &unblock).await?;
        Ok(values::int(&reply).max(0) as u64)
    }

    /// Ends a pause.
    pub async fn resume(&self) -> Result<(), Error> {
        self.each("DQ.RESUME", |_| {}).await.map(|_| ())
    }
}

/// How many jobs the reply says were acknowledged.
fn acked(reply: Value) -> u64 {
    values::list(reply)
        .iter()
        .map(|each| values::int(each).max(0) as u64)
        .sum()
}

fn state(reply: Value) -> Option<State> {
    values::text(reply).and_then(|name| State::named(&name))
}
