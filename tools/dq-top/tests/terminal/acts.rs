//! An operator's actions, and the prompts before them.

use std::collections::HashMap;

use crate::cmd;
use crate::monitor::{address, Monitor};
use crate::support::{wait_until, Client, Server, PATIENCE};
use crate::{ENTER, ESCAPE, PAGE_DOWN};

fn count(client: &mut Client, state: &str) -> i64 {
    redis::from_redis_value(cmd!(client, "DQ.LEN", "q", state)).expect("a number")
}

/// Five dead jobs in the queue `q`.
fn five_dead(client: &mut Client) {
    for id in ["a", "b", "c", "d", "e"] {
        cmd!(client, "DQ.ADD", "q", id, "x");
        cmd!(client, "DQ.POP", "q");
        cmd!(client, "DQ.NACK", "q", id, "FATAL", "REASON", "HTTP 500");
    }
}

fn open_queue(server: &Server) -> Monitor {
    let monitor = Monitor::of(server);
    monitor.wait_for_row("q", |_| true);
    monitor.press(ENTER);
    monitor.wait_for("SETTINGS");
    monitor
}

#[test]
fn dead_jobs_are_kicked_after_a_yes_and_only_then() {
    let server = Server::start();
    let mut client = server.connect();
    five_dead(&mut client);
    let monitor = open_queue(&server);
    monitor.press("5");
    monitor.wait_for("DIED");
    monitor.wait_for("HTTP 500");
    // A question about all of them takes the number from the last look.
    monitor.wait_for("dead 5");
    monitor.press("K");
    monitor.wait_for("All 5 dead jobs of queue \"q\"");
    assert_eq!(count(&mut client, "DEAD"), 5, "nothing yet");
    monitor.press("n");
    monitor.wait_for("nothing was done");
    monitor.wait_for("▌a");
    assert_eq!(count(&mut client, "DEAD"), 5, "nothing at all");
    monitor.press("k");
    monitor.wait_for("The dead job \"a\"");
    monitor.press("y");
    monitor.wait_for("q: kicked 1 job");
    assert_eq!(count(&mut client, "DEAD"), 4);
    monitor.wait_for("dead 4");
    monitor.press("K");
    monitor.wait_for("All 4 dead jobs");
    monitor.press("y");
    monitor.wait_for("q: kicked 4 jobs");
    assert_eq!(
        (count(&mut client, "DEAD"), count(&mut client, "READY")),
        (0, 5)
    );
    monitor.wait_for("No such jobs");
}

#[test]
fn a_job_is_rescheduled_run_now_and_deleted() {
    let server = Server::start();
    let mut client = server.connect();
    cmd!(client, "DQ.ADD", "q", "a", "x", "DELAY", 3_600_000);
    let monitor = open_queue(&server);
    monitor.press("2");
    monitor.wait_for("▌a        in 59m");
    monitor.press("s");
    monitor.wait_for("becomes due after this time");
    monitor.press("5h\r");
    monitor.wait_for("q: due in 5h");
    monitor.wait_for("▌a        in 4h59m");
    monitor.press("s");
    monitor.press("soon\r");
    monitor.wait_for("soon is not a duration");
    monitor.press("n");
    monitor.wait_for("is due now");
    monitor.press("y");
    monitor.wait_for("q: due now");
    assert_eq!(count(&mut client, "READY"), 1);
    monitor.wait_for("No such jobs");
    monitor.press("3");
    monitor.wait("the job is there", |screen| screen.contains("▌a"));
    monitor.press("d");
    monitor.wait_for("The ready job \"a\"");
    monitor.press("y");
    monitor.wait_for("q: deleted 1 job");
    assert_eq!(count(&mut client, "READY"), 0);
}

#[test]
fn a_queue_is_paused_resumed_and_purged() {
    let server = Server::start();
    let mut client = server.connect();
    cmd!(client, "DQ.CFGSET", "q");
    cmd!(client, "DQ.ADD", "q", "a", "x");
    let monitor = Monitor::of(&server);
    monitor.wait_for_row("q", |_| true);
    monitor.press("p");
    monitor.wait_for("delivers nothing");
    monitor.press("1h\r");
    monitor.wait_for("q: paused for 1h");
    assert_eq!(cmd!(client, "DQ.POP", "q"), redis::Value::Nil);
    monitor.press(ENTER);
    monitor.wait_for("paused for 59m");
    monitor.press("p");
    monitor.wait_for("delivers again");
    monitor.press("y");
    monitor.wait_for("q: resumed");
    monitor.press("P");
    monitor.wait_for("This cannot be undone");
    monitor.press("purg\r");
    monitor.wait_for("not done: purge was not typed");
    assert_eq!(count(&mut client, "READY"), 1);
    monitor.press("P");
    monitor.wait_for("This cannot be undone");
    monitor.press(ESCAPE);
    monitor.wait_for("nothing was done");
    monitor.press("Ppurge\r");
    monitor.wait_for("q: purged 1 job");
    assert_eq!(count(&mut client, "READY"), 0);
}

#[test]
fn what_dies_with_a_job_is_said_before() {
    let server = Server::start();
    let mut client = server.connect();
    five_dead(&mut client);
    for number in 0..7 {
        cmd!(client, "DQ.ADD", "q", number, "x", "AFTER", 1, "a");
    }
    cmd!(client, "DQ.ADD", "q", "runs", "x", "AFTER", 1, "a", "ONDEAD", "RUN");
    let monitor = open_queue(&server);
    monitor.press("5");
    monitor.wait_for("▌a");
    monitor.press("d");
    monitor.wait_for("7 blocked jobs die of it:");
    monitor.wait_for("and 2 more");
    monitor.press("n");
    monitor.wait_for("nothing was done");
    monitor.press("P");
    monitor.wait_for("7 blocked jobs die of it:");
    // The message of before may still stand there; and a key on the heels of Escape would be one with it.
    monitor.press(ESCAPE);
    monitor.wait("the question goes", |screen| !screen.contains("die of it"));
    monitor.press("d");
    monitor.wait_for("7 blocked jobs die of it:");
    monitor.press("y");
    monitor.wait_for("q: deleted 1 job");
    assert_eq!(count(&mut client, "DEAD"), 4 + 7);
    assert_eq!(count(&mut client, "READY"), 1);
}

#[test]
fn read_only_changes_nothing() {
    let server = Server::start();
    let mut client = server.connect();
    five_dead(&mut client);
    let arguments = [address(&server), vec!["--read-only".to_owned()]].concat();
    let monitor = Monitor::start(&arguments, &[]);
    monitor.wait_for_row("q", |_| true);
    for key in ["K", "P", "p"] {
        monitor.press(key);
        monitor.wait_for("read-only: nothing can be changed");
        assert!(!monitor.screen().contains("y  do it"));
    }
    assert_eq!(count(&mut client, "DEAD"), 5);
}

#[test]
fn who_works_is_seen_and_only_the_delivery_that_is_shown_is_given_back() {
    let server = Server::start();
    let (mut client, mut worker) = (server.connect(), server.connect());
    cmd!(worker, "CLIENT", "SETNAME", "mailer-1");
    let mut pipe = redis::pipe();
    for number in 0..600 {
        pipe.cmd("DQ.ADD")
            .arg("q")
            .arg(format!("j{number:03}"))
            .arg("x")
            .ignore();
    }
    pipe.exec(&mut client).expect("jobs");
    cmd!(worker, "DQ.POP", "q", "COUNT", 600, "TTR", 3_600_000);
    let monitor = open_queue(&server);
    monitor.press("8");
    monitor.wait_for("500 of 600 jobs");
    monitor.wait_for("mailer-1 (500 jobs)");
    // All 500, a screen at a time, then the others.
    monitor.press(&PAGE_DOWN.repeat(30));
    monitor.wait_for("100 of 600 jobs");
    monitor.press("1");
    cmd!(worker, "DQ.ACK", "q", "IDS", 599, &ids(1..600)[..]);
    monitor.press("8");
    monitor.wait_for("mailer-1 (1 job)");
    monitor.press("g");
    monitor.wait_for("(mailer-1) goes on until it hears of it");
    let token = token_of(&mut client, "j000");
    monitor.wait_for(&token);
    cmd!(client, "DQ.NACK", "q", "j000", "SILENT");
    cmd!(worker, "DQ.POP", "q", "TTR", 3_600_000);
    monitor.press("y");
    monitor.wait_for("q: nothing done: this delivery is over");
    assert_eq!(count(&mut client, "RESERVED"), 1);
    monitor.press(ENTER);
    let token = token_of(&mut client, "j000");
    monitor.wait_for(&token);
    monitor.press("g");
    monitor.press("y");
    monitor.wait_for("q: given back");
    assert_eq!(count(&mut client, "READY"), 1);
    let attempts: i64 = field(&mut client, "j000", "attempts");
    assert_eq!(attempts, 0, "none counts");
}

fn ids(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("j{number:03}")).collect()
}

fn field<T: redis::FromRedisValue>(client: &mut Client, id: &str, name: &str) -> T {
    let reply = cmd!(client, "DQ.GET", "q", id);
    let mut fields: HashMap<String, redis::Value> = redis::from_redis_value(reply).expect("a job");
    redis::from_redis_value(fields.remove(name).expect("a field")).expect("its type")
}

fn token_of(client: &mut Client, id: &str) -> String {
    field(client, id, "token")
}

#[test]
fn a_user_who_may_only_look_is_told_so_and_goes_on_looking() {
    let server = Server::start();
    let mut client = server.connect();
    five_dead(&mut client);
    // The user that the README recommends.
    let readme = include_str!("../../README.md");
    let line = readme
        .lines()
        .find_map(|line| line.trim().strip_prefix("ACL SETUSER viewer "));
    let rules: Vec<&str> = line.expect("a user").split(' ').collect();
    cmd!(client, "ACL", "SETUSER", "viewer", &rules[..]);
    let arguments = [
        address(&server),
        vec!["--user".to_owned(), "viewer".to_owned()],
    ]
    .concat();
    let monitor = Monitor::start(&arguments, &[("REDISCLI_AUTH", "secret")]);
    monitor.wait_for_row("q", |row| row[4] == "5");
    monitor.press("K");
    monitor.wait_for("All 5 dead jobs");
    monitor.press("y");
    monitor.wait_for("q: NOPERM");
    assert_eq!(count(&mut client, "DEAD"), 5);
    cmd!(client, "DQ.KICK", "q", "COUNT", 1);
    monitor.wait_for_row("q", |row| row[4] == "4");
    // Now the user may not even read it: the row says so, and shows figures again once reading is
    // allowed.
    cmd!(client, "ACL", "SETUSER", "viewer", "-dq.stats");
    monitor.wait_for_row("q", |row| row.contains(&"NOPERM"));
    cmd!(client, "ACL", "SETUSER", "viewer", "+dq.stats");
    monitor.wait_for_row("q", |row| row[4] == "4");
}

#[test]
fn a_crowd_of_dead_jobs_is_kicked_in_steps() {
    let server = Server::start();
    let mut client = server.connect();
    cmd!(client, "DQ.CFGSET", "q", "ATTEMPTS", 1, "TTR", 1);
    let mut pipe = redis::pipe();
    for number in 0..2500 {
        pipe.cmd("DQ.ADD").arg("q").arg(number).arg("x").ignore();
    }
    pipe.exec(&mut client).expect("jobs");
    cmd!(client, "DQ.POP", "q", "COUNT", 2500);
    wait_until("all are dead", PATIENCE, || {
        count(&mut client, "DEAD") == 2500
    });
    let monitor = Monitor::of(&server);
    monitor.wait_for_row("q", |row| row[4] == "2500");
    monitor.press("K");
    monitor.wait_for("All 2500 dead jobs");
    monitor.press("y");
    monitor.wait_for("q: kicked 2500 jobs");
    let calls = client
        .info("commandstats", "cmdstat_dq.kick")
        .expect("it was called");
    assert!(calls.starts_with("calls=3,"), "{calls}");
}
