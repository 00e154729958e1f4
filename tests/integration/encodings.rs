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
