//! A connection to a server, over TCP or a Unix socket, that survives being stopped and continued.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub struct Socket(Kind);

enum Kind {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects to a port of this machine.
    pub fn tcp(port: u16) -> io::Result<Socket> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Socket::accepted(TcpStream::connect_timeout(
            &address,
            Duration::from_secs(5),
        )?)
    }

    /// A connection that another process has opened.
    pub fn accepted(stream: TcpStream) -> io::Result<Socket> {
        stream.set_nodelay(true)?;
        Ok(Socket(Kind::Tcp(stream)))
    }

    pub fn unix(path: &Path) -> io::Result<Socket> {
        Ok(Socket(Kind::Unix(UnixStream::connect(path)?)))
    }

    /// Sets how long a read may take.
    pub fn set_patience(&self, patience: Duration) {
        let set = match &self.0 {
            Kind::Tcp(stream) => stream.set_read_timeout(Some(patience)),
            Kind::Unix(stream) => stream.set_read_timeout(Some(patience)),
        };
        set.expect("a socket takes a timeout");
    }
}

impl Read for Socket {
    /// A read with a timeout ends with EINTR if the process is stopped and continued, or frozen and thawed: that says
    /// nothing about the server.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = match &mut self.0 {
                Kind::Tcp(stream) => stream.read(bytes),
                Kind::Unix(stream) => stream.read(bytes),
            };
            match count {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                count => return count,
            }
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Tcp(stream) => stream.write(bytes),
            Kind::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
