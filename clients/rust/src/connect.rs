//! A connection to a server.

use redis::aio::MultiplexedConnection;
use redis::{cmd, AsyncConnectionConfig, Client, Cmd, RedisConnectionInfo, RedisError, Value};
use std::time::Duration;

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
