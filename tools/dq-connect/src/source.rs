//! Where a queue is served: connections that follow it from node to node, and what the server's errors mean.

use std::sync::{Mutex, PoisonError};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ConnectionInfo, ErrorKind, RedisError, Value};
use tokio::time::timeout;

use crate::link::{PATIENCE, WRONG_LOGIN};
use crate::target::Target;

pub type Wire = MultiplexedConnection;

#[derive(Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Lasts until somebody changes something.
    Final(String),
    /// Concerns this queue alone, but all of it.
    OfQueue(String),
    Passing(String),
    /// The server does not carry out this command.
    Refused(String),
}

pub struct Source {
    target: Target,
    db: u32,
    /// The node of a cluster that has the queue, once a MOVED has named it.
    moved: Mutex<Option<String>>,
}

impl Source {
    pub fn new(target: Target, db: u32) -> Source {
        Source {
            target,
            db,
            moved: Mutex::new(None),
        }
    }

    /// Connects to the server that has the queue now; also returns where that is.
    pub async fn connect(&self) -> Result<(Wire, ConnectionInfo), Trouble> {
        let moved = self.moved().clone();
        let connected = async {
            let server = self.server(moved).await?;
            Ok((self.connect_to(&server).await?, server))
        };
        let connected = connected.await;
        if connected.is_err() {
            *self.moved() = None;
        }
        connected
    }

    async fn server(&self, moved: Option<String>) -> Result<ConnectionInfo, Trouble> {
        let there = moved.and_then(|address| self.target.at(&address));
        let target = there.unwrap_or_else(|| self.target.clone());
        let asked = tokio::task::spawn_blocking(move || target.server()).await;
        let info = asked.map_err(|error| Trouble::Passing(error.to_string()))?;
        let info = info.map_err(Trouble::Passing)?;
        let login = info.redis_settings().clone().set_db(i64::from(self.db));
        Ok(info.set_redis_settings(login))
    }

    pub async fn connect_to(&self, server: &ConnectionInfo) -> Result<Wire, Trouble> {
        let client = Client::open(server.clone());
        let client = client.map_err(|error| Trouble::Final(error.to_string()))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(None);
        let connected = client
            .get_multiplexed_async_connection_with_config(&config)
            .await;
        connected.map_err(|error| self.trouble(&error))
    }

    /// Sends a command that the server answers at once.
    pub async fn ask(&self, wire: &Wire, command: &Cmd) -> Result<Value, Trouble> {
        let mut wire = wire.clone();
        match timeout(PATIENCE, command.query_async(&mut wire)).await {
            Ok(answer) => answer.map_err(|error| self.trouble(&error)),
            Err(_) => Err(Trouble::Passing(format!("no answer within {PATIENCE:?}"))),
        }
    }

    pub fn trouble(&self, error: &RedisError) -> Trouble {
        if let Some((address, _slot)) = error.redirect_node() {
            *self.moved() = Some(address.to_owned());
        }
        trouble(error)
    }

    fn moved(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn trouble(error: &RedisError) -> Trouble {
    if error.kind() == ErrorKind::AuthenticationFailed {
        return Trouble::Final(WRONG_LOGIN.to_owned());
    }
    let detail = error.detail().unwrap_or_default();
    match error.code().unwrap_or_default() {
        "NOAUTH" => Trouble::Final(
            "the server requires a password (REDISCLI_AUTH, --user, --pass)".to_owned(),
        ),
        "WRONGTYPE" => Trouble::OfQueue("the key exists and is not a queue".to_owned()),
        "NOPERM" => Trouble::OfQueue(format!("the ACL denies this: {detail}")),
        "ERR" if detail.starts_with("unknown command") => Trouble::Final(
            "the server has not loaded the dq module (loadmodule /path/to/libdq.so)".to_owned(),
        ),
        "" => Trouble::Passing(error.to_string()),
        code @ ("ERR" | "OOM" | "MAXBYTES" | "MAXLEN") => {
            Trouble::Refused(format!("{code} {detail}"))
        }
        code => Trouble::Passing(format!("{code} {detail}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(reply: &str) -> Trouble {
        let value = redis::parse_redis_value(reply.as_bytes()).unwrap();
        trouble(&value.extract_error().unwrap_err())
    }

    #[test]
    fn what_ends_it_and_what_passes() {
        for last in [
            "-NOAUTH Authentication required.\r\n",
            "-ERR unknown command 'DQ.BPOP', with args beginning with: \r\n",
        ] {
            assert!(matches!(of(last), Trouble::Final(_)), "{last}");
        }
        for own in [
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
            "-NOPERM User x has no permissions to run the 'dq.bpop' command\r\n",
        ] {
            assert!(matches!(of(own), Trouble::OfQueue(_)), "{own}");
        }
        for passing in [
            "-READONLY You can't write against a read only replica.\r\n",
            "-LOADING Redis is loading the dataset in memory\r\n",
            "-UNBLOCKED force unblock from blocking operation\r\n",
            "-MOVED 1 127.0.0.1:7001\r\n",
            "-CLUSTERDOWN Hash slot not served\r\n",
            "-MISCONF Errors writing to the AOF file\r\n",
        ] {
            assert!(matches!(of(passing), Trouble::Passing(_)), "{passing}");
        }
        let full = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
        assert!(matches!(of(full), Trouble::Refused(_)));
    }
}
