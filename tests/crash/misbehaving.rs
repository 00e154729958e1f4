//! Clients that misbehave: they disconnect while they wait, are disconnected by others, send partial commands, do not
//! read, never acknowledge. Their jobs come back, and nothing of them is left behind.

use std::collections::HashMap;
use std::time::Duration;

use redis::{cmd, Value};

use crate::cmd;
use crate::history::Delivery;
use crate::link::{deliveries, number};
use crate::rng::Rng;
use crate::support::raw::encode;
use crate::support::{poll, wait_until, Client, Raw, Server, PATIENCE};

fn number_of(server: &Server, section: &str, field: &str) -> usize {
    server.info(section, field).parse().expect("a number")
}

#[track_caller]
fn nobody_waits(server: &Server) {
    for (section, field) in [("clients", "blocked_clients"), ("dq", "dq_waiting_clients")] {
        wait_until(format!("{field} is 0"), PATIENCE, || {
            number_of(server, section, field) == 0
        });
    }
}

#[track_caller]
fn wait_for_blocked(server: &Server, count: usize) {
    wait_until(format!("{count} clients wait"), PATIENCE, || {
        number_of(server, "clients", "blocked_clients") == count
    });
}

fn add(client: &mut Client, ids: impl IntoIterator<Item = usize>) {
    for id in ids {
        cmd!(client, "DQ.ADD", "q", format!("j{id}"), "x");
    }
}

/// Takes and acknowledges everything until the queue is empty; returns the deliveries, by id.
#[track_caller]
fn take_all(server: &Server) -> HashMap<String, Delivery> {
    let mut client = server.connect();
    let mut taken = HashMap::new();
    wait_until("the queue is empty", PATIENCE, || {
        let answer = cmd!(client, "DQ.POP", "q", "COUNT", 8, "TTR", 600_000);
        for job in deliveries(&answer, Some("q")) {
            let token = job.lease.expect("a lease").token;
            let acked = cmd!(client, "DQ.ACK", "q", "WITHTOKENS", &job.id, token);
            assert_eq!(acked, Value::Int(1));
            let before = taken.insert(job.id.clone(), job);
            assert_eq!(before, None, "a job that was acknowledged");
        }
        cmd!(client, "DQ.LEN", "q") == Value::Int(0)
    });
    taken
}

/// Some disconnect and some are killed while jobs are delivered; a job that was delivered to one of them comes back
/// when its lease expires.
#[test]
fn thousands_vanish_while_they_wait() {
    const CLIENTS: usize = 2500;
    const ROUNDS: usize = 20;
    let server = Server::start();
    let mut rng = Rng::new(7);
    let mut waiting: Vec<(Client, u64)> = (0..CLIENTS)
        .map(|_| {
            let mut client = server.connect();
            let id = number(&cmd!(client, "CLIENT", "ID"));
            client.send(cmd("DQ.BPOP").arg(&["p", "q", "0", "TTR", "150"]));
            (client, id)
        })
        .collect();
    wait_for_blocked(&server, CLIENTS);
    let mut client = server.connect();
    let mut added = 0;
    for _ in 0..ROUNDS {
        for _ in 0..CLIENTS / ROUNDS / 2 {
            let at = rng.below(waiting.len() as u64) as usize;
            let (gone, id) = waiting.swap_remove(at);
            match rng.one_in(2) {
                true => drop(gone),
                false => drop(cmd!(client, "CLIENT", "KILL", "ID", id)),
            }
            if rng.one_in(3) {
                add(&mut client, [added]);
                added += 1;
            }
        }
    }
    cmd!(client, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    drop(waiting);
    nobody_waits(&server);
    let taken = take_all(&server);
    assert_eq!(taken.len(), added);
    assert!(taken.values().any(|job| job.attempts > 1));
}

/// Every client gets a job, nil or an error, and every job is reserved by a client or still in the queue.
#[test]
fn storms_of_unblock() {
    const ROUNDS: usize = 25;
    let server = Server::start();
    let mut rng = Rng::new(8);
    let mut clients: Vec<(Client, u64)> = (0..60)
        .map(|_| {
            let mut client = server.connect();
            let id = number(&cmd!(client, "CLIENT", "ID"));
            (client, id)
        })
        .collect();
    let mut storm = server.connect();
    let (mut added, mut handed, mut refused) = (0, 0, 0);
    for _ in 0..ROUNDS {
        for (client, _) in &mut clients {
            client.send(cmd("DQ.BPOP").arg(&["q", "r", "0", "TTR", "600000"]));
        }
        let mut pipe = redis::pipe();
        for (_, id) in &clients {
            if rng.one_in(3) {
                pipe.cmd("DQ.ADD")
                    .arg("q")
                    .arg(format!("j{added}"))
                    .arg("x");
                added += 1;
            }
            let how = *rng.pick(&["TIMEOUT", "ERROR"]);
            pipe.cmd("CLIENT").arg("UNBLOCK").arg(id).arg(how);
        }
        pipe.exec(&mut storm).expect("answers");
        // Including those that began to wait only after it.
        wait_until("nobody waits", PATIENCE, || {
            for (_, id) in &clients {
                cmd!(storm, "CLIENT", "UNBLOCK", id);
            }
            number_of(&server, "clients", "blocked_clients") == 0
        });
        for (client, _) in &mut clients {
            match client.receive() {
                Ok(answer) => {
                    for job in deliveries(&answer, None) {
                        assert_eq!(job.attempts, 1);
                        let acked = cmd!(storm, "DQ.ACK", "q", &job.id);
                        assert_eq!(acked, Value::Int(1));
                        handed += 1;
                    }
                }
                Err(error) => {
                    assert!(error.starts_with("UNBLOCKED"), "{error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(handed > 0 && refused > 0, "{handed} {refused}");
    let left = take_all(&server);
    assert!(left.values().all(|job| job.attempts == 1));
    assert_eq!(handed + left.len(), added);
    nobody_waits(&server);
}

/// A partial command does nothing, and the complete ones before it are carried out.
#[test]
fn halves_of_packets() {
    let server = Server::start();
    let mut rng = Rng::new(9);
    let whole: Vec<Vec<u8>> = [
        &[b"DQ.ADD".as_slice(), b"q", b"half", b"payload"][..],
        &[b"DQ.BPOP", b"q", b"0", b"TTR", b"100"],
        &[b"DQ.POP", b"q", b"COUNT", b"10"],
        &[b"DQ.CFGSET", b"q", b"RATE", b"1", b"100000"],
        &[b"DQ.DEL", b"q", b"j0"],
    ]
    .map(encode)
    .to_vec();
    let mut client = server.connect();
    let mut clients: Vec<Raw> = Vec::new();
    for round in 0..400 {
        let mut raw = server.raw();
        let packet = rng.pick(&whole);
        if rng.one_in(2) {
            raw.send(&whole[1]);
        }
        raw.send(&packet[..rng.within(1, packet.len() as u64 - 1) as usize]);
        clients.push(raw);
        if rng.one_in(2) {
            let at = rng.below(clients.len() as u64) as usize;
            drop(clients.swap_remove(at));
        }
        if round % 20 == 0 {
            add(&mut client, [round]);
        }
    }
    drop(clients);
    nobody_waits(&server);
    let taken = take_all(&server);
    assert_eq!(taken.len(), 20);
    assert!(!taken.contains_key("half"));
    assert_eq!(
        cmd!(client, "EXISTS", "q"),
        Value::Int(0),
        "nobody configured it"
    );
}

/// The server disconnects clients that do not read; the jobs in their replies come back.
#[test]
fn readers_that_do_not_read() {
    const JOBS: usize = 600;
    let server = Server::builder()
        .config("client-output-buffer-limit", "normal 1mb 0 0")
        .start();
    let mut client = server.connect();
    let payload = vec![b'x'; 100_000];
    for id in 0..JOBS {
        cmd!(client, "DQ.ADD", "q", format!("j{id}"), &payload);
    }
    let before = number_of(&server, "clients", "connected_clients");
    let mut clients: Vec<Raw> = (0..4).map(|_| server.raw()).collect();
    let pop = encode(&[b"DQ.POP", b"q", b"TTR", b"200"]);
    for raw in &mut clients {
        raw.send(&pop.repeat(JOBS / 4));
    }
    wait_until("who does not read is thrown out", PATIENCE, || {
        number_of(&server, "clients", "connected_clients") <= before
    });
    let taken = take_all(&server);
    assert_eq!(taken.len(), JOBS);
    assert!(taken.values().any(|job| job.attempts > 1));
    drop(clients);
    nobody_waits(&server);
}

/// The consumer takes all jobs it can get, for as long as it lives, and finishes none.
#[test]
fn a_consumer_that_never_acks() {
    const JOBS: usize = 200;
    let server = Server::start();
    let mut client = server.connect();
    add(&mut client, 0..JOBS);
    for id in 0..JOBS {
        let id = format!("mortal{id}");
        cmd!(client, "DQ.ADD", "q", id, "x", "ATTEMPTS", 3);
    }
    let mut consumer = server.connect();
    let mut deliveries_seen = 0;
    wait_until("those with ATTEMPTS are dead", PATIENCE, || {
        let answer = cmd!(consumer, "DQ.BPOP", "q", "0.05", "COUNT", 150, "TTR", 20);
        deliveries_seen += deliveries(&answer, None).len();
        cmd!(client, "DQ.LEN", "q", "DEAD") == Value::Int(JOBS as i64)
    });
    assert!(deliveries_seen > 3 * JOBS);
    consumer.send(cmd("DQ.BPOP").arg(&["q", "0", "TTR", "20"]));
    poll(Duration::from_millis(30), || None::<()>);
    drop(consumer);
    let taken = take_all(&server);
    assert_eq!(taken.len(), JOBS);
    assert!(taken.values().all(|job| job.attempts > 1));
    let kicked = cmd!(client, "DQ.KICK", "q", "COUNT", JOBS);
    assert_eq!(kicked, Value::Int(JOBS as i64));
    let taken = take_all(&server);
    assert!(taken.len() == JOBS && taken.values().all(|job| job.attempts == 1));
    nobody_waits(&server);
}
