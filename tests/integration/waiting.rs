//! Clients that wait in DQ.BPOP.

use std::time::Duration;

use crate::probe::{fits, show};
use crate::scene::{now_ms, pair, Delivery, Lines, Scene};
use crate::support::{raw, wait_until, Raw, Reply, Server, PATIENCE};

fn nil(reply: &Reply) -> bool {
    *reply == Reply::NullArray
}

#[test]
fn first_come_first_served() {
    let server = Server::start();
    let mut line: Vec<Raw> = (0..20).map(|_| server.waiting("DQ.BPOP q 0")).collect();
    let mut client = server.raw();
    // Half of the jobs come at once, in one transaction; clients are served in the order of their coming.
    client.begin("MULTI");
    (0..10).for_each(|number| client.begin(&format!("DQ.ADD q j{number} x")));
    client.begin("EXEC");
    (0..12).for_each(|_| drop(client.read()));
    for (number, waiting) in line.iter_mut().enumerate() {
        if number >= 10 {
            client.says(&format!("DQ.ADD q j{number} x"), &format!("'j{number}'"));
        }
        assert_eq!(waiting.delivery().id, format!("j{number}"));
    }
    server.wait_for_blocked(0);
}

#[test]
fn first_come_first_served_across_keys() {
    let server = Server::start();
    let mut first = server.waiting("DQ.BPOP a b 0");
    let mut second = server.waiting("DQ.BPOP b 0");
    let mut third = server.waiting("DQ.BPOP c b a 0");
    let mut client = server.raw();
    client.says("DQ.ADD b 1 x", "'1'");
    assert_eq!(first.delivery().id, "1");
    client.says("DQ.ADD a 2 x", "'2'");
    assert_eq!(third.delivery().key, "a", "the second does not wait on it");
    client.says("DQ.ADD b 3 x", "'3'");
    assert_eq!(second.delivery().id, "3");
}

#[test]
fn a_newcomer_does_not_pass_those_in_line() {
    // The job comes, and in the same packet a new client asks for it: the client that waited gets it. A job from a
    // transaction is delivered by the timer, which has not fired when the new client asks.
    let server = Server::start();
    let together: &[&str] = &["MULTI", "DQ.ADD q 1 x", "EXEC"];
    for lines in [&["DQ.ADD q 1 x"], together] {
        let mut first = server.waiting("DQ.BPOP q 0");
        let mut late = server.raw();
        let mut bytes = Vec::new();
        for line in [lines, &["DQ.BPOP q 0"]].concat() {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            bytes.extend(raw::encode(&words));
        }
        late.send(&bytes);
        assert_eq!(first.delivery().id, "1", "{lines:?}");
        lines.iter().for_each(|_| drop(late.read()));
        server.wait_for_blocked(1);
        let mut other = server.raw();
        other.says("DQ.ADD q 2 x", "'2'");
        assert_eq!(late.delivery().id, "2");
        other.says("DQ.PURGE q RESERVED", "2");
    }
}

#[test]
fn keys_are_looked_at_in_their_order() {
    let server = Server::start();
    let mut client = server.raw();
    for key in ["k1", "k2", "k3"] {
        client.says(&format!("DQ.ADD {key} of-{key} x"), &format!("'of-{key}'"));
    }
    client.says("DQ.PAUSE k2", "+OK");
    for key in ["k3", "k1"] {
        client.begin("DQ.BPOP none k2 k3 k1 0");
        assert_eq!(client.delivery().key, key);
    }
    client.begin("DQ.BPOP none k2 k3 k1 0.01");
    assert!(nil(&client.read()));
}

/// Guards against the server's own timeouts, whose precision is that of its 10 Hz cron.
#[test]
fn timeouts_are_punctual() {
    let server = Server::start();
    let mut client = server.raw();
    let mut overshoot = |command: &str| {
        let mut late_us: Vec<u128> = (0..15)
            .map(|round| {
                // Not in step with the cron.
                let timeout = Duration::from_millis(60 + 13 * round);
                let start = std::time::Instant::now();
                client.begin(&format!("{command} none {}", timeout.as_secs_f64()));
                assert!(nil(&client.read()));
                let waited = start.elapsed();
                assert!(
                    waited >= timeout,
                    "{command} ended after {waited:?} of {timeout:?}"
                );
                (waited - timeout).as_micros()
            })
            .collect();
        late_us.sort_unstable();
        late_us
    };
    // By a busy machine some are late; with the cron a quarter would be by 25 ms, against 50.
    let is_punctual = |&(own, built_in): &(u128, u128)| own * 3 < built_in;
    let mut tries = Vec::new();
    while tries.len() < 4 && !tries.last().is_some_and(is_punctual) {
        let (own, built_in) = (overshoot("DQ.BPOP"), overshoot("BLPOP"));
        tries.push((own[own.len() / 4], built_in[built_in.len() / 2]));
    }
    assert!(
        tries.last().is_some_and(is_punctual),
        "us that DQ.BPOP and BLPOP are late: {tries:?}"
    );
    assert_eq!(server.blocked(), 0);
}

#[test]
fn many_timeouts_end_in_their_order() {
    let server = Server::start();
    let mut clients: Vec<Raw> = (0..100).map(|_| server.raw()).collect();
    let begun = now_ms();
    for (number, client) in clients.iter_mut().enumerate() {
        client.begin(&format!(
            "DQ.BPOP q{} q 0.{:03}",
            number % 7,
            300 - 2 * number
        ));
    }
    for (number, client) in clients.iter_mut().enumerate().rev() {
        assert!(nil(&client.read()));
        assert!(now_ms() >= begun + 300 - 2 * number as u64);
    }
    server.wait_for_blocked(0);
    assert_eq!(server.number("dq", "dq_waiting_clients"), 0);
}

#[test]
fn does_not_block_where_the_server_cannot() {
    let server = Server::start();
    let mut client = server.raw();
    client.says("MULTI", "+OK");
    for line in [
        "DQ.BPOP q 0",
        "DQ.BPOP q 0 COUNT 5",
        "DQ.ADD q a x",
        "DQ.BPOP q 0",
    ] {
        client.says(line, "+QUEUED");
    }
    let replies = client.ask("EXEC");
    let expected = "[ nil* nil* 'a' [ 'q' 'a' 'x' ? 1 ? ] ]";
    assert!(fits(&replies, expected), "{replies}");

    let script: &[u8] =
        b"local r = redis.call('DQ.BPOP', KEYS[1], 0); return type(r) == 'table' and r[2] or r";
    assert_eq!(client.call(&[b"EVAL", script, b"1", b"q"]), Reply::NullBulk);
    client.says("DQ.ADD q b x", "'b'");
    assert_eq!(
        client.call(&[b"EVAL", script, b"1", b"q"]),
        Reply::bulk("b")
    );
    let script: &[u8] =
        b"redis.call('DQ.ADD','q','b','x','REPLACE') return redis.call('DQ.BPOP','none','q','0','NOACK')";
    assert_eq!(
        show(&client.call(&[b"EVAL", script, b"1", b"q"])),
        "[ 'q' 'b' 'x' nil$ 1 nil$ ]"
    );

    let library = b"#!lua name=lib\nredis.register_function('pop', function(keys) \
        local r = redis.call('DQ.BPOP', keys[1], 0); return type(r) == 'table' and r[2] or r end)";
    assert_eq!(
        client.call(&[b"FUNCTION", b"LOAD", library]),
        Reply::bulk("lib")
    );
    assert_eq!(
        client.call(&[b"FCALL", b"pop", b"1", b"q"]),
        Reply::NullBulk
    );
    client.says("DQ.ADD q c x", "'c'");
    assert_eq!(
        client.call(&[b"FCALL", b"pop", b"1", b"q"]),
        Reply::bulk("c")
    );
    assert_eq!(server.blocked(), 0);
    assert_eq!(server.number("dq", "dq_waiting_clients"), 0);
}

#[test]
fn client_unblock() {
    let server = Server::start();
    let mut client = server.raw();
    let mut waiting = server.raw();
    let id = waiting.int("CLIENT ID");
    waiting.begin("DQ.BPOP q r 0");
    server.wait_for_blocked(1);
    client.says(&format!("CLIENT UNBLOCK {id} TIMEOUT"), "1");
    assert!(nil(&waiting.read()));
    waiting.begin("DQ.BPOP q r 0");
    server.wait_for_blocked(1);
    client.says(&format!("CLIENT UNBLOCK {id} ERROR"), "1");
    let said = "-UNBLOCKED client unblocked via CLIENT UNBLOCK";
    assert_eq!(waiting.reply(), said);
    server.wait_for_blocked(0);
    client.says(&format!("CLIENT UNBLOCK {id}"), "0");
    assert_eq!(
        server.number("dq", "dq_waiting_clients"),
        0,
        "both have left the line"
    );
    // No disconnected client takes the next job.
    client.says("DQ.ADD q a x", "'a'");
    waiting.begin("DQ.BPOP r q 0");
    assert_eq!(waiting.delivery().attempts, 1);
}

#[test]
fn a_client_that_is_gone_takes_nothing() {
    let server = Server::start();
    let mut client = server.raw();
    for end in ["kill", "hang up"] {
        let mut first = server.raw();
        let id = first.int("CLIENT ID");
        first.begin("DQ.BPOP q 0 NOACK");
        server.wait_for_blocked(1);
        let mut second = server.waiting("DQ.BPOP q 0");
        if end == "kill" {
            client.says(&format!("CLIENT KILL ID {id}"), "1");
        } else {
            drop(first);
        }
        server.wait_for_blocked(1);
        client.says("DQ.ADD q a x", "'a'");
        assert_eq!(second.delivery().attempts, 1, "{end}");
        client.says("DQ.ACK q a", "1");
    }
    // Killed in the transaction that adds the job for which it was next.
    let mut first = server.raw();
    let id = first.int("CLIENT ID");
    first.begin("DQ.BPOP q 0 NOACK");
    server.wait_for_blocked(1);
    client.begin("MULTI");
    client.begin("DQ.ADD q b x");
    client.begin(&format!("CLIENT KILL ID {id}"));
    client.begin("EXEC");
    (0..4).for_each(|_| drop(client.read()));
    server.wait_for_blocked(0);
    client.says("DQ.LEN q READY", "1");
}

#[test]
fn a_job_in_a_dead_hand_comes_back() {
    let server = Server::start();
    let mut client = server.raw();
    let waiting = server.waiting("DQ.BPOP q 0 TTR 200");
    client.says("DQ.ADD q a x", "'a'");
    drop(waiting); // it may have been told or not
    client.begin("DQ.BPOP q 0");
    let again = client.delivery();
    assert_eq!(again.id, "a");
    assert!(again.attempts <= 2);
}

#[test]
fn demotion_unblocks() {
    let (master, other) = (Server::start(), Server::start());
    let mut waiting = [
        master.waiting("DQ.BPOP q 0"),
        master.waiting("DQ.BPOP q r 5"),
    ];
    master.follow(&other);
    for client in &mut waiting {
        assert!(client.reply().starts_with("-UNBLOCKED "));
    }
    master.wait_for_blocked(0);
    assert_eq!(master.number("dq", "dq_waiting_clients"), 0);
    master.wait_for_link();
    let refused = master.raw().ask("DQ.BPOP q 0");
    assert!(refused.starts_with("-READONLY "), "{refused}");
    // After promotion it continues as a master.
    master.promote();
    let mut waiting = master.waiting("DQ.BPOP q 0");
    master.raw().says("DQ.ADD q a x DELAY 50", "'a'");
    assert_eq!(waiting.delivery().id, "a");
}

/// Guards against signalling the key, which would call every client that waits on it.
#[test]
fn a_wake_up_costs_the_same_with_thousands_waiting() {
    const ROUNDS: usize = 400;
    let cost = |waiters: usize| {
        // Idle threads that look for work would take processor time.
        let server = Server::builder()
            .config("maxclients", 20_000)
            .config("io-threads", 1)
            .start();
        let mut client = server.raw();
        client.says("DQ.CFGSET q", "+OK");
        let mut line: Vec<Raw> = (0..waiters).map(|_| server.raw()).collect();
        for waiting in &mut line {
            waiting.begin("DQ.BPOP q 0 NOACK");
        }
        server.wait_for_blocked(waiters);
        let before = server.cpu();
        for round in 0..ROUNDS {
            client.says(&format!("DQ.ADD q {round} x"), &format!("'{round}'"));
            // A client that was served goes to the end of the line, which may be its beginning.
            let served = &mut line[round % waiters];
            if served.try_read(Duration::from_secs(20)).is_none() {
                panic!("the {round}th job went to somebody else");
            }
            served.begin("DQ.BPOP q 0 NOACK");
            if waiters == 1 {
                server.wait_for_blocked(1);
            }
        }
        (server.cpu() - before) / ROUNDS as f64 * 1e6
    };
    let (one, many) = (cost(1), cost(5000));
    println!("{one:.0} us of CPU per wake-up with one waiting, {many:.0} with 5000");
    assert!(
        many < 4.0 * one.max(50.0),
        "{one:.0} us with one waiting, {many:.0} us with 5000"
    );
}

#[test]
fn an_empty_queue_is_kept_for_those_who_wait() {
    let (master, replica) = pair(Server::builder());
    let mut client = master.raw();
    let mut first = master.waiting("DQ.BPOP q 0");
    let second = master.waiting("DQ.BPOP q 0");
    client.says("EXISTS q", "0");
    client.says("DQ.ADD q a x", "'a'");
    assert_eq!(first.delivery().id, "a");
    client.says("DQ.ACK q a", "1");
    client.says("EXISTS q", "1");
    replica.assert_same_data_as(&master);
    replica.raw().says("EXISTS q", "1");
    drop(second);
    wait_until("the key goes with the last who waits", PATIENCE, || {
        client.int("EXISTS q") == 0
    });
    replica.assert_same_data_as(&master);
    replica.raw().says("EXISTS q", "0");

    // By a timeout, by CLIENT UNBLOCK, by a job on another key.
    for way in ["timeout", "unblock", "other key"] {
        let mut waiting = master.raw();
        let id = waiting.int("CLIENT ID");
        let timeout = if way == "timeout" { 1.0 } else { 0.0 };
        waiting.begin(&format!("DQ.BPOP q other {timeout} NOACK"));
        master.wait_for_blocked(1);
        client.says("DQ.ADD q a x DELAY 60000", "'a'");
        client.says("DQ.DEL q a", "1");
        client.says("EXISTS q", "1");
        match way {
            "unblock" => client.says(&format!("CLIENT UNBLOCK {id}"), "1"),
            "other key" => client.says("DQ.ADD other o x", "'o'"),
            _ => {}
        }
        waiting.read();
        wait_until(format!("the key goes after {way}"), PATIENCE, || {
            client.int("EXISTS q other") == 0
        });
    }
    replica.assert_same_data_as(&master);
    assert_eq!(replica.raw().int("DBSIZE"), 0);
}

/// In the other database no client waits for that name.
#[test]
fn a_queue_kept_for_those_who_wait_goes_when_databases_are_swapped() {
    let server = Server::start();
    let mut client = server.raw();
    for (from, to) in [(0, 1), (1, 0), (3, 0)] {
        client.run(&format!("SELECT {from}"));
        let mut waiting = server.raw();
        waiting.run(&format!("SELECT {from}"));
        client.says("DQ.ADD q a x DELAY 3600000", "'a'");
        waiting.begin("DQ.BPOP q 0");
        server.wait_for_blocked(1);
        client.says("DQ.DEL q a", "1");
        client.says("EXISTS q", "1");
        client.says(&format!("SWAPDB {from} {to}"), "+OK");
        client.run(&format!("SELECT {to}"));
        wait_until(format!("it goes, {from} to {to}"), PATIENCE, || {
            client.int("EXISTS q") == 0
        });
        // The waiting client is served in its own database.
        client.run(&format!("SELECT {from}"));
        client.says("DQ.ADD q b x", "'b'");
        assert_eq!(waiting.delivery().id, "b");
        client.says("DQ.ACK q b", "1");
        drop(waiting);
        server.wait_for_blocked(0);
    }
}

#[test]
fn noack_passes_those_whom_maxreserved_holds_back() {
    let server = Server::start();
    let mut client = server.raw();
    client.says("DQ.CFGSET q MAXRESERVED 1", "+OK");
    client.says("DQ.ADD q a x", "'a'");
    client.run("DQ.POP q");
    let mut leasing = server.waiting("DQ.BPOP q 0");
    let mut noack = server.waiting("DQ.BPOP q 0 NOACK");
    client.says("DQ.ADD q b x", "'b'");
    assert_eq!(noack.delivery().id, "b");
    client.says("DQ.ADD q c x", "'c'");
    client.says("DQ.ACK q a", "1");
    assert_eq!(leasing.delivery().id, "c");
}

#[test]
fn a_slow_reader_stalls_nobody() {
    let server = Server::start();
    let mut client = server.raw();
    let payload = vec![b'x'; 1 << 20];
    // The client does not read its reply: 16 MiB, more than a socket's buffer.
    let mut slow = server.waiting("DQ.BPOP q 0 COUNT 64");
    client.begin("MULTI");
    for number in 0..16 {
        client.send(&raw::encode(&[
            b"DQ.ADD",
            b"q",
            number.to_string().as_bytes(),
            &payload,
        ]));
    }
    client.begin("EXEC");
    (0..18).for_each(|_| drop(client.read()));
    server.wait_for_blocked(0);
    let mut quick = server.waiting("DQ.BPOP q 0");
    client.says("DQ.ADD q next y", "'next'");
    assert_eq!(quick.delivery().id, "next");
    client.says("DQ.LEN q RESERVED", "17");
    let Reply::Array(parts) = slow.read() else {
        panic!("no reply");
    };
    assert!(matches!(&parts[1], Reply::Array(jobs) if jobs.len() == 16));
}

#[test]
fn commands_behind_a_wait_come_after_it() {
    let server = Server::start();
    let mut client = server.raw();
    let mut bytes = raw::encode(&[b"DQ.BPOP", b"q", b"0"]);
    bytes.extend(raw::encode(&[b"DQ.LEN", b"q", b"RESERVED"]));
    bytes.extend(raw::encode(&[b"DQ.BPOP", b"q", b"0.05"]));
    bytes.extend(raw::encode(&[b"DQ.BPOP", b"q", b"0", b"NOACK"]));
    bytes.extend(raw::encode(&[b"PING"]));
    let mut waiting = server.raw();
    waiting.send(&bytes);
    server.wait_for_blocked(1);
    assert_eq!(waiting.try_read(Duration::from_millis(50)), None);
    client.says("DQ.ADD q a x", "'a'");
    assert_eq!(waiting.delivery().id, "a");
    assert_eq!(waiting.read(), Reply::Integer(1));
    assert!(nil(&waiting.read()), "the wait of 50 ms");
    client.says("DQ.ADD q b x", "'b'");
    assert_eq!(waiting.delivery().deadline, 0);
    assert_eq!(waiting.read(), Reply::Simple("PONG".into()));
}

#[test]
fn thousands_of_short_waits_leave_nothing_behind() {
    let server = Server::start();
    let mut clients: Vec<Raw> = (0..50).map(|_| server.raw()).collect();
    for round in 0..40 {
        for (number, client) in clients.iter_mut().enumerate() {
            let timeout = 0.001 + (number % 5) as f64 / 1000.0;
            client.begin(&format!(
                "DQ.BPOP a{} a b{} {timeout} NOACK",
                number % 3,
                round % 4
            ));
        }
        clients[0].begin(&format!("DQ.ADD a{} {round} x", round % 3));
        let first = clients[0].read();
        assert!(
            nil(&first) || Delivery::of(&first).is_some(),
            "{}",
            show(&first)
        );
        assert_eq!(clients[0].read(), Reply::bulk(round.to_string()));
        for client in &mut clients[1..] {
            client.read();
        }
    }
    server.wait_for_blocked(0);
    assert_eq!(server.number("dq", "dq_waiting_clients"), 0);
    let mut client = server.raw();
    for key in ["a0", "a1", "a2"] {
        client.run(&format!("DQ.POP {key} COUNT 1000 NOACK"));
    }
    wait_until("all keys are gone", PATIENCE, || client.int("DBSIZE") == 0);
}
