//! A server's whole life, with an orderly end, for memory checkers. `make asan` and `make valgrind` run it on checked
//! servers, which report leaks at their end.

use crate::memory::is_sanitized;
use crate::scene::Lines;
use crate::support::{skipped, wait_until, Server, PATIENCE};
use crate::traffic::Traffic;

#[test]
fn nothing_is_left_at_the_end() {
    let commands = std::env::var("DQ_COMMANDS").ok();
    let commands = commands.and_then(|commands| commands.parse().ok());
    // A checked server starts slowly.
    let mut server = Server::builder().aof().patience(PATIENCE * 10).start();
    let mut client = server.raw();
    client.says("CONFIG SET notify-keyspace-events KEAd", "+OK");
    for (seed, preamble) in ["yes", "no"].into_iter().enumerate() {
        client.says(
            &format!("CONFIG SET aof-use-rdb-preamble {preamble}"),
            "+OK",
        );
        let mut traffic = Traffic::new(&server, seed as u64);
        traffic.run(commands.unwrap_or(1000));
        traffic.persist();
        let rewritten = client.ask("BGREWRITEAOF");
        assert!(rewritten.starts_with('+'), "{rewritten}");
        traffic.run(100);
        let mut watching = server.connect();
        wait_until("the AOF is rewritten", PATIENCE * 4, || {
            watching
                .info("persistence", "aof_rewrite_in_progress")
                .as_deref()
                == Some("0")
        });
        client.says("DEBUG RELOAD", "+OK");
        client.says("DEBUG LOADAOF", "+OK");
        let reply = client.ask("FLUSHALL");
        assert_eq!(reply, "+OK");
    }
    // Something of all kinds is there when it ends.
    Traffic::new(&server, 9).run(200);
    server.stop();
    server.assert_no_crash();
}

/// A checked server really reports leaks at its end: it has a command that leaks.
#[test]
fn a_leak_is_noticed() {
    let mut server = Server::start();
    if !is_sanitized(&server) {
        // Under valgrind the log of a killed server would be incomplete.
        server.stop();
        return skipped("the server is not built with AddressSanitizer");
    }
    let mut client = server.raw();
    for number in 0..20 {
        client.says(
            &format!("DEBUG LEAK a-string-that-nobody-frees-{number}"),
            "+OK",
        );
    }
    server.stop();
    let crash = server.crash().unwrap_or_default();
    assert!(crash.contains("LeakSanitizer"), "{}", server.log());
    let _ = std::fs::remove_dir_all(server.folder());
    // Dropping it would count the leak report as a crash.
    std::mem::forget(server);
}
