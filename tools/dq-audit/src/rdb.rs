//! Reads queues from an RDB; all other types are skipped.

use std::io::{self, BufRead, Read};

use crate::lzf;

/// The version that the module's `datatype.rs` writes. Older versions are read, too.
const ENCODING_VERSION: u64 = 1;
const TYPE_NAME: &str = "dq-queue1";

const STRING_MAX: u64 = 1 << 32;

#[derive(Debug)]
pub enum Error {
    /// Why it cannot be read.
    Unknown(String),
    Cut,
    Io(io::Error),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::Cut,
            _ => Error::Io(error),
        }
    }
}

fn unknown<T>(what: impl Into<String>) -> Result<T, Error> {
    Err(Error::Unknown(what.into()))
}

enum Length {
    Of(u64),
    /// A string in one of the special encodings.
    Encoded(u8),
}

/// Reads an RDB, and counts the bytes read.
pub struct Rdb<R> {
    input: R,
    pub offset: u64,
    is_valkey: bool,
}

impl<R: BufRead> Rdb<R> {
    pub fn new(input: R) -> Self {
        Rdb {
            input,
            offset: 0,
            is_valkey: false,
        }
    }

    pub fn into_rest(self) -> R {
        self.input
    }

    /// Reads the whole file; `see` gets the database, the key and each chunk of a queue.
    pub fn read(&mut self, mut see: impl FnMut(u32, &[u8], &[u8])) -> Result<(), Error> {
        self.is_valkey = self.bytes(6)?.starts_with(b"VALKEY");
        self.bytes(3)?;
        let mut db = 0;
        loop {
            match self.byte()? {
                // The checksum.
                255 => return self.skip(8),
                254 => {
                    db = u32::try_from(self.length()?).or(unknown("the number of a database"))?
                }
                253 => self.skip(4)?,
                252 => self.skip(8)?,
                251 => self.lengths(2)?,
                250 => self.strings(2)?,
                249 => self.skip(1)?,
                248 => self.lengths(1)?,
                247 => {
                    self.lengths(3)?;
                    self.module_parts(|_| {})?;
                }
                245 => self.strings(1)?,
                244 => self.lengths(3)?,
                kind @ 128.. => return unknown(format!("an entry of kind {kind}")),
                kind => {
                    let key = self.string()?;
                    self.value(kind, &mut |chunk| see(db, &key, chunk))?;
                }
            }
        }
    }

    /// Reads a value, also one of DUMP; `see` gets the chunks if it is a queue.
    pub fn value(&mut self, kind: u8, see: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        match kind {
            0 | 9..=13 | 16 | 17 | 20 => self.strings(1),
            1 | 2 | 14 => self.counted(|rdb| rdb.strings(1)),
            3 => self.counted(|rdb| {
                rdb.strings(1)?;
                match rdb.byte()? {
                    253..=255 => Ok(()),
                    len => rdb.skip(len.into()),
                }
            }),
            4 => self.counted(|rdb| rdb.strings(2)),
            5 => self.counted(|rdb| {
                rdb.strings(1)?;
                rdb.skip(8)
            }),
            7 => self.module(see),
            18 => self.counted(|rdb| {
                rdb.lengths(1)?;
                rdb.strings(1)
            }),
            15 | 19 | 21 | 26 => self.stream(kind),
            22 if self.is_valkey => self.counted(|rdb| {
                rdb.strings(2)?;
                rdb.skip(8)
            }),
            24 => {
                self.skip(8)?;
                self.counted(|rdb| {
                    rdb.lengths(1)?;
                    rdb.strings(2)
                })
            }
            25 => {
                self.skip(8)?;
                self.strings(1)
            }
            _ => unknown(format!("a value of type {kind}")),
        }
    }

    fn stream(&mut self, kind: u8) -> Result<(), Error> {
        const ID: u64 = 16;
        self.counted(|rdb| rdb.strings(2))?;
        self.lengths(if kind == 15 { 3 } else { 8 })?;
        self.counted(|rdb| {
            rdb.strings(1)?;
            rdb.lengths(if kind == 15 { 2 } else { 3 })?;
            rdb.counted(|rdb| {
                rdb.skip(ID + 8)?;
                rdb.lengths(1)
            })?;
            rdb.counted(|rdb| {
                rdb.strings(1)?;
                rdb.skip(if kind < 21 { 8 } else { 16 })?;
                rdb.counted(|rdb| rdb.skip(ID))
            })
        })?;
        if kind == 26 {
            self.producers()
        } else {
            Ok(())
        }
    }

    /// What a stream of Redis 8.6 and newer stores about entries that are added only once.
    fn producers(&mut self) -> Result<(), Error> {
        self.lengths(2)?;
        self.counted(|rdb| {
            rdb.strings(1)?;
            rdb.counted(|rdb| {
                rdb.strings(1)?;
                rdb.lengths(2)
            })
        })?;
        self.lengths(2)
    }

    fn module(&mut self, see: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        let id = self.length()?;
        let is_queue = name_of(id) == TYPE_NAME;
        let version = id & 1023;
        if is_queue && version > ENCODING_VERSION {
            return unknown(format!("a queue of encoding {version}, of a newer release"));
        }
        self.module_parts(|chunk| {
            if is_queue && !chunk.is_empty() {
                see(chunk);
            }
        })
    }

    /// What a module has saved, to its end.
    fn module_parts(&mut self, mut see: impl FnMut(&[u8])) -> Result<(), Error> {
        loop {
            match self.length()? {
                0 => return Ok(()),
                1 | 2 => self.lengths(1)?,
                3 => self.skip(4)?,
                4 => self.skip(8)?,
                5 => see(&self.string()?),
                other => return unknown(format!("a part {other} of a module's value")),
            }
        }
    }

    fn counted(&mut self, each: impl Fn(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        let count = self.length()?;
        (0..count).try_for_each(|_| each(self))
    }

    fn lengths(&mut self, count: usize) -> Result<(), Error> {
        (0..count).try_for_each(|_| self.length().map(drop))
    }

    fn strings(&mut self, count: usize) -> Result<(), Error> {
        (0..count).try_for_each(|_| self.string().map(drop))
    }

    fn string(&mut self) -> Result<Vec<u8>, Error> {
        match self.length_or_encoding()? {
            Length::Of(len) => self.bytes(len),
            Length::Encoded(0) => self.bytes(1),
            Length::Encoded(1) => self.bytes(2),
            Length::Encoded(2) => self.bytes(4),
            Length::Encoded(3) => {
                let (packed, len) = (self.length()?, self.length()?);
                let packed = self.bytes(packed)?;
                let len = usize::try_from(len).or(unknown("a length"))?;
                lzf::decompress(&packed, len).map_or_else(|| unknown("compressed bytes"), Ok)
            }
            Length::Encoded(other) => unknown(format!("a string of encoding {other}")),
        }
    }

    fn length(&mut self) -> Result<u64, Error> {
        match self.length_or_encoding()? {
            Length::Of(len) => Ok(len),
            Length::Encoded(_) => unknown("a length"),
        }
    }

    fn length_or_encoding(&mut self) -> Result<Length, Error> {
        let first = self.byte()?;
        let low = u64::from(first & 63);
        Ok(match (first >> 6, first) {
            (0, _) => Length::Of(low),
            (1, _) => Length::Of(low << 8 | u64::from(self.byte()?)),
            (2, 0x80) => Length::Of(self.big_endian(4)?),
            (2, 0x81) => Length::Of(self.big_endian(8)?),
            (3, _) => Length::Encoded(first & 63),
            _ => return unknown("a length"),
        })
    }

    fn big_endian(&mut self, len: u64) -> Result<u64, Error> {
        let bytes = self.bytes(len)?;
        Ok(bytes
            .iter()
            .fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn byte(&mut self) -> Result<u8, Error> {
        let mut byte = [0];
        self.input.read_exact(&mut byte)?;
        self.offset += 1;
        Ok(byte[0])
    }

    fn bytes(&mut self, len: u64) -> Result<Vec<u8>, Error> {
        if len > STRING_MAX {
            return unknown("a length");
        }
        let mut bytes = Vec::new();
        self.input.by_ref().take(len).read_to_end(&mut bytes)?;
        self.offset += bytes.len() as u64;
        match bytes.len() as u64 == len {
            true => Ok(bytes),
            false => Err(Error::Cut),
        }
    }

    fn skip(&mut self, len: u64) -> Result<(), Error> {
        self.bytes(len).map(drop)
    }
}

/// Decodes a module type: nine characters of six bits each, above ten bits of version.
fn name_of(id: u64) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let letters = (0..9)
        .rev()
        .map(|n| LETTERS[(id >> (10 + 6 * n) & 63) as usize]);
    letters.map(char::from).collect()
}

/// Passes the chunks of a queue that DUMP wrote to `see`; none of any other value.
pub fn of_dump(payload: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
    let Some((&kind, rest)) = payload.split_first() else {
        return Err(Error::Cut);
    };
    match kind {
        7 => Rdb::new(rest).value(kind, see),
        _ => Ok(()),
    }
}
