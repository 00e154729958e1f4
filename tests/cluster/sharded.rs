//! examples/sharded_queue.py on a cluster whose slots move meanwhile.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::resharding::assert_nothing_left;
use crate::support::cluster::Cluster;
use crate::support::{root, skipped};

/// A Python that has redis-py: the system's, or that of tools/install/python.sh.
fn python() -> Option<PathBuf> {
    let has_redis = |python: &PathBuf| {
        let import = Command::new(python)
            .args(["-c", "import redis.cluster"])
            .stderr(Stdio::null())
            .status();
        import.is_ok_and(|status| status.success())
    };
    let venv = root().join("target/venv/bin/python");
    [PathBuf::from("python3"), venv].into_iter().find(has_redis)
}

#[test]
fn the_example_works_off_all_jobs() {
    let Some(python) = python() else {
        return skipped("needs redis-py: tools/install/python.sh");
    };
    let cluster = Cluster::start(3);
    let port = cluster.nodes[0].port().to_string();
    let example = root().join("examples/sharded_queue.py");
    let mut child = Command::new(python)
        .arg(example)
        .args(["--jobs", "3000", "--shards", "6", "--port", &port])
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut said = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("text");
    assert_eq!(line, "1000 of 3000 jobs handled\n");
    for shard in 0..6 {
        let key = format!("orders:{{{shard}}}");
        let from = cluster.node_of(&key);
        cluster.move_slot(cluster.slot_of(&key), from, (from + 1) % 3);
    }
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("text");
    assert!(child.wait().expect("it ends").success(), "{rest}");
    assert!(
        rest.contains("3000 jobs handled, 0 of them again, 0 left"),
        "{rest}"
    );
    cluster.nodes.iter().for_each(assert_nothing_left);
}
