//! Connections to receivers: the address is checked after the name was resolved, right before connecting.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use hyper::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;
use tower_service::Service;

use crate::config::TlsFiles;
use crate::names::Names;
use crate::networks::Allowed;
use crate::proxy::Proxy;

/// How long an address is tried alone before the next one of the same name is tried, too (RFC 8305).
const HEAD_START: Duration = Duration::from_millis(250);

#[derive(Clone)]
pub struct Connector {
    allowed: Arc<Allowed>,
    names: Names,
    tls: TlsConnector,
    proxy: Option<Arc<Proxy>>,
}

impl Connector {
    pub fn new(
        allowed: Allowed,
        names: Names,
        files: &TlsFiles,
        proxy: Option<Arc<Proxy>>,
        only_http2: bool,
    ) -> Result<Connector, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| error.to_string())?;
        let config = config.with_root_certificates(roots(files.ca.as_deref())?);
        let mut config = match &files.client {
            None => config.with_no_client_auth(),
            Some((cert, key)) => config
                .with_client_auth_cert(certificates(cert)?, private_key(key)?)
                .map_err(|error| format!("{}: {error}", cert.display()))?,
        };
        config.alpn_protocols = match only_http2 {
            true => vec![b"h2".to_vec()],
            false => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        };
        Ok(Connector {
            allowed: Arc::new(allowed),
            names,
            tls: TlsConnector::from(Arc::new(config)),
            proxy,
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
        let stream = match &self.proxy {
            None => self.tcp(&name, port).await?,
            Some(proxy) => {
                let mut stream = self.to_proxy(proxy).await?;
                if encrypted {
                    proxy.tunnel(&mut stream, host, port).await?;
                }
                stream
            }
        };
        stream.set_nodelay(true)?;
        if !encrypted {
            let mut stream = Watched::new(Box::new(stream) as Box<dyn Io>);
            stream.to_proxy = self.proxy.is_some();
            return Ok(TokioIo::new(stream));
        }
        let server = ServerName::try_from(name)
            .map_err(|_| wrong("not a name that a certificate can have"))?;
        let stream = self.tls.connect(server, stream).await?;
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let mut stream = Watched::new(Box::new(stream) as Box<dyn Io>);
        stream.is_h2 = is_h2;
        Ok(TokioIo::new(stream))
    }

    /// Connects to the proxy, at any address: the configuration names it. It resolves the receivers' names.
    async fn to_proxy(&self, proxy: &Proxy) -> io::Result<TcpStream> {
        let none = io::Error::new(io::ErrorKind::NotFound, "the proxy has no address");
        let addresses = self.names.find(&proxy.host, proxy.port).await?;
        first(addresses.into_iter().map(TcpStream::connect), none).await
    }

    async fn tcp(&self, name: &str, port: u16) -> io::Result<TcpStream> {
        let mut none = io::Error::new(io::ErrorKind::NotFound, format!("{name} has no address"));
        let mut permitted = Vec::new();
        for address in self.names.find(name, port).await? {
            if self.allowed.permits(name, address.ip()) {
                permitted.push(address);
                continue;
            }
            let why = format!(
                "{name} is {}, which is not a public address and not in allow",
                address.ip()
            );
            none = io::Error::new(io::ErrorKind::PermissionDenied, why);
        }
        first(permitted.into_iter().map(TcpStream::connect), none).await
    }
}

/// The first attempt that succeeds; the next is begun when one has failed, or after [`HEAD_START`].
async fn first<T>(
    mut attempts: impl Iterator<Item = impl Future<Output = io::Result<T>>>,
    none: io::Error,
) -> io::Result<T> {
    let mut last = none;
    let mut begun = FuturesUnordered::new();
    let mut more = true;
    loop {
        match attempts.next() {
            Some(attempt) => begun.push(attempt),
            None => more = false,
        }
        tokio::select! {
            ended = begun.next() => match ended {
                Some(Ok(stream)) => return Ok(stream),
                Some(Err(error)) => last = error,
                None => return Err(last),
            },
            () = sleep(HEAD_START), if more => {}
        }
    }
}

/// The certificates of the file, or those that the system trusts.
fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca_file else {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        return Ok(roots);
    };
    for certificate in certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let found = CertificateDer::pem_file_iter(path).map_err(|error| told(&error))?;
    let found: Vec<_> = found
        .collect::<Result<_, _>>()
        .map_err(|error| told(&error))?;
    match found.is_empty() {
        true => Err(told(&"it contains no certificate")),
        false => Ok(found),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| format!("{}: {error}", path.display()))
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

pub type Stream = TokioIo<Watched<Box<dyn Io>>>;

/// A connection, plain or encrypted.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

impl Connection for Watched<Box<dyn Io>> {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.to_proxy);
        match self.is_h2 {
            // It carries several calls: what was written may be of any.
            true => connected.negotiated_h2(),
            false => connected.extra(self.written()),
        }
    }
}

/// How many bytes were written to a connection. A clone also keeps how many there were when it was made from the
/// connection's own: hyper-util does that when a call gets the connection, before the call's first byte.
pub struct Written {
    now: Arc<AtomicU64>,
    before: Option<u64>,
}

impl Clone for Written {
    fn clone(&self) -> Written {
        Written {
            now: Arc::clone(&self.now),
            before: self.before.or_else(|| Some(self.now.load(SeqCst))),
        }
    }
}

impl Written {
    /// Whether other calls were written before, and nothing of this one.
    pub fn is_nothing_new(&self) -> bool {
        let now = self.now.load(SeqCst);
        self.before
            .is_some_and(|before| before > 0 && before == now)
    }
}

/// A stream that counts what is written to it.
pub struct Watched<S> {
    stream: S,
    written: Arc<AtomicU64>,
    is_h2: bool,
    to_proxy: bool,
}

impl<S> Watched<S> {
    pub fn new(stream: S) -> Watched<S> {
        Watched {
            stream,
            written: Arc::default(),
            is_h2: false,
            to_proxy: false,
        }
    }

    pub fn written(&self) -> Written {
        Written {
            now: Arc::clone(&self.written),
            before: None,
        }
    }

    fn wrote(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.written.fetch_add(bytes as u64, SeqCst);
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let watched = self.get_mut();
        let written = Pin::new(&mut watched.stream).poll_write(cx, buf);
        watched.wrote(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let watched = self.get_mut();
        let written = Pin::new(&mut watched.stream).poll_write_vectored(cx, bufs);
        watched.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::{pending, ready, Either};

    use super::*;

    fn error(why: &str) -> io::Error {
        io::Error::other(why)
    }

    #[tokio::test]
    async fn an_address_that_keeps_silent_does_not_hold_up_the_others() {
        let attempts = [
            Either::Left(pending()),
            Either::Right(ready(Err(error("refused")))),
            Either::Right(ready(Ok(3))),
        ];
        assert_eq!(first(attempts.into_iter(), error("none")).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn the_last_error_counts() {
        let attempts = ["one", "two"].map(|why| ready(Err::<(), _>(error(why))));
        let said = first(attempts.into_iter(), error("none")).await;
        assert_eq!(said.unwrap_err().to_string(), "two");
        let nowhere = std::iter::empty::<std::future::Ready<io::Result<()>>>();
        let said = first(nowhere, error("none")).await;
        assert_eq!(said.unwrap_err().to_string(), "none");
    }
}
