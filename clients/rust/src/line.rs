//! A connection of a link: it receives what to send, and emits the server's replies as events.

use crate::connect::silent;
use crate::core::{Event, Line, Name, Sent, Turn};
use crate::server::Server;
use crate::values;
use redis::aio::MultiplexedConnection;
use redis::{cmd, Cmd, RedisError, Value};
use std::future::Future;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

/// For replies that had arrived in time although this program was stopped meanwhile.
const LATE: Duration = Duration::from_millis(20);

pub(crate) enum Order {
    Send {
        turn: Turn,
        commands: Vec<Cmd>,
        last: Option<Cmd>,
        within: Duration,
    },
    Close,
    /// To be written without waiting for replies, on the connection on which the server is late.
    Last {
        commands: Vec<Cmd>,
        written: oneshot::Sender<()>,
    },
}

pub(crate) struct Connection {
    pub line: Line,
    pub server: Server,
    pub key: Vec<u8>,
    pub events: UnboundedSender<Event>,
}

impl Connection {
    /// Runs until no more orders can come.
    pub async fn run(self, mut orders: UnboundedReceiver<Order>) {
        let mut open: Option<MultiplexedConnection> = None;
        // The connection before this one, if the server was late on it, until there is a new one.
        let mut left: Option<MultiplexedConnection> = None;
        let mut next = None;
        loop {
            let order = match next.take() {
                Some(order) => order,
                None => match orders.recv().await {
                    Some(order) => order,
                    None => return,
                },
            };
            let Order::Send {
                turn,
                commands,
                last,
                within,
            } = order
            else {
                if let Order::Last { commands, written } = order {
                    write_last(open.take().or(left.take()), commands).await;
                    _ = written.send(());
                }
                open = None;
                continue;
            };
            let mut connected = false;
            let exchanged = tokio::select! {
                biased;
                exchanged = self.exchange((&mut open, &mut left), &mut connected, turn, commands, last, within) => exchanged,
                order = orders.recv() => {
                    // The order that ends a wait.
                    if !matches!(order, Some(Order::Last { .. })) {
                        open = None;
                    }
                    match order {
                        Some(order) => next = Some(order),
                        None => return,
                    }
                    continue;
                }
            };
            if let Err(error) = exchanged {
                if error.is_timeout() {
                    left = open.take().or(left);
                }
                open = None;
                let sent = match connected {
                    true if error.is_timeout() => Sent::Closed,
                    true => Sent::Cut,
                    false => Sent::Nothing,
                };
                let text = values::error_text(&error);
                self.tell(Event::Broken(self.line, turn, text, sent));
            }
        }
    }

    fn tell(&self, event: Event) {
        _ = self.events.send(event); // fails if the worker has ended
    }

    async fn exchange(
        &self,
        (open, left): (
            &mut Option<MultiplexedConnection>,
            &mut Option<MultiplexedConnection>,
        ),
        connected: &mut bool,
        turn: Turn,
        commands: Vec<Cmd>,
        last: Option<Cmd>,
        within: Duration,
    ) -> Result<(), RedisError> {
        if open.is_none() {
            *open = Some(in_time(within.min(Duration::from_secs(5)), self.open(turn)).await?);
            *left = None;
        }
        let Some(connection) = open else {
            return Err(silent());
        };
        *connected = true;
        in_time(within, self.send(connection, turn, commands, last)).await
    }

    async fn open(&self, turn: Turn) -> Result<MultiplexedConnection, RedisError> {
        let (mut made, server) = self.server.connect(&self.key).await?;
        let mut number = None;
        if self.line.name != Name::Control {
            let mut ask = cmd("CLIENT");
            ask.arg("ID");
            // If `CLIENT ID` is forbidden, the connection is closed to end a wait.
            number = match made.send_packed_command(&ask).await {
                Ok(Value::Int(number)) => Some(number as u64),
                Ok(Value::ServerError(error)) if error.code() != "NOPERM" => {
                    return Err(error.into())
                }
                Err(error) => return Err(error),
                _ => None,
            };
        }
        let server = server.get_connection_info().addr().to_string().into();
        self.tell(Event::Opened(self.line, turn, number, server));
        Ok(made)
    }

    /// Sends all in one write. The replies to `commands` are emitted before the reply to `last`.
    async fn send(
        &self,
        connection: &mut MultiplexedConnection,
        turn: Turn,
        commands: Vec<Cmd>,
        last: Option<Cmd>,
    ) -> Result<(), RedisError> {
        let mut other = connection.clone();
        let first = async {
            if commands.is_empty() {
                return Ok(());
            }
            let count = commands.len();
            let mut pipe = redis::Pipeline::with_capacity(count);
            for command in commands {
                pipe.add_command(command);
            }
            let replies = connection.send_packed_commands(&pipe, 0, count).await?;
            self.tell(Event::Replies(self.line, turn, replies));
            Ok(())
        };
        let last = async {
            let Some(last) = last else { return Ok(()) };
            let mut pipe = redis::Pipeline::with_capacity(1);
            pipe.add_command(last);
            let replies = other.send_packed_commands(&pipe, 0, 1).await?;
            self.tell(Event::Replies(self.line, turn, replies));
            Ok::<_, RedisError>(())
        };
        tokio::try_join!(biased; first, last).map(|_| ())
    }
}

/// redis-rs writes in a task of its own.
async fn write_last(connection: Option<MultiplexedConnection>, commands: Vec<Cmd>) {
    let Some(mut connection) = connection else {
        return;
    };
    let mut pipe = redis::Pipeline::with_capacity(commands.len());
    let count = commands.len();
    for command in commands {
        pipe.add_command(command);
    }
    let asked = connection.send_packed_commands(&pipe, 0, count);
    _ = tokio::time::timeout(LATE, asked).await;
}

async fn in_time<T>(
    within: Duration,
    asked: impl Future<Output = Result<T, RedisError>>,
) -> Result<T, RedisError> {
    let mut asked = pin!(asked);
    if let Ok(answer) = tokio::time::timeout(within, &mut asked).await {
        return answer;
    }
    tokio::time::timeout(LATE, asked)
        .await
        .unwrap_or_else(|_| Err(silent()))
}
