//! The clock for tests: DQ.CLOCK, on servers whose module was loaded with `test-clock yes`.

use std::time::{Duration, Instant};

use crate::probe::show;
use crate::scene::{now_ms, pair, Delivery, Lines, Scene};
use crate::support::{locate, wait_until, Raw, Reply, Server, PATIENCE};
use crate::turned::{builder, clock, start};

const MINUTE: i64 = 60_000;
const DAY: i64 = 86_400_000;

/// Advances the clock; returns its new time.
#[track_caller]
fn advance(client: &mut Raw, ms: i64) -> i64 {
    let from = clock(client);
    let to = client.int(&format!("DQ.CLOCK ADVANCE {ms}"));
    assert_eq!(to, from + ms);
    to
}

fn eval(client: &mut Raw, script: &str) -> String {
    show(&client.call(&[b"EVAL", script.as_bytes(), b"0"]))
}

/// A client that waits for the queue's jobs, one after the other.
struct Worker {
    client: Raw,
}

impl Worker {
    fn of(server: &Server) -> Worker {
        Worker {
            client: server.waiting("DQ.BPOP q 0"),
        }
    }

    /// A job delivered before the clock's reply has already arrived.
    #[track_caller]
    fn gets(&mut self, id: &str, attempts: i64) -> Delivery {
        let delivery = self.client.delivery();
        let Delivery { id: got, .. } = &delivery;
        assert_eq!((got.as_str(), delivery.attempts), (id, attempts));
        delivery
    }

    /// Waits again; the server has seen it.
    #[track_caller]
    fn waits_again(&mut self, client: &mut Raw) {
        self.client.begin("DQ.BPOP q 0");
        wait_until("it waits", PATIENCE, || waiting(client) == "1");
    }
}

fn waiting(client: &mut Raw) -> String {
    stat(client, "q", "waiting-clients")
}

/// A field of DQ.STATS.
#[track_caller]
fn stat(client: &mut Raw, key: &str, name: &str) -> String {
    let stats = client.words(&format!("DQ.STATS {key}"));
    let at = stats.iter().position(|word| word == name);
    stats[at.expect("the field") + 1].clone()
}

/// A reminder in thirty days: a pause, a lease that ends, five retries with backoff, the first of them held back by
/// RATE; then dead. Returns how long all that took.
fn thirty_days() -> Duration {
    let (server, mut client) = start();
    client.says("DQ.CFGSET q RATE 1 5000", "+OK");
    let mut worker = Worker::of(&server);
    let began = Instant::now();
    let ladder = "BACKOFF 4 1 1000 60000 600000";
    let add = format!(
        "DQ.ADD q reminder x DELAY {} ATTEMPTS 7 TTR 30000",
        30 * DAY
    );
    client.says(&format!("{add} {ladder}"), "'reminder'");
    advance(&mut client, 30 * DAY - 1);
    client.says("DQ.LEN q DELAYED", "1");
    client.says(&format!("DQ.PAUSE q {}", MINUTE + 1), "+OK");
    advance(&mut client, MINUTE);
    client.says("DQ.LEN q READY", "1");
    let resumed = advance(&mut client, 1);
    let first = worker.gets("reminder", 1);
    assert_eq!(first.deadline as i64, resumed + 30_000);
    worker.waits_again(&mut client);
    // The lease ends during the advance, at its instant.
    let now = advance(&mut client, 33_000);
    let second = worker.gets("reminder", 2);
    assert_eq!(second.deadline as i64, now - 3000 + 30_000);
    let token = |delivery: &Delivery| delivery.token.parse::<u64>().expect("a token");
    assert!(token(&second) > token(&first));
    for (attempt, wait) in [
        (3, 2000),
        (4, 60_000),
        (5, 600_000),
        (6, 600_000),
        (7, 600_000),
    ] {
        client.says("DQ.NACK q reminder", "'delayed'");
        worker.waits_again(&mut client);
        advance(&mut client, wait - 1);
        assert_eq!(waiting(&mut client), "1", "not before");
        let now = advance(&mut client, 1);
        let delivery = worker.gets("reminder", attempt);
        assert_eq!(delivery.deadline as i64, now + 30_000);
    }
    client.says("DQ.NACK q reminder", "'dead'");
    let now = clock(&mut client);
    assert_eq!(
        client.int("DQ.CLOCK NEXT"),
        now + 5000,
        "the rate window ends"
    );
    client.says("DQ.CLOCK NEXT", "nil$");
    began.elapsed()
}

#[test]
fn thirty_days_take_milliseconds() {
    let took = (0..5).map(|_| thirty_days()).min().expect("five rounds");
    println!("thirty days took {took:?}");
    assert!(took < Duration::from_secs(30), "{took:?}: not even a lease");
}

#[test]
fn every_stop_is_made_in_its_order() {
    let (server, mut client) = start();
    let start = clock(&mut client);
    let mut waiting: Vec<Raw> = (0..4)
        .map(|_| server.waiting("DQ.BPOP q r 0 TTR 5000"))
        .collect();
    for (key, id, delay) in [
        ("r", "second", 2000),
        ("q", "third", 3000),
        ("r", "first", 1000),
    ] {
        client.run(&format!("DQ.ADD {key} {id} x DELAY {delay}"));
    }
    advance(&mut client, 20_000);
    let mut tokens = 0;
    for (at, id, key, attempts) in [
        (1000, "first", "r", 1),
        (2000, "second", "r", 1),
        (3000, "third", "q", 1),
        // Its lease ended while one client was still waiting.
        (6000, "first", "r", 2),
    ] {
        let got = waiting.remove(0).delivery();
        assert_eq!(
            (got.id.as_str(), got.key.as_str(), got.attempts),
            (id, key, attempts)
        );
        assert_eq!(got.deadline as i64, start + at + 5000, "{id}");
        let token: u64 = got.token.parse().expect("a token");
        assert!(token > tokens, "tokens grow with the clock");
        tokens = token;
    }
    let names = ["lateness-max", "lateness-sum", "timed-out"];
    let figures = names.map(|name| stat(&mut client, "r", name));
    assert_eq!(figures, ["5000000", "5000000", "3"]);
}

#[test]
fn next_goes_from_one_instant_to_the_next() {
    let (_server, mut client) = start();
    let start = clock(&mut client);
    client.says("DQ.CLOCK NEXT", "nil$");
    for line in [
        "DQ.CFGSET q RATE 1 700",
        "DQ.ADD q leased x TTR 5000",
        "DQ.POP q",
        "DQ.ADD later due x DELAY 86400000",
        "DQ.ADD later expiring x DELAY 90000000 TTL 1000",
        "DQ.CFGSET r DEDUPE 2000",
        "DQ.ADD r seen x",
        "DQ.POP r NOACK",
        "DQ.PAUSE r 3000",
        // Nothing is left to happen in this queue.
        "DQ.CFGSET kept",
        "DQ.ADD kept done x TTR 4000",
        "DQ.POP kept",
        "DQ.ACK kept done",
        "DQ.PAUSE kept",
    ] {
        let reply = client.ask(line);
        assert!(!reply.starts_with('-'), "{line} -> {reply}");
    }
    for at in [700, 1000, 2000, 3000, 5000, DAY] {
        assert_eq!(client.int("DQ.CLOCK next"), start + at);
    }
    client.says("DQ.CLOCK NEXT", "nil$");
    assert_eq!(clock(&mut client), start + DAY);
    client.says("DQ.LEN later READY", "1");
}

#[test]
fn it_never_goes_back() {
    let (server, mut client) = start();
    let start = clock(&mut client);
    assert!(
        (now_ms() as i64 - start).abs() < PATIENCE.as_millis() as i64,
        "real time"
    );
    let last = (1i64 << 42) - 1;
    let out_of_range = "-ERR value is not an integer or out of range";
    let arity = "-ERR wrong number of arguments for 'dq.clock' command";
    for (line, expected) in [
        (
            format!("SET {}", start - 1),
            "-ERR unix-time-milliseconds is before the clock, which never goes back",
        ),
        (
            "SET 0".into(),
            "-ERR unix-time-milliseconds is before the clock, which never goes back",
        ),
        (format!("SET {}", last + 1), out_of_range),
        ("SET -1".into(), out_of_range),
        ("SET x".into(), out_of_range),
        ("ADVANCE -1".into(), out_of_range),
        (format!("ADVANCE {last}"), out_of_range),
        (format!("ADVANCE {}", last - start + 1), out_of_range),
        ("ADVANCE 1.5".into(), out_of_range),
        ("SET".into(), arity),
        ("ADVANCE 1 2".into(), arity),
        ("GET 1".into(), arity),
        ("NEXT 1".into(), arity),
        ("".into(), arity),
        (
            "BACK 1".into(),
            "-ERR syntax error, expected GET, SET, ADVANCE or NEXT, not 'BACK'",
        ),
    ] {
        client.says(&format!("DQ.CLOCK {line}"), expected);
        assert_eq!(clock(&mut client), start, "after {line}");
    }
    advance(&mut client, 0);
    client.says(&format!("dq.clock set {start}"), &start.to_string());
    // Neither a restart's dump nor earlier ids and tokens set it back, and none is repeated.
    advance(&mut client, 400 * DAY);
    client.run("DQ.ADD q * x");
    let before = Delivery::of(&client.run("DQ.POP q")).expect("a job");
    client.run("DQ.DEL q x");
    client.says("DEBUG RELOAD", "+OK");
    assert_eq!(clock(&mut client), start + 400 * DAY);
    client.says(&format!("DQ.CLOCK SET {last}"), &last.to_string());
    client.says("DQ.LEN q READY", "1");
    let again = Delivery::of(&client.run("DQ.POP q")).expect("its lease is over");
    assert!(again.token.parse::<u64>().unwrap() > before.token.parse().unwrap());
    assert_eq!(again.deadline as i64, last);
    client.says("DQ.CLOCK NEXT", "nil$");
    assert_eq!(server.blocked(), 0);
}

#[test]
fn it_begins_anew_with_each_load() {
    let mut server = builder().aof().start();
    let mut client = server.raw();
    let start = clock(&mut client);
    advance(&mut client, 30 * DAY);
    client.run("DQ.ADD q a x DELAY 1000");
    let first = client.ask("DQ.ADD q * x");
    let old = Delivery::of(&client.run("DQ.POP q")).expect("a job");
    server.restart();
    let mut client = server.raw();
    let now = clock(&mut client);
    assert!(
        now >= start && now < start + DAY,
        "the real time of loading"
    );
    client.says("DQ.LEN q DELAYED", "1");
    client.says("DQ.LEN q RESERVED", "1");
    let second = client.ask("DQ.ADD q * x");
    let ms = |id: &str| id.trim_matches('\'').split('-').next().map(str::to_owned);
    assert_eq!(ms(&second), ms(&first), "counted on from the dump's");
    assert_ne!(second, first);
    let new = Delivery::of(&client.run("DQ.POP q")).expect("a job");
    assert!(new.token.parse::<u64>().unwrap() > old.token.parse().unwrap());
    assert!(!server
        .aof()
        .iter()
        .any(|command| command[0].eq_ignore_ascii_case(b"dq.clock")));
}

#[test]
fn nothing_of_it_is_there_without_the_argument() {
    for arguments in ["", "test-clock no", "test-clock no timer-steps 500"] {
        let server = Server::builder().module_arguments(arguments).start();
        let mut client = server.raw();
        for line in ["DQ.CLOCK GET", "DQ.CLOCK ADVANCE 5", "dq.clock"] {
            let reply = client.ask(line);
            assert!(
                reply.starts_with("-ERR unknown command"),
                "{line} -> {reply}"
            );
        }
        for line in ["CONFIG SET dq.test-clock yes", "CONFIG SET test-clock yes"] {
            let reply = client.ask(line);
            assert!(reply.starts_with("-ERR Unknown"), "{line} -> {reply}");
        }
        let script = "return redis.pcall('DQ.CLOCK','GET')";
        assert!(eval(&mut client, script).starts_with('-'));
        assert!(!client.ask("INFO dq").contains("test_clock"));
        assert!(!client
            .ask("COMMAND LIST")
            .to_lowercase()
            .contains("dq.clock"));
        assert!(!server.log().contains("test-clock is on"));
    }
    for arguments in [
        "test-clock",
        "test-clock 1",
        "test-clock YES",
        "test-clock yes 5",
    ] {
        let log = Server::builder().module_arguments(arguments).try_start();
        let log = log
            .err()
            .unwrap_or_else(|| panic!("started with {arguments}"));
        assert!(log.contains("arguments are: "), "{log}");
    }
}

#[test]
fn it_comes_with_the_load() {
    let module = locate::module_path();
    let load = |line: &str| {
        let server = Server::plain().start();
        let reply = server
            .raw()
            .ask(&line.replace("MODULE", &module.display().to_string()));
        (server, reply)
    };
    for line in [
        "module load MODULE test-clock yes",
        "module loadex MODULE CONFIG dq.default-ttr 5000 ARGS test-clock yes",
    ] {
        let (server, reply) = load(line);
        assert_eq!(reply, "+OK", "{line}");
        let mut client = server.raw();
        advance(&mut client, DAY);
    }
    // As a setting it would be unknown: several servers crash at any unknown one here.
    let (server, reply) = load("module loadex MODULE ARGS test-clock maybe");
    assert!(
        reply.starts_with("-ERR Error loading the extension"),
        "{reply}"
    );
    let reply = server.raw().ask("DQ.CLOCK GET");
    assert!(reply.starts_with("-ERR unknown command"), "{reply}");
}

#[test]
fn it_is_told() {
    for arguments in ["test-clock yes", "timer-steps 500 test-clock yes"] {
        let server = Server::builder().module_arguments(arguments).start();
        assert_eq!(server.number("dq", "dq_test_clock"), 1);
        assert!(server.log().contains("test-clock is on"));
        let mut client = server.raw();
        let reply = client.ask("CONFIG SET dq.test-clock no");
        assert!(reply.starts_with("-ERR Unknown"), "{reply}");
        assert!(client.ask("COMMAND DOCS dq.clock").contains("Shows"));
        let reply = client.ask("COMMAND GETKEYS DQ.CLOCK GET");
        assert!(reply.starts_with("-ERR The command has no key"), "{reply}");
    }
}

#[test]
fn it_moves_for_a_client_of_its_own_only() {
    let (server, mut client) = start();
    let start = clock(&mut client);
    for line in ["GET", "ADVANCE 5", "NEXT"] {
        client.says("MULTI", "+OK");
        client.says(&format!("DQ.CLOCK {line}"), "+QUEUED");
        let refused = "[ -ERR DQ.CLOCK is not allowed in MULTI, scripts and functions ]";
        client.says("EXEC", refused);
    }
    let script = "return redis.call('DQ.CLOCK','ADVANCE','5')";
    let reply = eval(&mut client, script);
    assert!(reply.contains("not allowed from script"), "{reply}");
    assert_eq!(clock(&mut client), start);
    assert_eq!(server.blocked(), 0);
}

#[test]
fn waits_go_by_the_real_clock() {
    let (server, mut client) = start();
    let mut patient = server.waiting("DQ.BPOP q 600");
    advance(&mut client, 30 * DAY);
    assert_eq!(server.blocked(), 1, "ten minutes are not over");
    let mut brief = server.raw();
    brief.begin("DQ.BPOP q 0.01");
    assert_eq!(brief.reply(), "nil*");
    client.run("DQ.ADD q a x");
    assert_eq!(patient.delivery().id, "a");
    // So do the server's own keys.
    client.run("SET other x EX 600");
    client.run("PEXPIRE q 600000");
    advance(&mut client, DAY);
    client.says("EXISTS other q", "2");
}

#[test]
fn a_replica_has_its_own() {
    let (master, replica) = pair(builder());
    let (mut client, mut reader) = (master.raw(), replica.raw());
    let own = clock(&mut reader);
    client.run("DQ.ADD q a x DELAY 86400000");
    client.run("DQ.ADD q leased x TTR 1000 ATTEMPTS 1");
    client.run("DQ.POP q");
    let moved = advance(&mut client, 2 * DAY);
    replica.wait_for_offset_of(&master);
    assert_eq!(clock(&mut reader), own);
    assert_eq!(
        [client.int("DQ.LEN q READY"), client.int("DQ.LEN q DEAD")],
        [1, 1]
    );
    assert_eq!(
        [reader.int("DQ.LEN q DELAYED"), reader.int("DQ.LEN q DEAD")],
        [1, 1]
    );
    // It uses its own clock for due times, and its master's effects for the rest.
    client.run("DQ.ADD q b x TTR 1000 PRIORITY -1");
    client.run("DQ.POP q");
    client.run("DQ.ADD q gone x DELAY 9999999 TTL 5000");
    replica.wait_for_offset_of(&master);
    let due = moved - DAY;
    assert!((reader.int("DQ.CLOCK NEXT") - due).abs() < 60_000);
    reader.says("DQ.LEN q READY", "1");
    advance(&mut reader, 30 * DAY);
    reader.says("DQ.LEN q RESERVED", "1");
    reader.says("DQ.LEN q", "3");
    replica.assert_same_data_as(&master);
    // Once it is master, it continues from the present time of its clock.
    reader.says("REPLICAOF NO ONE", "+OK");
    advance(&mut reader, 0);
    reader.says("DQ.LEN q READY", "2");
    reader.says("DQ.LEN q", "2");
}

/// Other clients are served while the clock advances, and see it move.
#[test]
fn a_long_way_stalls_nobody() {
    const JOBS: i64 = 200_000;
    let (server, mut client) = start();
    let start = clock(&mut client);
    let fill = format!(
        "for i=1,{JOBS} do redis.call('DQ.ADD','q',i,'x','ATTEMPTS','1','TTR',i) end \
         return #redis.call('DQ.POP','q','COUNT',{JOBS})"
    );
    assert_eq!(eval(&mut client, &fill), JOBS.to_string());
    let mut mover = server.raw();
    mover.begin("DQ.CLOCK ADVANCE 30000");
    wait_until("it is on its way", PATIENCE, || clock(&mut client) > start);
    let mut queued = server.raw();
    queued.begin("DQ.CLOCK ADVANCE 170000");
    let mut seen = vec![start];
    wait_until("the clock has come", PATIENCE, || {
        let now = clock(&mut client);
        // What is due by then has happened, except what the timer is about to do.
        let died = client.int("DQ.LEN q DEAD");
        assert!(died <= clock(&mut client) - start);
        assert!(now - start <= died + 1, "{now}: {died} died");
        assert!(now >= seen[seen.len() - 1]);
        if now > seen[seen.len() - 1] {
            seen.push(now);
        }
        now == start + JOBS
    });
    assert!(seen.len() > 10, "nobody was served on the way: {seen:?}");
    assert_eq!(mover.reply(), (start + 30_000).to_string());
    assert_eq!(
        queued.reply(),
        (start + JOBS).to_string(),
        "one after the other"
    );
    let dead = client.run("DQ.PEEK q DEAD COUNT 200000");
    let Reply::Array(dead) = dead else {
        panic!("{dead:?}");
    };
    let in_order = dead.iter().enumerate().all(|(at, job)| match job {
        Reply::Array(job) => job[2] == Reply::Integer(start + 1 + at as i64),
        _ => false,
    });
    assert!(
        in_order && dead.len() == JOBS as usize,
        "in the order of time"
    );
}

#[test]
fn what_comes_at_once_comes_in_steps() {
    let (server, mut client) = start();
    let fill = "for i=1,100000 do redis.call('DQ.ADD','q',i,'x','TTL',1000) end";
    eval(&mut client, fill);
    for queue in 0..3000 {
        client.run(&format!("DQ.ADD q{queue} a x DELAY 86400000"));
    }
    let mut mover = server.raw();
    let start = clock(&mut client);
    let began = server.number("dq", "dq_timer_fires_total");
    mover.begin("DQ.CLOCK ADVANCE 1000");
    assert_eq!(mover.reply(), (start + 1000).to_string());
    client.says("EXISTS q", "0");
    let fires = server.number("dq", "dq_timer_fires_total") - began;
    assert!(fires >= 100, "a thousand at a time: {fires}");
    // More queues than one step looks at.
    let next = client.int("DQ.CLOCK NEXT");
    assert_eq!(next, start + DAY);
}

#[test]
fn it_waits_where_clients_are_paused() {
    let (server, mut client) = start();
    client.run("DQ.ADD q a x DELAY 1000");
    let mut waiting = server.waiting("DQ.BPOP q 0");
    let start = clock(&mut client);
    client.says("CLIENT PAUSE 600000 WRITE", "+OK");
    let mut mover = server.raw();
    mover.begin("DQ.CLOCK ADVANCE 5000");
    assert!(mover.try_read(Duration::from_millis(50)).is_none());
    assert_eq!(clock(&mut client), start);
    client.says("CLIENT UNPAUSE", "+OK");
    assert_eq!(mover.reply(), (start + 5000).to_string());
    assert_eq!(waiting.delivery().id, "a");
}

#[test]
fn a_client_that_leaves_has_moved_it() {
    let (server, mut client) = start();
    let start = clock(&mut client);
    client.says("CLIENT PAUSE 600000 WRITE", "+OK");
    drop(server.waiting("DQ.CLOCK ADVANCE 5000"));
    let mut second = server.waiting("DQ.CLOCK NEXT");
    let id = client.words("CLIENT LIST").join(" ");
    assert!(id.contains("cmd=dq.clock"), "{id}");
    client.says("CLIENT UNPAUSE", "+OK");
    assert_eq!(second.reply(), "nil$");
    assert_eq!(clock(&mut client), start + 5000);
    server.wait_for_blocked(0);
}
