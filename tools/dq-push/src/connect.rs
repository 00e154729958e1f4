//! Connections to receivers: the address is judged after the name was resolved, just before it is connected to.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{lookup_host, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::TlsConnector;
use tower_service::Service;

use crate::networks::Allowed;

#[derive(Clone)]
pub struct Connector {
    allowed: Arc<Allowed>,
    tls: TlsConnector,
}

impl Connector {
    pub fn new(
        allowed: Allowed,
        ca_file: Option<&Path>,
        only_http2: bool,
    ) -> Result<Connector, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| error.to_string())?;
        let mut config = config
            .with_root_certificates(roots(ca_file)?)
            .with_no_client_auth();
        config.alpn_protocols = match only_http2 {
            true => vec![b"h2".to_vec()],
            false => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        };
        Ok(Connector {
            allowed: Arc::new(allowed),
            tls: TlsConnector::from(Arc::new(config)),
        })
    }

    async fn connect(self, url: Uri) -> io::Result<Stream> {
        let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why);
        let host = url.host().ok_or_else(|| wrong("no host"))?;
        let name = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_ascii_lowercase();
        let encrypted = url.scheme_str() == Some("https");
        let port = url.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        let stream = self.tcp(&name, port).await?;
        stream.set_nodelay(true)?;
        if !encrypted {
            return Ok(Stream::Plain(TokioIo::new(stream)));
        }
        let server = ServerName::try_from(name)
            .map_err(|_| wrong("no name that a certificate could have"))?;
        let stream = self.tls.connect(server, stream).await?;
        Ok(Stream::Encrypted(Box::new(TokioIo::new(stream))))
    }

    async fn tcp(&self, name: &str, port: u16) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{name} has no address"));
        for address in lookup_host((name, port)).await? {
            if !self.allowed.permits(name, address.ip()) {
                let why = format!(
                    "{name} is {}, no public address, and is not allowed",
                    address.ip()
                );
                last = io::Error::new(io::ErrorKind::PermissionDenied, why);
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// Those that the file holds, else those that the system trusts.
fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca_file else {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        return Ok(roots);
    };
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| told(&error))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| told(&error))?;
        roots.add(certificate).map_err(|error| told(&error))?;
    }
    match roots.is_empty() {
        true => Err(told(&"no certificate in it")),
        false => Ok(roots),
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        Box::pin(self.clone().connect(url))
    }
}

pub enum Stream {
    Plain(TokioIo<TcpStream>),
    Encrypted(Box<TokioIo<TlsStream<TcpStream>>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        match self {
            Stream::Encrypted(stream)
                if stream.inner().get_ref().1.alpn_protocol() == Some(b"h2") =>
            {
                Connected::new().negotiated_h2()
            }
            _ => Connected::new(),
        }
    }
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Encrypted(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl Write for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Stream::Encrypted(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Stream::Encrypted(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Encrypted(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
