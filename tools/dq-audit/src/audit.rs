//! Audits one file after another, command by command.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use crate::judge::{At, Judge};
use crate::keyspace::Keyspace;
use crate::parts::Parts;
use crate::rdb::{self, Rdb};
use crate::resp::{Command, Commands, Error};

#[derive(Default)]
pub struct Audit {
    pub judge: Judge,
    pub keyspace: Keyspace,
    /// What is not a fault, but should be known.
    pub notes: Vec<String>,
    /// Commands of a MULTI whose EXEC has not come yet.
    open: Option<Vec<(At, Command)>>,
}

impl Audit {
    /// Reads all files. An error is a file that cannot be read to its end.
    pub fn read(&mut self, parts: &Parts) -> Result<(), String> {
        self.keyspace.is_partial = parts.is_partial;
        if parts.is_partial {
            self.note("what happened before this file is unknown");
        }
        for (part, path) in parts.files.iter().enumerate() {
            self.judge.at = At { part, offset: 0 };
            self.keyspace.begin_part();
            self.read_part(path, parts.files.len() == 1)
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
        self.keyspace.finish(&mut self.judge);
        Ok(())
    }

    fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    fn read_part(&mut self, path: &Path, is_only: bool) -> Result<(), String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let mut input = BufReader::with_capacity(1 << 18, file);
        let begin = input.fill_buf().map_err(|error| error.to_string())?;
        if !begin.starts_with(b"REDIS") && !begin.starts_with(b"VALKEY") {
            return self.read_commands(input, 0);
        }
        let mut rdb = Rdb::new(input);
        match self.read_rdb(&mut rdb) {
            Ok(()) => {
                let offset = rdb.offset;
                self.read_commands(rdb.into_rest(), offset)
            }
            // Where the next command begins in this file is unknown.
            Err(error) if is_only => Err(error),
            Err(error) => {
                self.keyspace.is_known_in_part();
                self.note(format!(
                    "{}: {error}; only a part of it is known",
                    path.display()
                ));
                Ok(())
            }
        }
    }

    fn read_rdb(&mut self, rdb: &mut Rdb<impl BufRead>) -> Result<(), String> {
        let (judge, keyspace) = (&mut self.judge, &mut self.keyspace);
        let mut refused = None;
        let read = rdb.read(|db, key, chunk| {
            if let Err(error) = keyspace.apply(db, key, chunk, judge) {
                refused.get_or_insert(error);
            }
        });
        let at = rdb.offset;
        match (refused, read) {
            (Some(error), _) => Err(error),
            (None, Ok(())) => Ok(()),
            (None, Err(rdb::Error::Unknown(what))) => {
                Err(format!("{what} before byte {at} is unknown"))
            }
            (None, Err(rdb::Error::Cut)) => Err(format!("cut at byte {at}")),
            (None, Err(rdb::Error::Io(error))) => Err(error.to_string()),
        }
    }

    fn read_commands(&mut self, input: impl BufRead, offset: u64) -> Result<(), String> {
        let mut commands = Commands::new(input, offset);
        loop {
            match commands.next() {
                Ok(None) => break,
                Ok(Some((offset, command))) => {
                    self.judge.at.offset = offset;
                    self.judge.tally.commands += 1;
                    self.see(command)
                        .map_err(|error| format!("at byte {offset}: {error}"))?;
                }
                Err(Error::Cut(at)) => {
                    self.note(format!(
                        "the file is cut within a command that begins at byte {at}"
                    ));
                    break;
                }
                Err(Error::Broken(at)) => return Err(format!("not a command at byte {at}")),
                Err(Error::Io(error)) => return Err(io_text(&error)),
            }
        }
        if self.open.take().is_some_and(|open| !open.is_empty()) {
            self.note("the last transaction is incomplete; a server ignores it");
        }
        Ok(())
    }

    fn see(&mut self, command: Command) -> Result<(), String> {
        let is = |name: &str| {
            command
                .first()
                .is_some_and(|it| it.eq_ignore_ascii_case(name.as_bytes()))
        };
        if is("MULTI") {
            if self.open.replace(Vec::new()).is_some() {
                let at = self.judge.at.offset;
                self.note(format!(
                    "a transaction before byte {at} is incomplete: the file may have been truncated there once"
                ));
            }
        } else if is("DISCARD") {
            self.open = None;
        } else if is("EXEC") {
            for (at, command) in self.open.take().unwrap_or_default() {
                self.judge.at = at;
                self.keyspace.carry_out(&command, &mut self.judge)?;
            }
        } else if let Some(open) = &mut self.open {
            open.push((self.judge.at, command));
        } else {
            self.keyspace.carry_out(&command, &mut self.judge)?;
        }
        Ok(())
    }
}

fn io_text(error: &io::Error) -> String {
    error.to_string()
}
