//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

pub const HELP: &str = "\
dq-audit: reads an AOF and checks the history of the delay queues in it.

Usage: dq-audit [options] FILE

FILE is a manifest (appendonly.aof.manifest), the folder that has one, or a single AOF.

  --limit N               how many faults to print (default 100); all are counted
  --rates                 check RATE and GROUPRATE too; only if the server was not promoted meanwhile
  --trace QUEUE           print the history of that queue instead, for docs/model/Trace.tla
  -n DB                   the database of that queue (default 0)
  --steps N               how many steps of its history (default 200)
  --help, --version

Exit status: 0 no faults, 1 faults, 2 the file cannot be read.
";

#[derive(Debug)]
pub struct Options {
    pub path: PathBuf,
    pub limit: usize,
    pub rates: bool,
    pub trace: Option<Vec<u8>>,
    pub db: u32,
    pub steps: usize,
}

#[derive(Debug)]
pub enum Wish {
    Run(Options),
    Help,
    Version,
}

pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Wish, String> {
    parse_all(arguments).map_err(|error| error.to_string())
}

fn parse_all(arguments: impl IntoIterator<Item = OsString>) -> Result<Wish, lexopt::Error> {
    let (mut path, mut trace) = (None, None);
    let (mut limit, mut rates, mut db, mut steps) = (100, false, 0, 200);
    let mut parser = lexopt::Parser::from_iter(std::iter::once("dq-audit".into()).chain(arguments));
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") => return Ok(Wish::Help),
            Long("version") => return Ok(Wish::Version),
            Long("limit") => limit = parser.value()?.parse()?,
            Long("rates") => rates = true,
            Long("steps") => steps = parser.value()?.parse()?,
            Long("trace") => trace = Some(parser.value()?.into_encoded_bytes()),
            Short('n') => db = parser.value()?.parse()?,
            Value(value) if path.is_none() => path = Some(PathBuf::from(value)),
            other => return Err(other.unexpected()),
        }
    }
    let path = path.ok_or("which file?")?;
    Ok(Wish::Run(Options {
        path,
        limit,
        rates,
        trace,
        db,
        steps,
    }))
}
