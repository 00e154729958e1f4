//! Broken invariants, which a module built for tests can have. They stop the one command that meets them, loudly, but
//! neither the server nor the timer, and no command on other jobs.

use crate::probe::{data, show};
use crate::scene::{Lines, Scene};
use crate::support::{wait_until, Builder, Raw, Server, PATIENCE};

const BUG: &str = "-ERR internal error, see the server's log";

fn breakable() -> Builder {
    Server::builder().breakable()
}

fn has_logged(server: &Server, bug: &str) -> bool {
    server
        .log()
        .contains(&format!("bug in {bug}, please report: broken invariant: "))
}

#[test]
fn a_broken_job_stops_the_command_that_meets_it() {
    let server = breakable().start();
    let mut client = server.raw();
    for id in ["a", "b", "c"] {
        client.says(&format!("DQ.ADD q {id} x"), &format!("'{id}'"));
    }
    client.says("DQ.BREAK q b", "+OK");
    for command in [
        "DQ.GET q b",
        "DQ.ACK q b",
        "DQ.TOUCH q b",
        "DQ.NACK q b",
        "DQ.DEL q b",
        "DQ.POP q ID b",
    ] {
        assert_eq!(show(&client.run(command)), BUG, "{command}");
        let name = command.split(' ').next().unwrap();
        assert!(has_logged(&server, name), "{command}: {}", server.log());
        assert!(server.log().contains("src/storage/broken.rs:"));
        assert!(
            !server.log().contains("stack backtrace"),
            "it could crash the server"
        );
        client.says("DQ.LEN q", "3");
    }
    // The others can be read, taken and finished.
    assert!(show(&client.run("DQ.GET q a")).contains("'ready'"));
    assert!(show(&client.run("DQ.POP q")).starts_with("[ 'a'"));
    client.says("DQ.ACK q a", "1");
    assert!(show(&client.run("DQ.POP q ID c")).starts_with("[ 'c'"));
    client.says("DEL q", "1");
    client.says("PING", "+PONG");
}

/// A reply that has begun is completed, so that the next reply is that of the next command.
#[test]
fn a_reply_that_has_begun_is_made_whole() {
    let server = breakable().start();
    let mut client = server.raw();
    let broken = |client: &mut Raw| {
        client.run("DEL q");
        for id in ["a", "b", "c"] {
            client.says(&format!("DQ.ADD q {id} x AT 1"), &format!("'{id}'"));
        }
    };
    for (command, good) in [
        ("DQ.POP q COUNT 3", "'a'"),
        ("DQ.BPOP q 1 COUNT 3", "'a'"),
        ("DQ.PEEK q READY COUNT 3", "'a'"),
    ] {
        broken(&mut client);
        client.says("DQ.BREAK q b", "+OK");
        let reply = show(&client.run(command));
        assert!(
            reply.contains(good) && reply.contains(BUG),
            "{command}: {reply}"
        );
        client.says("ECHO next", "'next'");
    }
    broken(&mut client);
    let token = |reply: String| reply.split('\'').nth(5).map(str::to_owned).unwrap();
    let ids = [("a", 60_000), ("b", 70_000), ("c", 80_000)];
    let tokens =
        ids.map(|(id, ttr)| token(show(&client.run(&format!("DQ.POP q ID {id} TTR {ttr}")))));
    client.says("DQ.BREAK q b", "+OK");
    let touch = format!(
        "DQ.TOUCH q IDS 3 a {} b {} c {}",
        tokens[0], tokens[1], tokens[2]
    );
    // Jobs named in the same command may be looked up together with the broken one, and fail with it.
    let reply = show(&client.run(&touch));
    let failed = reply.matches(BUG).count();
    let touched = reply.matches(" 17").count();
    assert!(failed >= 2 && failed + touched == 3, "{reply}");
    client.says("ECHO next", "'next'");
    client.says("DQ.ACK q a", "1");
}

/// What a command did before it was stopped is replicated.
#[test]
fn what_was_done_before_is_replicated() {
    let (master, replica) = (breakable().start(), breakable().start());
    replica.replica_of(&master);
    let mut client = master.raw();
    for id in ["a", "b", "c"] {
        client.says(&format!("DQ.ADD q {id} x AT 1"), &format!("'{id}'"));
    }
    client.says("DQ.BREAK q b", "+OK");
    assert!(show(&client.run("DQ.POP q COUNT 3 TTR 600000")).contains(BUG));
    replica.wait_for_offset_of(&master);
    let shown = |server: &Server| data(&server.raw().run("DQ.GET q a"));
    assert!(shown(&master).contains("'reserved'"));
    assert_eq!(shown(&master), shown(&replica));
    assert!(show(&replica.raw().run("DQ.GET q b")).contains("'ready'"));
}

/// Nothing wakes this server but the timer.
#[test]
fn the_timer_goes_on() {
    let server = breakable().start();
    let mut client = server.raw();
    for (queue, ttr) in [("broken", 1500), ("sound", 1800)] {
        client.says(&format!("DQ.ADD {queue} a x"), "'a'");
        assert!(show(&client.run(&format!("DQ.POP {queue} TTR {ttr}"))).starts_with("[ 'a'"));
    }
    client.says("DQ.BREAK broken a", "+OK");
    let mut waiting = server.waiting("DQ.BPOP sound 0");
    wait_until("the timer's panic", PATIENCE, || {
        has_logged(&server, "the timer's work on 'broken'")
    });
    assert!(waiting.reply().starts_with("[ 'sound' 'a'"));
    // The timer does not give the queue up, but does not spin on it either.
    let panics = || server.log().matches("the timer's work on 'broken'").count();
    wait_until("another try", PATIENCE, || panics() > 1);
    client.says("PING", "+PONG");
}

#[test]
fn a_replica_says_that_it_may_differ() {
    let (master, replica) = (Server::start(), Server::start());
    replica.replica_of(&master);
    let mut client = master.raw();
    client.says("DQ.ADD q a x", "'a'");
    replica.wait_for_offset_of(&master);
    let mut other = replica.raw();
    other.says("CONFIG SET replica-read-only no", "+OK");
    other.says("DEL q", "1");
    client.says("DQ.DEL q a", "1");
    wait_until("a word of it", PATIENCE, || {
        let log = replica.log();
        log.contains("may now differ from its master's") && log.contains("effects on 'q' refused")
    });
}
