//! A forward proxy, through which all receivers are called.

use std::io;

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use hyper::header::HeaderValue;
use hyper::Uri;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The longest head of an answer to CONNECT.
const HEAD_BYTES: usize = 8192;

#[derive(Clone, Debug)]
pub struct Proxy {
    pub host: String,
    pub port: u16,
    pub authorization: Option<HeaderValue>,
}

impl Proxy {
    /// Parses the URL of a proxy. The error does not repeat it: it may hold a password.
    pub fn parse(text: &str) -> Result<Proxy, String> {
        let wrong = || "proxy: http://[user:password@]host:port".to_owned();
        let url: Uri = text.parse().map_err(|_| wrong())?;
        let (Some("http"), Some(authority)) = (url.scheme_str(), url.authority()) else {
            return Err(wrong());
        };
        let login = authority.as_str().rsplit_once('@').map(|(login, _)| login);
        let authorization = login.map(|login| {
            let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(login)))?;
            value.set_sensitive(true);
            Ok(value)
        });
        let authorization: Result<_, hyper::header::InvalidHeaderValue> = authorization.transpose();
        Ok(Proxy {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().ok_or_else(wrong)?,
            authorization: authorization.map_err(|_| wrong())?,
        })
    }

    /// Opens a tunnel to this host, on a connection to the proxy.
    pub async fn tunnel(&self, stream: &mut TcpStream, host: &str, port: u16) -> io::Result<()> {
        let mut head = format!("CONNECT {host}:{port} HTTP/1.1\r\nhost: {host}:{port}\r\n");
        if let Some(value) = &self.authorization {
            head += &format!(
                "proxy-authorization: {}\r\n",
                value.to_str().unwrap_or_default()
            );
        }
        stream.write_all((head + "\r\n").as_bytes()).await?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            // Byte by byte: what comes after the head is the receiver's.
            answer.push(stream.read_u8().await?);
            if answer.len() > HEAD_BYTES {
                return Err(refused("too long an answer"));
            }
        }
        let answer = String::from_utf8_lossy(&answer);
        let line = answer.lines().next().unwrap_or_default();
        match line.split(' ').nth(1) {
            Some(status) if status.len() == 3 && status.starts_with('2') => Ok(()),
            _ => Err(refused(line)),
        }
    }
}

fn refused(why: &str) -> io::Error {
    let why: String = why.chars().filter(|letter| !letter.is_control()).collect();
    io::Error::other(format!("the proxy refuses: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_proxy() {
        let proxy = Proxy::parse("http://ann:secret@proxy.internal:3128").unwrap();
        assert_eq!((proxy.host.as_str(), proxy.port), ("proxy.internal", 3128));
        assert_eq!(proxy.authorization.unwrap(), "Basic YW5uOnNlY3JldA==");
        assert!(Proxy::parse("http://[::1]:1")
            .unwrap()
            .authorization
            .is_none());
        for wrong in [
            "",
            "proxy:3128",
            "https://proxy:1",
            "http://proxy",
            "socks5://proxy:1",
        ] {
            assert!(
                Proxy::parse(wrong).unwrap_err().starts_with("proxy: "),
                "{wrong}"
            );
        }
    }
}
