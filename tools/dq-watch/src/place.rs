//! Options of the command line about the place to connect to, as redis-cli has them, and about what is read there.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;
use redis::{ConnectionAddr, IntoConnectionInfo};

use crate::read::target::{Sentinels, Target};
use crate::read::{Dbs, Scope};

/// What a command line asks for.
#[derive(Debug)]
pub enum Wish<Options> {
    Run(Box<Options>),
    Help,
    Version,
}

/// What the command line says about the place to connect to.
#[derive(Default)]
pub struct Place {
    host: Option<String>,
    port: Option<u16>,
    socket: Option<PathBuf>,
    url: Option<String>,
    user: Option<String>,
    password: Option<String>,
    tls: bool,
    cacert: Option<PathBuf>,
    sentinels: Vec<String>,
    master: Option<String>,
    sentinel_password: Option<String>,
}

impl Place {
    /// Takes the password that the environment gives.
    pub fn new(environment: impl Fn(&str) -> Option<String>) -> Place {
        Place {
            password: environment("REDISCLI_AUTH").filter(|password| !password.is_empty()),
            ..Place::default()
        }
    }

    /// Takes an option if it is about the place; returns whether it is.
    pub fn take(&mut self, name: &str, parser: &mut lexopt::Parser) -> Result<bool, String> {
        match name {
            "-h" => self.host = Some(text(parser)?),
            "-p" => self.port = Some(port(&text(parser)?)?),
            "-s" => self.socket = Some(parser.value().map_err(told)?.into()),
            "-u" => self.url = Some(text(parser)?),
            "-a" | "--pass" => self.password = Some(text(parser)?),
            "--user" => self.user = Some(text(parser)?),
            "--tls" => self.tls = true,
            "--cacert" => self.cacert = Some(parser.value().map_err(told)?.into()),
            "--sentinel" => {
                let addresses = text(parser)?;
                self.sentinels
                    .extend(addresses.split(',').map(str::to_owned));
            }
            "--master" => self.master = Some(text(parser)?),
            "--sentinel-pass" => self.sentinel_password = Some(text(parser)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether `target` reads a file.
    pub fn reads_files(&self) -> bool {
        self.cacert.is_some()
    }

    pub fn target(self) -> Result<Target, String> {
        let from_url = self
            .url
            .as_deref()
            .unwrap_or("redis://127.0.0.1:6379")
            .into_connection_info();
        let info = from_url.map_err(|error| format!("-u: {error}"))?;
        let (mut host, mut port, mut tls) = match info.addr() {
            ConnectionAddr::Tcp(host, port) => (host.clone(), *port, false),
            ConnectionAddr::TcpTls { host, port, .. } => (host.clone(), *port, true),
            _ => ("127.0.0.1".to_owned(), 6379, false),
        };
        let is_socket = matches!(info.addr(), ConnectionAddr::Unix(_)) && self.host.is_none();
        host = self.host.unwrap_or(host);
        port = self.port.unwrap_or(port);
        tls |= self.tls || self.cacert.is_some();
        let address = match self.socket {
            Some(path) => ConnectionAddr::Unix(path),
            None if is_socket => info.addr().clone(),
            None if tls => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            },
            None => ConnectionAddr::Tcp(host, port),
        };
        let target = Target::new(
            info.set_addr(address),
            self.user.as_deref(),
            self.password.as_deref(),
        );
        let target = match tls {
            true => target.encrypted(self.cacert.as_deref())?,
            false => target,
        };
        match (self.sentinels.is_empty(), self.master) {
            (true, None) => Ok(target),
            (false, Some(master)) => Ok(target.told_by(Sentinels {
                addresses: self.sentinels,
                master,
                password: self.sentinel_password,
            })),
            _ => Err("--sentinel HOST:PORT and --master NAME go together".to_owned()),
        }
    }
}

impl Scope {
    /// Takes an option if it is about what is read; returns whether it is.
    pub fn take(&mut self, name: &str, parser: &mut lexopt::Parser) -> Result<bool, String> {
        match name {
            "-n" => self.dbs = dbs(&text(parser)?)?,
            "--cluster" => self.cluster = Some(true),
            "--no-cluster" => self.cluster = Some(false),
            "--queue" => self.queues.push(bytes(parser.value().map_err(told)?)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checks the scope, once all options are read.
    pub fn checked(self) -> Result<Scope, String> {
        match self.dbs == Dbs::All && !self.queues.is_empty() {
            true => Err("--queue needs its database: -n with numbers".to_owned()),
            false => Ok(self),
        }
    }
}

/// The name of the next option as it is written; None after the last.
pub fn next_name(parser: &mut lexopt::Parser) -> Result<Option<String>, String> {
    match parser.next().map_err(told)? {
        None => Ok(None),
        Some(Short(letter)) => Ok(Some(format!("-{letter}"))),
        Some(Long(word)) => Ok(Some(format!("--{word}"))),
        Some(argument @ Value(_)) => Err(told(argument.unexpected())),
    }
}

pub fn told(error: lexopt::Error) -> String {
    error.to_string()
}

pub fn text(parser: &mut lexopt::Parser) -> Result<String, String> {
    parser.value().and_then(ValueExt::string).map_err(told)
}

fn bytes(name: OsString) -> Vec<u8> {
    std::os::unix::ffi::OsStringExt::into_vec(name)
}

fn dbs(text: &str) -> Result<Dbs, String> {
    if text == "all" {
        return Ok(Dbs::All);
    }
    let numbers = text.split(',').map(|number| number.parse::<u32>());
    let mut numbers: Vec<u32> = numbers
        .collect::<Result<_, _>>()
        .map_err(|_| format!("-n {text}: no database"))?;
    numbers.sort_unstable();
    numbers.dedup();
    Ok(Dbs::These(numbers))
}

fn port(text: &str) -> Result<u16, String> {
    let number = text.parse().ok().filter(|&port| port > 0);
    number.ok_or_else(|| format!("-p {text}: not a port number from 1 to 65535"))
}
