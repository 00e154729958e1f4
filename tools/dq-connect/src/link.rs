//! One connection: commands out in one packet, replies in, each for its database.

use std::time::Duration;

use redis::{Client, Cmd, Connection, ConnectionInfo, ErrorKind, RedisError, Value};

use crate::reply;

/// A server that does not answer for so long is taken for lost.
pub const PATIENCE: Duration = Duration::from_secs(5);
pub const WRONG_LOGIN: &str = "the server refuses this user or password (--user, --pass)";

pub struct Link {
    connection: Connection,
    db: u32,
}

impl Link {
    pub fn connect(info: &ConnectionInfo) -> Result<Link, String> {
        let connection = open(info.clone(), PATIENCE).map_err(|error| told(&error, PATIENCE))?;
        Ok(Link { connection, db: 0 })
    }

    /// Sends all commands in one packet, and reads one reply for each. `Err` is a lost connection: nothing more can be
    /// read.
    fn exchange(&mut self, commands: &[Cmd]) -> Result<Vec<Value>, String> {
        let mut packet = Vec::new();
        for command in commands {
            packet.extend_from_slice(&command.get_packed_command());
        }
        let sent = self.connection.send_packed_command(&packet);
        sent.map_err(|error| told(&error, PATIENCE))?;
        let receive = |_: &Cmd| {
            self.connection
                .recv_response()
                .map_err(|error| told(&error, PATIENCE))
        };
        commands.iter().map(receive).collect()
    }

    /// Runs a command in this database and in no other.
    pub fn call(&mut self, db: u32, command: Cmd) -> Result<Value, String> {
        if db != self.db {
            let mut select = redis::cmd("SELECT");
            let said = self.exchange(&[select.arg(db).to_owned()])?.remove(0);
            if reply::error(&said).is_some() {
                return Ok(said);
            }
            self.db = db;
        }
        Ok(self.exchange(&[command])?.remove(0))
    }

    /// Read-only commands, each in its database, in one packet.
    pub fn look(&mut self, commands: Vec<(u32, Cmd)>) -> Result<Vec<Value>, String> {
        let mut packet = Vec::with_capacity(commands.len() + 2);
        let mut selects = Vec::with_capacity(packet.capacity());
        let mut db = self.db;
        for (of, command) in commands {
            if of != db {
                packet.push(redis::cmd("SELECT").arg(of).to_owned());
                selects.push(Some(of));
                db = of;
            }
            packet.push(command);
            selects.push(None);
        }
        // Until the replies are there, it is unknown which database is selected.
        let before = std::mem::replace(&mut self.db, u32::MAX);
        let replies = self.exchange(&packet)?;
        let (selected, values) = sort_out(before, selects, replies);
        self.db = selected;
        Ok(values)
    }
}

/// Takes out the replies to SELECT. Where one was refused, the commands after it ran in another database: the refusal
/// replaces their replies.
fn sort_out(before: u32, selects: Vec<Option<u32>>, replies: Vec<Value>) -> (u32, Vec<Value>) {
    let mut selected = before;
    let mut refused: Option<Value> = None;
    let mut values = Vec::with_capacity(replies.len());
    for (select, value) in selects.into_iter().zip(replies) {
        match select {
            Some(_) if reply::error(&value).is_some() => refused = Some(value),
            Some(db) => (selected, refused) = (db, None),
            None => values.push(refused.clone().unwrap_or(value)),
        }
    }
    (selected, values)
}

/// The pause after so many failures in a row.
pub fn pause(troubles: u32) -> Duration {
    Duration::from_millis(50 << troubles.min(5))
}

/// Connects within this time, which each command then has, too.
pub fn open(info: ConnectionInfo, patience: Duration) -> Result<Connection, RedisError> {
    let connection = Client::open(info)?.get_connection_with_timeout(patience)?;
    connection.set_read_timeout(Some(patience))?;
    connection.set_write_timeout(Some(patience))?;
    Ok(connection)
}

pub fn told(error: &RedisError, patience: Duration) -> String {
    if error.is_timeout() {
        return format!("no answer within {} s", patience.as_secs());
    }
    if error.kind() == ErrorKind::AuthenticationFailed {
        return WRONG_LOGIN.to_owned();
    }
    if error.is_connection_refusal() {
        return "no server is there: start one (dq dev), or name another".to_owned();
    }
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal() -> Value {
        redis::parse_redis_value(b"-NOPERM no SELECT for you\r\n").expect("a reply")
    }

    #[test]
    fn no_answer_is_taken_from_another_database() {
        let selects = vec![None, Some(3), None, None, Some(5), None];
        let numbers =
            |replies: Vec<Value>| -> Vec<Option<i64>> { replies.iter().map(reply::int).collect() };
        let all_well = [
            Value::Int(0),
            Value::Okay,
            Value::Int(1),
            Value::Int(2),
            Value::Okay,
            Value::Int(3),
        ];
        let (db, values) = sort_out(0, selects.clone(), all_well.to_vec());
        assert_eq!(
            (db, numbers(values)),
            (5, vec![Some(0), Some(1), Some(2), Some(3)])
        );

        let mut one_refused = all_well.to_vec();
        one_refused[1] = refusal();
        let (db, values) = sort_out(0, selects.clone(), one_refused);
        assert_eq!(
            (db, numbers(values)),
            (5, vec![Some(0), None, None, Some(3)])
        );

        let mut last_refused = all_well.to_vec();
        last_refused[4] = refusal();
        let (db, values) = sort_out(0, selects, last_refused);
        assert_eq!(
            (db, numbers(values)),
            (3, vec![Some(0), Some(1), Some(2), None])
        );
    }
}
