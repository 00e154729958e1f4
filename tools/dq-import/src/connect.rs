//! Connections, encrypted with `rediss://`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use redis::{Client, Connection, TlsCertificates};

/// `cacert`: the authority of the servers' certificates, instead of those that the system trusts.
pub fn connect(url: &str, cacert: Option<&Path>) -> Result<Connection> {
    const PATIENCE: Duration = Duration::from_secs(30);
    let connection = client(url, cacert)?
        .get_connection_with_timeout(PATIENCE)
        .with_context(|| without_password(url).to_owned())?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    Ok(connection)
}

fn client(url: &str, cacert: Option<&Path>) -> Result<Client> {
    let place = || without_password(url).to_owned();
    if !url.starts_with("rediss:") {
        return Client::open(url).with_context(place);
    }
    // An error means that the same provider was installed before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let root_cert = cacert
        .map(|file| fs::read(file).with_context(|| format!("--cacert {}", file.display())))
        .transpose()?;
    let certificates = TlsCertificates {
        client_tls: None,
        root_cert,
    };
    Client::build_with_tls(url, certificates).with_context(place)
}

/// The URL as it may appear in messages and logs.
pub fn without_password(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, place)| place)
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn messages_hold_no_password() {
        assert_eq!(
            without_password("redis://user:p@ss@host:6379/0"),
            "host:6379/0"
        );
        assert_eq!(without_password("redis://host"), "redis://host");
    }
}
