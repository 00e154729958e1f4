//! Where to connect, and as which user. A cluster's other nodes are reached in the same way.

use std::path::Path;

use redis::{ConnectionAddr, ConnectionInfo, ProtocolVersion, RedisConnectionInfo};

use super::cluster::host_and_port;
use super::link::Link;
use super::reply;

#[derive(Clone, Debug)]
pub struct Target {
    info: ConnectionInfo,
    sentinels: Option<Sentinels>,
}

/// The sentinels that know which server is the master.
#[derive(Clone, Debug)]
pub struct Sentinels {
    pub addresses: Vec<String>,
    pub master: String,
    pub password: Option<String>,
}

impl Target {
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
        let told = |error: &dyn std::fmt::Display| format!("--cacert: {error}");
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
            sentinels: self.sentinels,
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
        })
    }
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
        assert_eq!(login.db(), 0, "databases are selected as needed");
        assert!(first.at("nonsense").is_none());
    }
}
