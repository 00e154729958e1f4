//! A connection to a server.

use redis::aio::MultiplexedConnection;
use redis::{cmd, AsyncConnectionConfig, Client, Cmd, RedisConnectionInfo, RedisError, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

const CONNECT: Duration = Duration::from_secs(5);

/// Connects without a limit on replies: callers have their own timeouts. It uses RESP2, in which the server never
/// sends unasked. It authenticates itself, as redis-rs does not pass on what the server replies to that.
pub(crate) async fn connect(client: &Client) -> Result<MultiplexedConnection, RedisError> {
    let info = client.get_connection_info();
    let settings = info.redis_settings();
    let bare = info
        .clone()
        .set_redis_settings(RedisConnectionInfo::default().set_skip_set_lib_name());
    let bare = Client::open(bare)?;
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_connection_timeout(Some(CONNECT));
    let made = async {
        let mut made = bare
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        if let Some(password) = settings.password() {
            let mut auth = cmd("AUTH");
            if let Some(user) = settings.username() {
                auth.arg(user);
            }
            expect_ok(&mut made, auth.arg(password)).await?;
        }
        if settings.db() != 0 {
            expect_ok(&mut made, cmd("SELECT").arg(settings.db())).await?;
        }
        Ok(made)
    };
    match tokio::time::timeout(2 * CONNECT, made).await {
        Ok(made) => made,
        Err(_) => Err(silent()),
    }
}

/// A connection on which a command waits, and which server that is.
#[derive(Clone)]
pub(crate) struct Waiter {
    pub connection: MultiplexedConnection,
    /// The server's number of the connection; `None`: `CLIENT ID` or `DQ.UNBLOCK` is refused.
    pub number: Option<i64>,
    server: Client,
    other: Arc<Mutex<Option<MultiplexedConnection>>>,
}

impl Waiter {
    pub async fn new((mut connection, server): (MultiplexedConnection, Client)) -> Self {
        let number = match connection
            .send_packed_command(cmd("CLIENT").arg("ID"))
            .await
        {
            Ok(Value::Int(number)) => Some(number),
            _ => None,
        };
        Waiter {
            connection,
            number,
            server,
            other: Arc::default(),
        }
    }

    /// Ends what waits on the connection, by another one to the same server. False: the server refuses that.
    pub async fn unblock(&self) -> bool {
        let Some(number) = self.number else {
            return false;
        };
        let mut other = self.other.lock().await;
        let mut open = match other.take() {
            Some(open) => open,
            None => match connect(&self.server).await {
                Ok(made) => made,
                Err(_) => return true, // the connection that waits meets the same trouble
            },
        };
        match open
            .send_packed_command(cmd("DQ.UNBLOCK").arg(number))
            .await
        {
            Ok(Value::ServerError(_)) => false,
            Ok(_) => {
                *other = Some(open);
                true
            }
            Err(_) => true,
        }
    }
}

async fn expect_ok(
    connection: &mut MultiplexedConnection,
    command: &Cmd,
) -> Result<(), RedisError> {
    match connection.send_packed_command(command).await? {
        Value::ServerError(error) => Err(error.into()),
        _ => Ok(()),
    }
}

pub(crate) fn silent() -> RedisError {
    std::io::Error::new(std::io::ErrorKind::TimedOut, "the server does not answer").into()
}
