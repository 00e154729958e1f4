//! A client's connection for tests: arbitrary bytes in, `redis::Value` out.

use std::io::Write;
use std::time::Duration;

use redis::{ConnectionLike, Parser, RedisResult, Value};

use super::{Socket, PATIENCE};

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
    socket: Socket,
    parser: Parser,
    /// What was sent last without waiting, for the message if no reply comes.
    sent: String,
}

impl Client {
    pub fn new(socket: Socket) -> Client {
        socket.set_patience(PATIENCE);
        Client {
            socket,
            parser: Parser::new(),
            sent: String::new(),
        }
    }

    /// Switches the connection to RESP3.
    pub fn speak_resp3(mut self) -> RedisResult<Client> {
        let hello = self.call_raw(redis::cmd("HELLO").arg(3))?;
        hello.extract_error()?;
        Ok(self)
    }

    /// How long one reply may take before the test fails.
    pub fn set_patience(&self, patience: Duration) {
        self.socket.set_patience(patience);
    }

    #[track_caller]
    pub fn call(&mut self, command: &redis::Cmd) -> Value {
        match self.try_call(command) {
            Ok(value) => value,
            Err(error) => panic!("{} -> {error}", printable(command)),
        }
    }

    /// Panics if the connection is lost, as that is no reply; `call_raw` returns that as an error.
    /// Errors inside an array (EXEC) stay there as `Value::ServerError`.
    #[track_caller]
    pub fn try_call(&mut self, command: &redis::Cmd) -> Result<Value, String> {
        match self.call_raw(command) {
            Ok(value) => refused(value),
            Err(error) => panic!("{} -> no reply: {error}", printable(command)),
        }
    }

    /// `Err` is a lost connection or a timeout; an error reply is `Ok(Value::ServerError)`.
    pub fn call_raw(&mut self, command: &redis::Cmd) -> RedisResult<Value> {
        self.req_command(command)
    }

    /// Sends bytes; returns whether the server could take them.
    pub fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.socket.write_all(bytes).is_ok()
    }

    /// Sends without waiting: for blocking commands. The reply comes with `receive`.
    pub fn send(&mut self, command: &redis::Cmd) {
        self.sent = printable(command);
        self.socket
            .write_all(&command.get_packed_command())
            .expect("connection is open");
    }

    #[track_caller]
    pub fn receive(&mut self) -> Result<Value, String> {
        match self.read() {
            Ok(reply) => refused(reply),
            Err(error) => panic!("no reply to {}: {error}", self.sent),
        }
    }

    fn read(&mut self) -> RedisResult<Value> {
        self.parser.parse_value(&mut self.socket)
    }

    /// Reads the next reply, skipping pushed messages (RESP3).
    fn read_reply(&mut self) -> RedisResult<Value> {
        loop {
            match self.read()? {
                Value::Push { .. } => {}
                reply => return Ok(reply),
            }
        }
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
}

/// For functions of `redis` on connections, such as pipelines.
impl ConnectionLike for Client {
    fn req_packed_command(&mut self, command: &[u8]) -> RedisResult<Value> {
        self.socket.write_all(command)?;
        self.read_reply()
    }

    fn req_packed_commands(
        &mut self,
        commands: &[u8],
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        self.socket.write_all(commands)?;
        let replies: RedisResult<Vec<Value>> =
            (0..offset + count).map(|_| self.read_reply()).collect();
        let mut replies = replies?;
        replies.drain(..offset);
        Ok(replies)
    }

    fn get_db(&self) -> i64 {
        0
    }

    fn check_connection(&mut self) -> bool {
        self.call_raw(&redis::cmd("PING")).is_ok()
    }

    fn is_open(&self) -> bool {
        true
    }
}

/// Turns an error reply into `Err`, as the server wrote it.
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
