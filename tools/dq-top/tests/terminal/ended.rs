//! Jobs that are done, and jobs that wait for others.

use crate::cmd;
use crate::monitor::{address, Monitor};
use crate::support::{Client, Server};
use crate::{ENTER, ESCAPE, RIGHT};

/// `first` is done, with a result that a terminal would interpret; `second` waits for `third`.
fn a_workflow(client: &mut Client) {
    cmd!(
        client,
        "DQ.CFGSET",
        "q",
        "DONELEN",
        100,
        "DONETTL",
        3_600_000
    );
    cmd!(client, "DQ.ADD", "q", "first", "x");
    cmd!(client, "DQ.ADD", "q", "third", "x", "DELAY", 3_600_000);
    cmd!(client, "DQ.ADD", "q", "second", "x", "AFTER", 2, "first", "third");
    let job: Vec<redis::Value> =
        redis::from_redis_value(cmd!(client, "DQ.POP", "q")).expect("a job");
    let token: String = redis::from_redis_value(job[2].clone()).expect("a token");
    cmd!(
        client,
        "DQ.ACK",
        "q",
        "RESULTS",
        "first",
        token,
        b"twelve\x1b[2J\x07"
    );
}

fn state(client: &mut Client, id: &str) -> String {
    let fields: Vec<redis::Value> =
        redis::from_redis_value(cmd!(client, "DQ.GET", "q", id)).expect("a job");
    redis::from_redis_value(fields[5].clone()).expect("its state")
}

#[test]
fn done_and_blocked_jobs_are_counted_listed_and_told() {
    let server = Server::start();
    let mut client = server.connect();
    a_workflow(&mut client);
    let arguments = [address(&server), vec!["--sort".into(), "queue".into()]].concat();
    let monitor = Monitor::start(&arguments, &[]);
    monitor.resize(160, 24);
    // DELAYED READY RESVD DEAD BLOCKED DONE
    monitor.wait_for_row("q", |row| row[1..7] == ["1", "0", "0", "0", "1", "1"]);
    monitor.wait_for("dead 0   blocked 1   done 1");
    monitor.press(ENTER);
    monitor.wait_for("donelen     100");
    monitor.wait_for("done bytes   17B");
    monitor.press("7");
    monitor.wait_for("FINISHED");
    monitor.wait_for("▌first");
    monitor.press(ENTER);
    let screen = monitor.wait_for(r"twelve\x1b[2J\x07");
    for told in [
        "state done",
        "finished ",
        "ran for ",
        "RESULT as text   11 bytes",
    ] {
        assert!(screen.contains(told), "{told}:\n{screen}");
    }
    monitor.press(ESCAPE);
    monitor.wait_for("▌first");
    monitor.press("6");
    monitor.wait_for("▌second");
    monitor.press(ENTER);
    let screen = monitor.wait_for("waits for third (on dead: wait)");
    assert!(screen.contains("ended first done"), "{screen}");
    let raw = monitor.raw();
    let has = |bytes: &[u8]| raw.windows(bytes.len()).any(|part| part == bytes);
    assert!(!has(b"\x07") && !has(b"twelve\x1b"));
}

#[test]
fn steps_and_what_they_wait_for_are_told() {
    let server = Server::start();
    let mut client = server.connect();
    cmd!(client, "DQ.ADD", "q", "order", "x");
    let job: Vec<redis::Value> =
        redis::from_redis_value(cmd!(client, "DQ.POP", "q")).expect("a job");
    let token: String = redis::from_redis_value(job[2].clone()).expect("a token");
    cmd!(
        client,
        "DQ.STEP",
        "q",
        "order",
        &token,
        "paid",
        "ref-9\x1b[2J",
        "sent",
        ""
    );
    cmd!(
        client,
        "DQ.NACK",
        "q",
        "order",
        "SILENT",
        "AWAIT",
        "delivered"
    );
    let monitor = Monitor::of(&server);
    monitor.wait_for_row("q", |_| true);
    monitor.press(ENTER);
    monitor.wait_for("LATENESS of 1 delivery");
    monitor.press("2");
    monitor.wait_for("▌order");
    monitor.press(ENTER);
    let screen = monitor.wait_for(r"steps paid = ref-9\x1b[2J, sent =");
    assert!(screen.contains("awaits delivered"), "{screen}");
}

#[test]
fn a_done_job_runs_again_and_a_blocked_one_is_set_free() {
    let server = Server::start();
    let mut client = server.connect();
    a_workflow(&mut client);
    let monitor = Monitor::of(&server);
    monitor.wait_for_row("q", |_| true);
    monitor.press(ENTER);
    monitor.press("7");
    monitor.wait_for("▌first");
    monitor.press("n");
    monitor.wait_for("only delayed and ready jobs are moved; this one is done");
    monitor.press("k");
    monitor.wait_for("The done job \"first\"");
    assert_eq!(state(&mut client, "first"), "done", "nothing yet");
    monitor.press("y");
    monitor.wait_for("q: kicked 1 job");
    assert_eq!(state(&mut client, "first"), "ready");
    monitor.wait_for("No such jobs");
    monitor.press("6");
    monitor.wait_for("▌second");
    monitor.press("k");
    monitor.wait_for("becomes ready now, whatever it waits for.");
    monitor.press("y");
    monitor.wait("it is no longer listed", |screen| {
        screen.contains("No such jobs")
    });
    assert_eq!(state(&mut client, "second"), "ready");
}

#[test]
fn done_jobs_are_purged_alone_and_in_pages() {
    let server = Server::start();
    let mut client = server.connect();
    cmd!(client, "DQ.CFGSET", "q", "DONELEN", 1000);
    for number in 0..40 {
        cmd!(client, "DQ.ADD", "q", format!("job-{number:02}"), "x");
        cmd!(client, "DQ.POP", "q");
        cmd!(client, "DQ.ACK", "q", format!("job-{number:02}"));
    }
    cmd!(client, "DQ.ADD", "q", "other", "x");
    let monitor = Monitor::of(&server);
    monitor.wait_for_row("q", |_| true);
    monitor.press(ENTER);
    // Tab by tab, to the last one.
    monitor.press(&RIGHT.repeat(6));
    monitor.wait_for("▌job-00");
    monitor.press(crate::PAGE_DOWN);
    monitor.wait("the next page", |screen| {
        screen.contains("page 2") && screen.contains("job-18") && !screen.contains("job-00")
    });
    monitor.press("P");
    monitor.wait_for("All done jobs (40)");
    monitor.press("purge\r");
    monitor.wait_for("q: purged 40 jobs");
    assert_eq!(cmd!(client, "DQ.LEN", "q", "DONE"), redis::Value::Int(0));
    assert_eq!(cmd!(client, "DQ.LEN", "q"), redis::Value::Int(1));
}
