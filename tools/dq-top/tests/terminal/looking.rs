//! The table, a queue, its jobs.

use crate::cmd;
use crate::monitor::{address, Monitor};
use crate::support::{wait_until, Client, Server, PATIENCE};
use crate::{DOWN, ENTER, ESCAPE, PAGE_DOWN, PAGE_UP, RIGHT};

/// Three queues: 60 delayed, of which many are due at once; ready ones; one reserved and one dead.
fn some_queues(client: &mut Client) {
    for number in 0..60 {
        let due = 4_000_000_000_000u64
            + if (10..50).contains(&number) {
                10
            } else {
                number
            };
        let id = format!("job-{number:02}");
        cmd!(client, "DQ.ADD", "later", id, "payload", "AT", due);
    }
    for number in 0..3 {
        cmd!(client, "DQ.ADD", "mails", format!("m{number}"), "Dear Ada");
    }
    cmd!(client, "DQ.ADD", "work", "dead-one", "x");
    cmd!(client, "DQ.POP", "work");
    cmd!(client, "DQ.NACK", "work", "dead-one", "FATAL");
    cmd!(client, "DQ.ADD", "work", "reserved-one", "x");
    cmd!(client, "DQ.POP", "work", "TTR", 1_000_000_000);
}

#[test]
fn the_table_shows_every_queue_with_its_figures() {
    let server = Server::start();
    let mut client = server.connect();
    some_queues(&mut client);
    let monitor = Monitor::of(&server);
    monitor.wait_for_row("later", |row| row[1..5] == ["60", "0", "0", "0"]);
    monitor.wait_for_row("mails", |row| row[1..5] == ["0", "3", "0", "0"]);
    monitor.wait_for_row("work", |row| row[1..5] == ["0", "0", "1", "1"]);
    let screen = monitor.wait_for("queues 3");
    let version = server.version().to_string();
    let number = version.split(' ').next_back().expect("a number");
    for told in [
        number,
        "master",
        "delayed 60",
        "ready 3",
        "reserved 1",
        "dead 1",
    ] {
        assert!(screen.contains(told), "{told}:\n{screen}");
    }
}

#[test]
fn rates_lateness_and_waiting_clients_are_seen() {
    let server = Server::start();
    let mut client = server.connect();
    cmd!(client, "DQ.CFGSET", "flow");
    cmd!(client, "DQ.CFGSET", "other");
    let mut waiting = server.connect();
    waiting.send(redis::cmd("DQ.BPOP").arg("idle").arg("flow").arg(0));
    let monitor = Monitor::of(&server);
    monitor.wait_for_row("flow", |row| row.last() == Some(&"1"));
    wait_until("deliveries are seen", PATIENCE, || {
        cmd!(client, "DQ.ADD", "other", "*", "x");
        cmd!(client, "DQ.POP", "other", "NOACK");
        let screen = monitor.screen();
        let row = screen.lines().find(|line| line.contains(" other "));
        // QUEUE DELAYED READY RESVD DEAD DLVR/s LATE99 OLDEST WAIT
        row.is_some_and(|row| {
            let row: Vec<&str> = row.split_whitespace().collect();
            row[5].parse::<f64>().is_ok_and(|rate| rate > 0.0) && row[6] != "-"
        })
    });
}

#[test]
fn the_table_is_sorted_and_filtered() {
    let server = Server::start();
    some_queues(&mut server.connect());
    let monitor = Monitor::start(&address(&server), &[]);
    monitor.wait_for_row("work", |_| true);
    let order = |screen: &str| -> Vec<String> {
        let words = screen
            .lines()
            .filter_map(|line| line.trim_start_matches('▌').split_whitespace().next());
        let names = words.filter(|word| ["later", "mails", "work"].contains(word));
        names.map(str::to_owned).collect()
    };
    monitor.wait("trouble first: it has a dead job", |screen| {
        order(screen).first().is_some_and(|first| first == "work")
    });
    monitor.press(RIGHT);
    monitor.wait("by name", |screen| {
        order(screen) == ["later", "mails", "work"]
    });
    monitor.press(&RIGHT.repeat(2)); // READY
    monitor.wait("by ready jobs", |screen| {
        order(screen) == ["mails", "later", "work"]
    });
    monitor.press("r");
    monitor.wait("reversed", |screen| {
        order(screen) == ["later", "work", "mails"]
    });
    monitor.press("/*or?\r");
    monitor.wait("filtered", |screen| order(screen) == ["work"]);
    monitor.press(ESCAPE);
    monitor.wait("all again", |screen| order(screen).len() == 3);
}

#[test]
fn a_queue_is_opened_and_its_jobs_are_paged() {
    let server = Server::start();
    let mut client = server.connect();
    some_queues(&mut client);
    cmd!(
        client,
        "DQ.CFGSET",
        "later",
        "BACKOFF",
        2,
        1000,
        60_000,
        "MAXLEN",
        777
    );
    let monitor = Monitor::of(&server);
    monitor.wait_for_row("later", |_| true);
    monitor.press(ENTER);
    let screen = monitor.wait("settings", |screen| screen.contains("777"));
    assert!(screen.contains("1.0s 1m"), "the ladder:\n{screen}");
    monitor.press("2");
    let mut seen = Vec::new();
    let ids = |screen: &str| -> Vec<String> {
        let words = screen
            .split(['▌', ' ', '\n'])
            .filter(|word| word.starts_with("job-"));
        words.map(str::to_owned).collect()
    };
    for page in 1..=4 {
        let title = format!("page {page}");
        let screen = monitor.wait(&title, |screen| {
            screen.contains(&title) && !ids(screen).is_empty()
        });
        seen.extend(ids(&screen));
        monitor.press(PAGE_DOWN);
    }
    let expected: Vec<String> = (0..60).map(|number| format!("job-{number:02}")).collect();
    assert_eq!(seen, expected, "every job once, in order");
    monitor.press(PAGE_UP);
    monitor.wait("the third page", |screen| {
        screen.contains("page 3") && !ids(screen).is_empty()
    });
}

#[test]
fn a_dead_job_tells_why() {
    let server = Server::start();
    let mut client = server.connect();
    cmd!(client, "DQ.ADD", "q", "broken", "x");
    cmd!(client, "DQ.POP", "q");
    cmd!(
        client,
        "DQ.NACK",
        "q",
        "broken",
        "FATAL",
        "REASON",
        "mailbox full"
    );
    let monitor = Monitor::of(&server);
    monitor.wait_for_row("q", |_| true);
    monitor.press(ENTER);
    monitor.press("5");
    monitor.wait_for("broken");
    monitor.press(ENTER);
    let screen = monitor.wait_for("reason mailbox full");
    assert!(screen.contains("failed "), "{screen}");
}

#[test]
fn a_recurring_job_shows_its_rule_and_its_next_runs() {
    let server = Server::start();
    let mut client = server.connect();
    cmd!(
        client,
        "DQ.ADD",
        "q",
        "report",
        "x",
        "CRON",
        "0 9 * * MON-FRI",
        "TZ",
        "Europe/Berlin"
    );
    cmd!(
        client,
        "DQ.ADD",
        "q",
        "mail",
        "x",
        "GROUP",
        "acme",
        "DELAY",
        3_000_000_000u64
    );
    cmd!(
        client,
        "DQ.ADD",
        "q",
        "other",
        "x",
        "GROUP",
        "beta",
        "DELAY",
        3_000_000_000u64
    );
    let next = cmd!(client, "DQ.NEXT", "q", "report", "COUNT", 3);
    let next: Vec<u64> = redis::from_redis_value(next).expect("instants");
    let monitor = Monitor::of(&server);
    monitor.resize(300, 24);
    monitor.wait_for_row("q", |_| true);
    monitor.press(ENTER);
    monitor.wait_for("recurring    1");
    monitor.wait_for("groups       2");
    monitor.press("2");
    monitor.wait_for("report");
    monitor.press(ENTER);
    let screen = monitor.wait_for("rule cron 0 9 * * MON-FRI Europe/Berlin");
    let runs = screen
        .lines()
        .find(|line| line.contains("next runs"))
        .expect("a line");
    for instant in next {
        assert!(runs.contains(&format!("({instant})")), "{instant}: {runs}");
    }
}

#[test]
fn a_job_is_looked_at_as_text_and_in_hex() {
    let server = Server::start();
    let mut client = server.connect();
    let long = "0123456789".repeat(20_000);
    cmd!(
        client,
        "DQ.ADD",
        "q",
        "first",
        "Dear Ada,\nplease pay",
        "PRIORITY",
        -7,
        "ATTEMPTS",
        4
    );
    cmd!(client, "DQ.ADD", "q", "second", long);
    let monitor = Monitor::of(&server);
    monitor.wait_for_row("q", |_| true);
    monitor.press(ENTER);
    monitor.press("3");
    monitor.wait_for("second");
    monitor.press(ENTER);
    let screen = monitor.wait_for("PAYLOAD as text");
    assert!(screen.contains("please pay"), "{screen}");
    assert!(
        screen.contains("priority -7") && screen.contains("attempts 0 of 4"),
        "{screen}"
    );
    monitor.press("x");
    monitor.wait_for("44 65 61 72 20 41 64 61"); // Dear Ada
    cmd!(client, "DQ.DEL", "q", "first");
    monitor.wait_for("This job no longer exists");
    monitor.press(ESCAPE);
    monitor.wait("the list without it", |screen| {
        !screen.contains("first") && screen.contains("second")
    });
    monitor.press(DOWN);
    monitor.press(ENTER);
    let screen = monitor.wait_for("200000 bytes");
    assert!(screen.contains("the first 65.5kB of them"), "{screen}");
}

#[test]
fn unusual_bytes_never_reach_the_terminal() {
    let server = Server::start();
    let mut client = server.connect();
    let (name, id): (&[u8], &[u8]) = (b"evil\x1b[2J\xff\0", b"\x1b]0;pwned\x07");
    cmd!(
        client,
        "DQ.ADD",
        name,
        id,
        b"\x1b[31mred\x07\x9b\xe2\x80\xae"
    );
    cmd!(client, "DQ.ADD", "plain", "a", "x");
    let monitor = Monitor::of(&server);
    monitor.wait_for(r"evil\x1b[2J\xff\x00");
    monitor.press(ENTER);
    monitor.press("3");
    monitor.wait_for(r"\x1b]0;pwned\x07");
    monitor.press(ENTER);
    monitor.wait_for(r"\x1b[31mred\x07\x9b\u{202e}");
    let raw = monitor.raw();
    let has = |bytes: &[u8]| raw.windows(bytes.len()).any(|part| part == bytes);
    for obeyed in [
        &b"\x07"[..],
        b"\x1b]0;",
        b"\x1b[31mred",
        b"\x9b",
        b"\0",
        b"\xe2\x80\xae",
    ] {
        assert!(!has(obeyed), "{}", obeyed.escape_ascii());
    }
    assert!(has(b"\x1b["), "it does see what is sent");
}

#[test]
fn colours_are_left_out_where_nobody_wants_them() {
    let server = Server::start();
    some_queues(&mut server.connect());
    let colours = |monitor: &Monitor| {
        let raw = String::from_utf8_lossy(&monitor.raw()).into_owned();
        let codes = raw
            .split("\x1b[")
            .skip(1)
            .filter_map(|part| part.split_once('m'));
        let numbers =
            codes.flat_map(|(codes, _)| codes.split(';').map(str::to_owned).collect::<Vec<_>>());
        numbers
            .filter(|it| {
                it.len() == 2 && (it.starts_with('3') || it.starts_with('4')) && !it.ends_with('9')
            })
            .count()
    };
    let plain = Monitor::start(&address(&server), &[("NO_COLOR", "1")]);
    plain.wait_for_row("work", |_| true);
    assert_eq!(colours(&plain), 0);
    let coloured = Monitor::of(&server);
    coloured.wait_for_row("work", |_| true);
    assert!(
        colours(&coloured) > 0,
        "so they are seen where there are some"
    );
}

#[test]
fn the_terminal_may_have_any_size() {
    let server = Server::start();
    some_queues(&mut server.connect());
    let mut monitor = Monitor::of(&server);
    monitor.wait_for_row("work", |_| true);
    monitor.resize(200, 50);
    monitor.wait_for("DELIVERIES");
    monitor.resize(20, 5);
    monitor.wait_for("dq top needs");
    monitor.resize(80, 24);
    monitor.wait_for_row("work", |_| true);
    monitor.press("?");
    monitor.wait_for("run this job now");
    monitor.press("?");
    monitor.wait("the help goes", |screen| {
        !screen.contains("run this job now")
    });
    monitor.press("q");
    assert!(monitor.ended_well());
}

/// The cost of what it asks is bounded: no command looks at all jobs or keys at once.
#[test]
fn a_thousand_queues_cost_no_more_than_a_bounded_number_of_questions() {
    let server = Server::start();
    let mut client = server.connect();
    let mut pipe = redis::pipe();
    for number in 0..1000 {
        pipe.cmd("DQ.ADD")
            .arg(format!("queue:{number:04}"))
            .arg("a")
            .arg("x")
            .ignore();
    }
    pipe.exec(&mut client).expect("a thousand queues");
    let monitor = Monitor::of(&server);
    monitor.wait_for("queues 1000");
    cmd!(client, "CONFIG", "RESETSTAT");
    let mut text = String::new();
    let mut asked_by_us = 0;
    wait_until("two thousand answers", PATIENCE, || {
        text = redis::from_redis_value(cmd!(client, "INFO", "commandstats")).expect("text");
        asked_by_us += 1;
        calls(&text, "dq.stats") >= 2000
    });
    // The monitor sends one INFO in a round. Ours count, too, but for the last one, which is not in
    // its own reply.
    let rounds = calls(&text, "info") + 1 - asked_by_us;
    let stats = calls(&text, "dq.stats");
    assert!(stats <= 200 * (rounds + 1), "{stats} in {rounds} rounds");
    for line in text
        .lines()
        .filter_map(|line| line.strip_prefix("cmdstat_"))
    {
        let command = line.split(':').next().unwrap_or_default();
        let known = ["info", "scan", "dq.stats", "config|resetstat"];
        assert!(
            known.contains(&command),
            "{command} is not among what it is to ask"
        );
    }
}

/// The calls of a command, from INFO commandstats.
fn calls(text: &str, command: &str) -> u64 {
    let prefix = format!("cmdstat_{command}:calls=");
    let line = text.lines().find_map(|line| line.strip_prefix(&prefix));
    let number = line.and_then(|rest| rest.split(',').next()?.parse().ok());
    number.unwrap_or(0)
}
