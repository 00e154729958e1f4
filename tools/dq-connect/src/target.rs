//! Where to connect, and as which user. A cluster's other nodes are reached in the same way.

use std::path::Path;
use std::time::Duration;

use redis::{Connection, ConnectionAddr, ConnectionInfo, ProtocolVersion, RedisConnectionInfo};

use crate::link::{self, Link};
use crate::reply;

#[derive(Clone, Debug)]
pub struct Target {
    info: ConnectionInfo,
    sentinels: Option<Sentinels>,
    db: u32,
}

/// The sentinels that know which server is the master.
#[derive(Clone, Debug)]
pub struct Sentinels {
    pub addresses: Vec<String>,
    pub master: String,
    pub password: Option<String>,
}

impl Target {
    /// The database that `info` names is kept apart: all others are reached over the same connection.
    ///
    /// Connects under a name by which the server's log and CLIENT LIST show the program.
    pub fn new(info: ConnectionInfo, user: Option<&str>, password: Option<&str>) -> Target {
        let given = info.redis_settings();
        let mut login = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP2)
            .set_skip_set_lib_name();
        if let Some(user) = user.or(given.username()) {
            login = login.set_username(user);
        }
        if let Some(password) = password.or(given.password()) {
            login = login.set_password(password);
        }
        Target {
            db: given.db().try_into().unwrap_or(0),
            info: info.set_redis_settings(login),
            sentinels: None,
        }
    }

    /// The server is the one that these sentinels call the master, with the same login.
    pub fn told_by(self, sentinels: Sentinels) -> Target {
        Target {
            sentinels: Some(sentinels),
            ..self
        }
    }

    pub fn connect(&self) -> Result<Link, String> {
        Link::connect(&self.server()?)
    }

    /// A connection to this database that waits so long for an answer.
    pub fn open(&self, db: u32, patience: Duration) -> Result<Connection, String> {
        let info = self.server()?;
        let login = info.redis_settings().clone().set_db(i64::from(db));
        let opened = link::open(info.set_redis_settings(login), patience);
        opened.map_err(|error| format!("{}: {}", self.name(), link::told(&error, patience)))
    }

    /// Where the server is now. If there are sentinels, asks them and waits for their answer.
    pub fn server(&self) -> Result<ConnectionInfo, String> {
        let Some(sentinels) = &self.sentinels else {
            return Ok(self.info.clone());
        };
        let mut why = String::new();
        for address in &sentinels.addresses {
            match self.master_by(address, sentinels) {
                Ok(master) => return Ok(self.at(&master).ok_or(master)?.info),
                Err(error) => why = format!("sentinel {address}: {error}"),
            }
        }
        Err(why)
    }

    fn master_by(&self, address: &str, sentinels: &Sentinels) -> Result<String, String> {
        let sentinel = self.at(address).ok_or("not an address (HOST:PORT)")?;
        let mut login = RedisConnectionInfo::default().set_skip_set_lib_name();
        if let Some(password) = &sentinels.password {
            login = login.set_password(password);
        }
        let mut link = Link::connect(&sentinel.info.set_redis_settings(login))?;
        let mut ask = redis::cmd("SENTINEL");
        ask.arg("get-master-addr-by-name").arg(&sentinels.master);
        let said = link.call(0, ask)?;
        match reply::array(&said) {
            Some([host, port]) => {
                let word = |value| reply::text(value).unwrap_or_default();
                Ok(format!("{}:{}", word(host), word(port)))
            }
            _ => Err(reply::error(&said)
                .unwrap_or_else(|| format!("knows no master {}", sentinels.master))),
        }
    }

    /// The database that the URL names, or 0.
    pub fn db(&self) -> u32 {
        self.db
    }

    pub fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    pub fn name(&self) -> String {
        if let Some(sentinels) = &self.sentinels {
            return sentinels.master.clone();
        }
        match self.info.addr() {
            ConnectionAddr::Unix(path) => path.display().to_string(),
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                format!("{host}:{port}")
            }
            other => other.to_string(),
        }
    }

    pub fn host(&self) -> String {
        match self.info.addr() {
            ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host.clone(),
            _ => "127.0.0.1".to_owned(),
        }
    }

    /// The server's certificate must be signed by `cacert`, or by one that the system trusts.
    pub fn encrypted(self, cacert: Option<&Path>) -> Result<Target, String> {
        let told = |error: &dyn std::fmt::Display| {
            let file = cacert.unwrap_or(Path::new("the system's certificates"));
            format!("--cacert {}: {error}", file.display())
        };
        let root_cert = cacert
            .map(std::fs::read)
            .transpose()
            .map_err(|error| told(&error))?;
        let certificates = redis::TlsCertificates {
            client_tls: None,
            root_cert,
        };
        let client = redis::Client::build_with_tls(self.info, certificates);
        let client = client.map_err(|error| told(&error))?;
        Ok(Target {
            info: client.get_connection_info().clone(),
            ..self
        })
    }

    /// The target of another node of the cluster.
    pub fn at(&self, address: &str) -> Option<Target> {
        let (to_host, to_port) = host_and_port(address)?;
        let address = match self.info.addr() {
            ConnectionAddr::TcpTls {
                insecure,
                tls_params,
                ..
            } => ConnectionAddr::TcpTls {
                host: to_host,
                port: to_port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(to_host, to_port),
        };
        Some(Target {
            info: self.info.clone().set_addr(address),
            sentinels: None,
            db: self.db,
        })
    }
}

/// `host:port`, where the host may be an IPv6 address without brackets.
fn host_and_port(address: &str) -> Option<(String, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some((host.to_owned(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::IntoConnectionInfo;

    #[test]
    fn other_nodes_are_reached_as_the_first() {
        let info = "redis://ann:secret@10.0.0.1:7000/3"
            .into_connection_info()
            .unwrap();
        let first = Target::new(info, None, Some("better"));
        let other = first.at("10.0.0.2:7001").expect("an address");
        assert_eq!(
            (first.name(), other.name()),
            ("10.0.0.1:7000".into(), "10.0.0.2:7001".into())
        );
        let login = other.info().redis_settings();
        assert_eq!(
            (login.username(), login.password()),
            (Some("ann"), Some("better"))
        );
        assert_eq!(
            (login.db(), other.db()),
            (0, 3),
            "databases are selected as needed"
        );
        assert!(first.at("nonsense").is_none());
    }

    #[test]
    fn addresses_are_taken_apart() {
        assert_eq!(host_and_port("a.b:12"), Some(("a.b".to_owned(), 12)));
        assert_eq!(host_and_port("::1:7000"), Some(("::1".to_owned(), 7000)));
        assert_eq!(host_and_port("[::1]:7000"), Some(("::1".to_owned(), 7000)));
        assert_eq!(host_and_port("nothing"), None);
    }
}
