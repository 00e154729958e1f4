//! The keys of DQ.BPOP after the first, which the command checks itself as the server checks the first.

use crate::probe::show;
use crate::scene::{Lines, Scene};
use crate::support::{Raw, Server};

fn login(server: &Server, user: &str) -> Raw {
    let mut client = server.raw();
    client.says(&format!("AUTH {user} x"), "+OK");
    client
}

/// A server with a job in each of two queues, and users.
fn with_users(users: &[(&str, &str)]) -> (Server, Raw) {
    let server = Server::start();
    let mut admin = server.raw();
    for (user, rules) in users {
        admin.says(&format!("ACL SETUSER {user} on nopass {rules}"), "+OK");
    }
    (server, admin)
}

#[test]
fn are_refused_in_the_words_of_the_server() {
    let (server, mut admin) = with_users(&[("worker", "~q* +@all"), ("writer", "%W~x ~q +@all")]);
    admin.run("DQ.ADD x a x");
    admin.run("DQ.ADD q a x");
    let mut worker = login(&server, "worker");
    let refused = worker.ask("BLPOP q x 0.01");
    assert!(refused.starts_with("-NOPERM "), "{refused}");
    for line in [
        "DQ.BPOP q x 0",
        "DQ.BPOP q q2 x 0 NOACK",
        "DQ.BPOP q x q2 0 COUNT 2 TTR 5",
        "DQ.BPOP x q 0",
    ] {
        worker.says(line, &refused);
    }
    // To read and to write, both.
    login(&server, "writer").says("DQ.BPOP q x 0", &refused);
    for line in ["MULTI", "DQ.BPOP q x 0"] {
        worker.run(line);
    }
    assert_eq!(worker.ask("EXEC"), format!("[ {refused} ]"));
    let in_script = |client: &mut Raw| {
        let script = b"return redis.pcall('DQ.BPOP', KEYS[1], 'x', 0)";
        show(&client.call(&[b"EVAL", script, b"1", b"q"]))
    };
    let reply = in_script(&mut worker);
    assert!(reply.starts_with("-NOPERM "), "{reply}");
    // Nothing was taken.
    admin.says("DQ.LEN q READY", "1");
    admin.says("DQ.LEN x READY", "1");
    let log = admin.ask("ACL LOG 100");
    assert!(log.contains("'key'") && log.contains("'worker'"), "{log}");
    let reply = in_script(&mut admin);
    assert!(reply.starts_with("[ 'q' 'a' "), "{reply}");
    admin.begin("DQ.BPOP q x 0");
    assert_eq!(admin.delivery().key, "x");
    assert_eq!(server.blocked(), 0);
}

/// A user may have several sets of rules, each with its own commands.
#[test]
fn need_the_command_as_well() {
    let (server, mut admin) = with_users(&[
        ("reader", "+dq.bpop ~a* (+dq.get ~b*)"),
        ("both", "+dq.bpop ~a* (+dq.bpop ~b*)"),
        ("nearly", "~* +@all -dq.bpop (+dq.bpop ~a*)"),
    ]);
    admin.run("DQ.ADD b a x");
    for user in ["reader", "nearly"] {
        let mut client = login(&server, user);
        let reply = client.ask("DQ.BPOP a b 0");
        assert!(reply.starts_with("-NOPERM "), "{user}: {reply}");
        client.says("DQ.BPOP a a2 0.01", "nil*");
    }
    let mut both = login(&server, "both");
    both.begin("DQ.BPOP a b 0");
    assert_eq!(both.delivery().key, "b");
}

/// As BLPOP is run again when its key has an element, on servers since 7.2.
#[test]
fn may_be_taken_from_a_user_who_waits() {
    let users = ["loses", "reads", "command", "other_key", "regains"];
    let (server, mut admin) = with_users(&users.map(|user| (user, "~q* +@all")));
    let mut line = users.map(|user| {
        let (mut client, before) = (login(&server, user), server.blocked());
        client.begin("DQ.BPOP q q2 0");
        server.wait_for_blocked(before + 1);
        client
    });
    for rules in [
        "loses resetkeys ~other*",
        "reads resetkeys %R~q ~q2",
        "command -dq.bpop",
        "other_key resetkeys ~q",
        "regains resetkeys",
        "regains ~q*",
    ] {
        admin.says(&format!("ACL SETUSER {rules}"), "+OK");
    }
    // Not before there is a job; then the first client that has permission gets it.
    assert_eq!(server.blocked(), line.len());
    admin.run("DQ.ADD q a x");
    for client in &mut line[..3] {
        let reply = client.reply();
        assert!(reply.starts_with("-NOPERM "), "{reply}");
        client.says("PING", "+PONG");
    }
    assert_eq!(line[3].delivery().id, "a");
    admin.says("DQ.LEN q RESERVED", "1");
    let log = admin.ask("ACL LOG 100");
    assert!(log.contains("'loses'") && log.contains("'reads'"), "{log}");
    admin.run("DQ.ADD q2 b x");
    assert_eq!(line[4].delivery().id, "b");
    // If no client with permission is left, the job stays, undelivered.
    let mut alone = login(&server, "regains");
    alone.begin("DQ.BPOP q3 0");
    server.wait_for_blocked(1);
    admin.says("ACL SETUSER regains resetkeys", "+OK");
    admin.run("DQ.ADD q3 c x");
    assert!(alone.reply().starts_with("-NOPERM "));
    admin.says("DQ.LEN q3 READY", "1");
}

/// Clients are blocked on no key: a key that appears must not make the server call all waiting clients.
#[test]
fn do_not_make_the_first_job_dear() {
    let cost = |waiters: usize| {
        // Idle threads that look for work would take processor time.
        let server = Server::builder()
            .unix_socket()
            .config("maxclients", 20_000)
            .config("io-threads", 1)
            .start();
        let mut line: Vec<Raw> = (0..waiters).map(|_| server.raw()).collect();
        for waiting in &mut line {
            waiting.begin("DQ.BPOP q 0");
        }
        server.wait_for_blocked(waiters);
        let before = server.cpu();
        // Each makes the key anew, as the queue goes with its last job.
        let mut client = server.raw();
        for round in 0..ROUNDS {
            client.says(
                &format!("DQ.ADD p {round} x DELAY 100000"),
                &format!("'{round}'"),
            );
            client.says("RENAME p q", "+OK");
            client.says("DEL q", "1");
        }
        (server.cpu() - before) / waiters as f64
    };
    const ROUNDS: usize = 20;
    let (some, many) = (cost(1000), cost(8000));
    let floor = 1e-6 * ROUNDS as f64;
    println!(
        "{:.2} us a waiter with 1000, {:.2} us with 8000",
        some * 1e6,
        many * 1e6
    );
    assert!(many < 3.0 * some.max(floor), "quadratic");
}
