//! Files of all encoding versions that a module has written: `encodings/<version>` and the digest that their
//! data had then.

use std::path::PathBuf;

use crate::scene::Lines;
use crate::support::Server;

const ENCODINGS: [(&str, &str); 2] = [
    ("1", "a8254faf2b2dd20bca3e971706925db2ac21e954"),
    ("2", "a8254faf2b2dd20bca3e971706925db2ac21e954"),
];

/// In a server that does nothing by itself: a replica whose master is not there.
#[test]
fn all_encodings_stay_readable() {
    for (version, digest) in ENCODINGS {
        let folder: PathBuf = [
            env!("CARGO_MANIFEST_DIR"),
            "tests/integration/encodings",
            version,
        ]
        .iter()
        .collect();
        let server = Server::builder()
            .config("replicaof", "127.0.0.1 1")
            // It would be read instead.
            .config("appendonly", "no")
            .with_files_of(folder)
            .start();
        assert_eq!(server.digest(), digest, "encoding {version}");
        let mut client = server.raw();
        client.says("DQ.LEN full", "6");
        client.says("DQ.LEN large", "100");
        // And is written as it is read.
        client.says("DEBUG RELOAD", "+OK");
        assert_eq!(server.digest(), digest, "encoding {version}, written again");
    }
}

/// Made by the build before failures were noted and jobs had successors: a file, an AOF of effects, a DUMP.
#[test]
fn files_of_the_build_before_are_read() {
    let folder: PathBuf = [
        env!("CARGO_MANIFEST_DIR"),
        "tests/integration/encodings/2-effects-1",
    ]
    .iter()
    .collect();
    let replica = |config: &str| {
        Server::builder()
            .config("replicaof", "127.0.0.1 1")
            .config("appendonly", config)
            .with_files_of(&folder)
            .start()
    };
    let file = replica("no");
    assert_eq!(file.digest(), "b3993c398b4df247ba21883f3d673284679231d7");
    // Its effects are carried out as they are today: the end of a lease is noted.
    let aof = replica("yes");
    let mut client = aof.raw();
    for (field, value) in [
        ("state", "dead"),
        ("reason", "lease ended"),
        ("failed", "1795311960796"),
        ("token", "1882521034601529344"),
    ] {
        let job = client.words("DQ.GET full once");
        let at = job.iter().position(|word| word == field);
        assert_eq!(at.map(|at| &*job[at + 1]), Some(value), "{field}");
    }
    client.says("DQ.LEN full", "4");
    client.says("DQ.LEN full DEAD", "2");
    client.says("DQ.LEN large", "100");
    let dump = std::fs::read(folder.join("full.dump")).expect("a DUMP");
    let server = Server::start();
    let mut client = server.raw();
    client.call(&[b"RESTORE", b"full", b"0", &dump]);
    let mut of_file = file.raw();
    for line in [
        "DQ.LEN full DEAD",
        "DQ.CFGGET full",
        "DEBUG DIGEST-VALUE full",
    ] {
        assert_eq!(client.ask(line), of_file.ask(line), "{line}");
    }
}
