//! A replica of an older master. The test plays the master with files that builds of each version of the format
//! wrote: the base of their AOF as the file of a full sync, the increment as the stream after it. Today's is one of them.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use crate::encodings::{folder_of, VERSIONS};
use crate::probe::plain;
use crate::scene::{Lines, Scene};
use crate::support::raw::encode;
use crate::support::{poll, Raw, Reply, Server, Socket, PATIENCE};

/// An RDB file without a key, and without a checksum.
const EMPTY: &[u8] = b"REDIS0009\xff\0\0\0\0\0\0\0\0";

/// The bytes of the AOF's file with that ending; empty if there is none.
fn part(folder: &Path, end: &str) -> Vec<u8> {
    let files = fs::read_dir(folder.join("appendonlydir")).expect("an AOF");
    let paths = files.map(|file| file.expect("a file").path());
    let mut matching = paths.filter(|path| path.to_string_lossy().ends_with(end));
    let path = matching.next();
    path.map_or_else(Vec::new, |path| fs::read(path).expect("its bytes"))
}

/// Answers a replica that wants to follow, until it has the file and the stream.
fn feed(replica: &Server, file: &[u8], stream: &[u8]) -> Raw {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener
        .set_nonblocking(true)
        .expect("a listener that can be polled");
    let port = listener.local_addr().expect("an address").port();
    replica
        .raw()
        .says(&format!("REPLICAOF 127.0.0.1 {port}"), "+OK");
    let mut link = accept(&listener);
    loop {
        match words(&link.read())[0].as_str() {
            "PING" => link.send(b"+PONG\r\n"),
            "REPLCONF" => link.send(b"+OK\r\n"),
            "PSYNC" => break,
            other => panic!("{other} of a replica"),
        }
    }
    let id = "0".repeat(40);
    link.send(format!("+FULLRESYNC {id} 0\r\n${}\r\n", file.len()).as_bytes());
    link.send(file);
    link.send(stream);
    link.send(&encode(&[b"REPLCONF", b"GETACK", b"*"]));
    while acknowledged(&words(&link.read())) < stream.len() {}
    link
}

fn accept(listener: &TcpListener) -> Raw {
    let (link, _) = poll(PATIENCE, || listener.accept().ok()).expect("the replica connects");
    link.set_nonblocking(false).expect("a socket");
    Raw::new(Socket::accepted(link).expect("a socket"))
}

/// How much of the stream the replica says it has applied.
fn acknowledged(words: &[String]) -> usize {
    assert_eq!(words[..2], ["REPLCONF", "ACK"]);
    words[2].parse().expect("an offset")
}

fn words(command: &Reply) -> Vec<String> {
    match command {
        Reply::Array(words) => words.iter().map(plain).collect(),
        other => panic!("no command: {other:?}"),
    }
}

/// A replica that was sent that file and that stream.
fn follower(base: &[u8], stream: &[u8]) -> (Server, Raw) {
    let replica = Server::start();
    let file = if base.is_empty() { EMPTY } else { base };
    let link = feed(&replica, file, stream);
    (replica, link)
}

/// The digest of a server that loads the same files.
fn as_loaded(folder: &Path) -> String {
    let server = Server::builder()
        .config("replicaof", "127.0.0.1 1")
        .aof()
        .with_files_of(folder)
        .start();
    server.digest()
}

#[test]
fn a_replica_of_an_older_master_follows_it_and_takes_over() {
    for version in VERSIONS {
        let folder = folder_of(version);
        let (base, stream) = (part(&folder, ".base.rdb"), part(&folder, ".incr.aof"));
        assert!(stream.len() > 100, "{version} has effects");
        let (replica, _link) = follower(&base, &stream);
        assert_eq!(replica.digest(), as_loaded(&folder), "{version}");
        assert!(!replica.log().contains("ends here"), "{version}");

        replica.promote();
        let mut client = replica.raw();
        client.says("DQ.ADD full new x GROUP tenant", "'new'");
        let follower = Server::start();
        follower.replica_of(&replica);
        client.says("DQ.ADD full one-more x DELAY 600000", "'one-more'");
        replica.assert_followed_by(&[&follower]);
    }
}

/// A digest without the last effect differs from one with it.
#[test]
fn canary_an_effect_that_did_not_come_is_noticed() {
    const BEGINNING: &[u8] = b"*3\r\n$8\r\nDQ.APPLY";
    for version in VERSIONS {
        let folder = folder_of(version);
        let (base, stream) = (part(&folder, ".base.rdb"), part(&folder, ".incr.aof"));
        let mut commands = stream.windows(BEGINNING.len());
        let last = commands.rposition(|bytes| bytes == BEGINNING);
        let (replica, _link) = follower(&base, &stream[..last.expect("effects")]);
        assert_ne!(replica.digest(), as_loaded(&folder), "{version}");
    }
}
