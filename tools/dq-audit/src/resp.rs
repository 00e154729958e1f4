//! The commands of an AOF, and where each begins.

use std::io::{self, BufRead, Read};

/// Limits of a command: far more than any server writes.
const ARGUMENTS_MAX: u64 = 1 << 24;
const BYTES_MAX: u64 = 1 << 32;

#[derive(Debug)]
pub enum Error {
    /// The file ends within the command that begins at this offset.
    Cut(u64),
    /// What begins at this offset is not a command.
    Broken(u64),
    Io(io::Error),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}

pub type Command = Vec<Vec<u8>>;

pub struct Commands<R> {
    input: R,
    offset: u64,
}

impl<R: BufRead> Commands<R> {
    /// Reads from this offset of the file on.
    pub fn new(input: R, offset: u64) -> Self {
        Commands { input, offset }
    }

    /// The next command, and where it begins; None at the end of the file.
    pub fn next(&mut self) -> Result<Option<(u64, Command)>, Error> {
        loop {
            let begin = self.offset;
            let Some(&first) = self.input.fill_buf()?.first() else {
                return Ok(None);
            };
            let read = match first {
                // An annotation, such as a timestamp.
                b'#' => self.line(b'#').map(|_| None),
                _ => self.command().map(Some),
            };
            match read {
                Ok(None) => {}
                Ok(Some(command)) => return Ok(Some((begin, command))),
                Err(Error::Cut(_)) => return Err(Error::Cut(begin)),
                Err(Error::Broken(_)) => return Err(Error::Broken(begin)),
                Err(error) => return Err(error),
            }
        }
    }

    fn command(&mut self) -> Result<Command, Error> {
        let count = self.number(b'*', ARGUMENTS_MAX)?;
        let mut arguments = Vec::with_capacity(count.min(16) as usize);
        for _ in 0..count {
            let len = self.number(b'$', BYTES_MAX)?;
            let mut bytes = Vec::with_capacity(len.min(1 << 16) as usize);
            self.input.by_ref().take(len).read_to_end(&mut bytes)?;
            self.offset += bytes.len() as u64;
            if (bytes.len() as u64) < len {
                return Err(Error::Cut(self.offset));
            }
            if !self.line_is_empty()? {
                return Err(Error::Broken(self.offset));
            }
            arguments.push(bytes);
        }
        Ok(arguments)
    }

    fn line_is_empty(&mut self) -> Result<bool, Error> {
        let mut end = [0; 2];
        for byte in &mut end {
            let Some(&next) = self.input.fill_buf()?.first() else {
                return Err(Error::Cut(self.offset));
            };
            *byte = next;
            self.input.consume(1);
            self.offset += 1;
        }
        Ok(end == *b"\r\n")
    }

    fn number(&mut self, kind: u8, most: u64) -> Result<u64, Error> {
        let line = self.line(kind)?;
        let digits = std::str::from_utf8(&line).ok();
        let number = digits.and_then(|digits| digits.parse().ok());
        number
            .filter(|&number| number <= most)
            .ok_or(Error::Broken(self.offset))
    }

    /// The rest of a line after its first byte.
    fn line(&mut self, kind: u8) -> Result<Vec<u8>, Error> {
        const LINE_MAX: u64 = 1024;
        let mut line = Vec::new();
        let read = self.input.by_ref().take(LINE_MAX);
        let len = { read }.read_until(b'\n', &mut line)? as u64;
        self.offset += len;
        let is_whole = line.last() == Some(&b'\n');
        if line.first().is_some_and(|&first| first != kind) || (!is_whole && len == LINE_MAX) {
            return Err(Error::Broken(self.offset));
        }
        if !is_whole {
            return Err(Error::Cut(self.offset));
        }
        let text = line[1..].trim_ascii_end();
        Ok(text.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: &[u8] = b"*2\r\n$4\r\nPING\r\n$3\r\na\r\n\r\n";

    #[test]
    fn commands_are_read_with_their_places() {
        let file = [b"#TS:12345\r\n", PING, PING].concat();
        let mut commands = Commands::new(&file[..], 100);
        for at in [111, 111 + PING.len() as u64] {
            let (offset, command) = commands.next().unwrap().unwrap();
            assert_eq!((offset, command.len()), (at, 2));
            assert_eq!(command, [&b"PING"[..], b"a\r\n"]);
        }
        assert!(commands.next().unwrap().is_none());
    }

    #[test]
    fn a_cut_is_told_from_what_is_broken() {
        for end in 1..PING.len() {
            let file = [PING, &PING[..end]].concat();
            let mut commands = Commands::new(&file[..], 0);
            assert!(commands.next().is_ok());
            let cut = commands.next();
            assert!(matches!(cut, Err(Error::Cut(at)) if at == PING.len() as u64));
        }
        for broken in [
            &b"PING\r\n"[..],
            b"*x\r\n",
            b"*1\r\n$1\r\nab\r\n",
            b"\0\0\n",
            b"*1\r\n$99999999999\r\n",
        ] {
            let mut commands = Commands::new(broken, 0);
            assert!(
                matches!(commands.next(), Err(Error::Broken(0))),
                "{broken:?}"
            );
        }
    }
}
