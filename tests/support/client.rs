//! A client's connection that a test can read: arbitrary bytes in, `redis::Value` out.

use std::time::Duration;

use redis::{ConnectionLike, RedisResult, Value};

use super::PATIENCE;

/// Sends a command and returns its reply; panics on an error reply.
///
/// Arguments are whatever `redis` can send: strings, bytes, numbers; a slice of strings is several.
#[macro_export]
macro_rules! cmd {
    ($client:expr $(, $argument:expr)+ $(,)?) => {
        $client.call(redis::Cmd::new()$(.arg($argument))+)
    };
}

/// Sends a command; an error reply is `Err`, as the server wrote it (`"WRONGTYPE Operation ..."`).
#[macro_export]
macro_rules! try_cmd {
    ($client:expr $(, $argument:expr)+ $(,)?) => {
        $client.try_call(redis::Cmd::new()$(.arg($argument))+)
    };
}

pub struct Client {
    connection: redis::Connection,
}

impl Client {
    pub fn new(connection: redis::Connection) -> Client {
        let client = Client { connection };
        client.set_patience(PATIENCE);
        client
    }

    /// How long one reply may take before the test fails.
    pub fn set_patience(&self, patience: Duration) {
        self.connection
            .set_read_timeout(Some(patience))
            .expect("a socket takes a timeout");
    }

    #[track_caller]
    pub fn call(&mut self, command: &redis::Cmd) -> Value {
        match self.try_call(command) {
            Ok(value) => value,
            Err(error) => panic!("{} -> {error}", printable(command)),
        }
    }

    /// Panics if the connection is lost: that is no reply. See `call_raw` to look at that, too.
    /// Errors inside an array (EXEC) stay where they are, as `Value::ServerError`.
    #[track_caller]
    pub fn try_call(&mut self, command: &redis::Cmd) -> Result<Value, String> {
        match self.call_raw(command) {
            Ok(value) => refused(value),
            Err(error) => panic!("{} -> no reply: {error}", printable(command)),
        }
    }

    /// `Err` is a lost connection or a timeout; an error reply is `Ok(Value::ServerError)`.
    pub fn call_raw(&mut self, command: &redis::Cmd) -> RedisResult<Value> {
        self.connection.req_command(command)
    }

    /// Sends without waiting: for blocking commands. The reply comes with `receive`.
    pub fn send(&mut self, command: &redis::Cmd) {
        self.connection
            .send_packed_command(&command.get_packed_command())
            .expect("connection is open");
    }

    #[track_caller]
    pub fn receive(&mut self) -> Result<Value, String> {
        refused(self.connection.recv_response().expect("a reply"))
    }

    /// A field of INFO, as text.
    #[track_caller]
    pub fn info(&mut self, section: &str, field: &str) -> Option<String> {
        let text: String = redis::from_redis_value(self.call(redis::cmd("INFO").arg(section)))
            .expect("INFO is text");
        text.lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
            .map(|value| value.trim_end().to_owned())
    }

    pub fn connection(&mut self) -> &mut redis::Connection {
        &mut self.connection
    }
}

/// An error reply becomes `Err`, in the server's own words.
fn refused(value: Value) -> Result<Value, String> {
    match value {
        Value::ServerError(error) => Err(match error.details() {
            Some(details) => format!("{} {details}", error.code()),
            None => error.code().to_owned(),
        }),
        other => Ok(other),
    }
}

fn printable(command: &redis::Cmd) -> String {
    let words: Vec<String> = command
        .args_iter()
        .map(|argument| match argument {
            redis::Arg::Simple(bytes) => shortened(bytes),
            _ => "<cursor>".to_owned(),
        })
        .collect();
    words.join(" ")
}

fn shortened(bytes: &[u8]) -> String {
    const LONGEST: usize = 60;
    let end = bytes.len().min(LONGEST);
    let dots = if bytes.len() > LONGEST { "..." } else { "" };
    format!("{}{dots}", bytes[..end].escape_ascii())
}
