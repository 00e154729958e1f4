//! Steps and signals: DQ.STEP, DQ.SIGNAL, DQ.NACK ... SILENT AWAIT, WITHSTEPS; and PROGRESS and KEEP, which are stored
//! in the same way.

use crate::probe::{fits, show, Probe};
use crate::scene::{pair, Lines, Scene};
use crate::support::{wait_until, Raw, Reply, Server, PATIENCE};
use crate::turned::{clock, start};

const LAST: i64 = 4_398_046_511_103;
const NAME_LENGTH: &str = "-ERR step name must be 1 to 256 bytes long";
const SYNTAX: &str = "-ERR syntax error, ...";

fn get(p: &mut Probe, name: &str) -> String {
    show(&p.field("DQ.GET q a", name))
}

/// A queue `q` whose job `a` is reserved; the token.
fn reserved(p: &mut Probe, options: &str) -> u64 {
    p.run(&format!("DQ.ADD q a x REPLACE {options}"));
    p.pop_token("DQ.POP q ID a")
}

fn field(client: &mut Raw, line: &str, name: &str) -> String {
    let words = client.words(line);
    let at = words.iter().position(|word| word == name);
    words[at.expect("the field") + 1].clone()
}

#[test]
fn a_step_is_kept_by_who_has_the_job() {
    let mut p = Probe::start();
    p.all_unseen(
        "DQ.STEP q a 1 n v -> nil$
        EXISTS q -> 0",
    );
    p.run("DQ.ADD q a x");
    p.unseen("DQ.STEP q a 1 n v", "nil$");
    let token = p.pop_token("DQ.POP q");
    for other in [format!("{}", token + 1), format!("0{token}"), "x".into()] {
        p.unseen(&format!("DQ.STEP q a {other} n v"), "nil$");
    }
    p.unseen(&format!("DQ.STEP q b {token} n v"), "nil$");
    assert_eq!(get(&mut p, "steps"), "nil");
    p.seen(&format!("DQ.STEP q a {token} charge 12"), "1");
    p.seen(
        &format!("DQ.STEP q a {token} ship \"\" \\x00\\xff v mail x"),
        "1",
    );
    // Setting the same value is no change; another value keeps the step's place.
    p.unseen(&format!("DQ.STEP q a {token} charge 12"), "1");
    p.seen(&format!("DQ.STEP q a {token} charge 1 charge 13"), "1");
    let steps = "'charge' '13' 'ship' '' '\\x00\\xff' 'v' 'mail' 'x'";
    assert_eq!(get(&mut p, "steps"), format!("{{ {steps} }}"));
    let in_three = p.run3("DQ.GET q a");
    assert!(
        show(&in_three).contains(&format!("'steps' {{ {steps} }}")),
        "{in_three:?}"
    );
    let deadline = get(&mut p, "deadline");
    p.run(&format!("DQ.STEP q a {token} more 1"));
    assert_eq!(get(&mut p, "deadline"), deadline, "it renews nothing");
    assert!(p.events().is_empty(), "it raises nothing");
    // With an expired lease nothing is written.
    p.says(&format!("DQ.TOUCH q a TOKEN {token} TTR 1"), "?");
    let over = p.time_ms() + 2;
    p.wait_until_ms(over);
    p.says(&format!("DQ.STEP q a {token} late v"), "nil$");
    assert_eq!(get(&mut p, "state"), "'ready'");
    assert!(!get(&mut p, "steps").contains("late"));
}

#[test]
fn arguments_are_checked_first() {
    let mut p = Probe::start();
    let long = "n".repeat(257);
    let just = "n".repeat(256);
    for (line, expected) in [
        (
            "DQ.STEP q a 1 n".to_owned(),
            "-ERR wrong number of arguments for 'dq.step' command",
        ),
        (
            "DQ.STEP q a 1 n v m".to_owned(),
            "-ERR wrong number of arguments for 'dq.step' command",
        ),
        (
            "DQ.SIGNAL q a".to_owned(),
            "-ERR wrong number of arguments for 'dq.signal' command",
        ),
        (
            "DQ.SIGNAL q a n v w".to_owned(),
            "-ERR wrong number of arguments for 'dq.signal' command",
        ),
        ("DQ.STEP q a 1 \"\" v".to_owned(), NAME_LENGTH),
        (format!("DQ.STEP q a 1 n v {long} v"), NAME_LENGTH),
        ("DQ.SIGNAL q a \"\"".to_owned(), NAME_LENGTH),
        (format!("DQ.SIGNAL q a {long}"), NAME_LENGTH),
        (format!("DQ.NACK q a SILENT AWAIT {long}"), NAME_LENGTH),
        (format!("DQ.NACK q a SILENT AWAIT {just}"), "nil$"),
        ("DQ.NACK q a AWAIT n".to_owned(), SYNTAX),
        ("DQ.NACK q a FAIL AWAIT n".to_owned(), SYNTAX),
        ("DQ.NACK q a FATAL AWAIT n".to_owned(), SYNTAX),
        ("DQ.NACK q IDS 1 a 1 SILENT AWAIT n".to_owned(), SYNTAX),
        ("DQ.NACK q a SILENT AWAIT n AWAIT m".to_owned(), SYNTAX),
        ("DQ.NACK q a SILENT AWAIT".to_owned(), SYNTAX),
        (
            format!("DQ.NACK q a SILENT AWAIT n DELAY {LAST}"),
            "-ERR value is not an integer or out of range",
        ),
        ("DQ.TOUCH q IDS 1 a 1 PROGRESS x".to_owned(), SYNTAX),
        ("DQ.POP q WITHSTEPS WITHSTEPS".to_owned(), SYNTAX),
        (
            "DQ.BPOP q WITHSTEPS".to_owned(),
            "-ERR timeout is missing before WITHSTEPS",
        ),
    ] {
        p.unseen(&line, expected);
    }
    p.run("SET s x");
    p.unseen("DQ.STEP s a 1 n v", "-WRONGTYPE ...");
    p.unseen("DQ.SIGNAL s a n", "-WRONGTYPE ...");
}

#[test]
fn a_job_has_a_thousand_steps_and_no_more() {
    let mut p = Probe::start();
    let token = reserved(&mut p, "");
    let pairs: Vec<String> = (0..999).map(|n| format!("n{n} {n}")).collect();
    p.says(&format!("DQ.STEP q a {token} {}", pairs.join(" ")), "1");
    p.unseen(
        &format!("DQ.STEP q a {token} one 1 more 1"),
        "-ERR a job has at most 1000 steps",
    );
    p.says(&format!("DQ.STEP q a {token} n0 2 one 1 one 2"), "1");
    p.unseen("DQ.SIGNAL q a more", "-ERR a job has at most 1000 steps");
    p.unseen("DQ.SIGNAL q a one", "0");
    p.seen(&format!("DQ.STEP q a {token} n998 3"), "1");
    let digest = p.server.digest();
    p.run("DEBUG RELOAD");
    assert_eq!(p.server.digest(), digest);
}

#[test]
fn they_are_there_in_each_attempt_until_the_end() {
    let mut p = Probe::start();
    let token = reserved(&mut p, "ATTEMPTS 2 GROUP g");
    p.run(&format!("DQ.STEP q a {token} one 1"));
    p.run(&format!("DQ.TOUCH q a TOKEN {token} PROGRESS half"));
    p.says("DQ.NACK q a", "'ready'");
    p.says("DQ.POP q WITHSTEPS", "[ 'a' 'x' ? 2 ? [ 'one' '1' ] ]");
    p.says("DQ.NACK q a", "'dead'");
    assert_eq!(get(&mut p, "steps"), "{ 'one' '1' }");
    p.unseen("DQ.SIGNAL q a more", "nil$");
    p.says("DQ.KICK q IDS 1 a", "1");
    assert_eq!(get(&mut p, "progress"), "nil");
    p.says(
        "DQ.POP q WITHTERMS NOACK WITHSTEPS WITHDUE",
        "[ 'a' 'x' nil$ 1 nil$ ? [ 'one' '1' ] [ 60000 2 nil$ ] ]",
    );
    for end in ["DQ.ADD q a y REPLACE", "DQ.ADD q a y XX"] {
        let token = reserved(&mut p, "");
        p.run(&format!("DQ.STEP q a {token} one 1"));
        p.says(end, "'a'");
        assert_eq!(get(&mut p, "steps"), "nil");
        p.says("DQ.POP q WITHSTEPS", "[ 'a' 'y' ? 1 ? [ ] ]");
        p.says("DQ.ACK q a", "1");
    }
    // A successor has none of them.
    let token = reserved(&mut p, "");
    p.run(&format!("DQ.STEP q a {token} one 1"));
    p.run("DQ.ADD q a next NEXT KEEP 7");
    assert_eq!(get(&mut p, "keep"), "nil");
    p.says("DQ.ACK q a", "1");
    assert_eq!(
        (get(&mut p, "steps"), get(&mut p, "keep")),
        ("nil".into(), "7".into())
    );
    p.says("DQ.POP q COUNT 1 WITHSTEPS", "[ [ 'a' 'next' ? 1 ? [ ] ] ]");
}

#[test]
fn waiting_clients_get_steps_too() {
    let mut p = Probe::start();
    let token = reserved(&mut p, "");
    p.run(&format!("DQ.STEP q a {token} one 1 two 2"));
    for (options, shown) in [("", "[ 'q' JOB ]"), ("COUNT 3", "[ 'q' [ [ JOB ] ] ]")] {
        let mut waiting = p
            .server
            .waiting(&format!("DQ.BPOP q 0 WITHSTEPS {options}"));
        p.says("DQ.NACK q a SILENT", "'ready'");
        let reply = waiting.reply();
        let job = "'a' 'x' ? 1 ? [ 'one' '1' 'two' '2' ]";
        assert!(fits(&reply, &shown.replace("JOB", job)), "{reply}");
    }
    p.says("DQ.NACK q a SILENT", "'ready'");
    p.says3(
        "DQ.BPOP q 1 WITHSTEPS",
        "[ 'q' 'a' 'x' ? 1 ? { 'one' '1' 'two' '2' } ]",
    );
}

#[test]
fn a_signal_sets_what_is_not_there() {
    let mut p = Probe::start();
    p.unseen("DQ.SIGNAL q a n", "nil$");
    p.run("DQ.ADD q a x DELAY 100000");
    p.unseen("DQ.SIGNAL q b n", "nil$");
    p.seen("DQ.SIGNAL q a delayed", "1");
    p.seen("DQ.SIGNAL q a signed by-ada", "1");
    p.unseen("DQ.SIGNAL q a signed by-bob", "0");
    assert_eq!(get(&mut p, "state"), "'delayed'");
    p.run("DQ.RESCHEDULE q DELAY 0 a");
    p.seen("DQ.SIGNAL q a ready", "1");
    let token = p.pop_token("DQ.POP q");
    p.seen("DQ.SIGNAL q a reserved v", "1");
    p.seen(&format!("DQ.STEP q a {token} signed by-carl"), "1");
    let steps = "{ 'delayed' '' 'signed' 'by-carl' 'ready' '' 'reserved' 'v' }";
    assert_eq!(get(&mut p, "steps"), steps);
}

#[test]
fn a_job_waits_for_its_signal() {
    let mut p = Probe::start();
    let token = reserved(&mut p, "ATTEMPTS 1");
    p.seen(
        &format!("DQ.NACK q a TOKEN {token} SILENT AWAIT signed"),
        "'delayed'",
    );
    assert_eq!(get(&mut p, "awaits"), "'signed'");
    assert_eq!(get(&mut p, "due"), LAST.to_string());
    assert_eq!(show(&p.field("DQ.STATS q", "next-due")), "nil");
    p.says(
        &format!("DQ.FORECAST q FROM 0 TO {LAST} BUCKETS 2"),
        "[ 0 0 ]",
    );
    p.says("DQ.LEN q DELAYED", "1");
    p.seen("DQ.SIGNAL q a other", "1");
    assert_eq!(get(&mut p, "state"), "'delayed'");
    p.events();
    p.ready_events = true;
    p.raises("DQ.SIGNAL q a signed yes", "1", "dq.ready");
    assert_eq!(get(&mut p, "awaits"), "nil");
    let due = p.field_int("DQ.GET q a", "due");
    assert!(due.abs_diff(p.time_ms() as i64) < 60_000, "{due}");
    p.says(
        "DQ.POP q WITHSTEPS",
        "[ 'a' 'x' ? 1 ? [ 'other' '' 'signed' 'yes' ] ]",
    );
    // The signal was set before: the job's place in the order stays, whatever DELAY says.
    let before = get(&mut p, "due");
    p.says("DQ.NACK q a SILENT DELAY 100000 AWAIT signed", "'ready'");
    assert_eq!(
        (get(&mut p, "due"), get(&mut p, "awaits")),
        (before, "nil".into())
    );
    // A client that waits is woken by the signal.
    p.run("DQ.POP q");
    p.says("DQ.NACK q a SILENT AWAIT third REASON why", "'delayed'");
    assert_eq!(get(&mut p, "reason"), "'why'");
    let mut waiting = p.server.waiting("DQ.BPOP q 0");
    p.says("DQ.SIGNAL q a third", "1");
    assert!(waiting.reply().starts_with("[ 'q' 'a' 'x'"));
}

#[test]
fn another_due_ends_the_waiting() {
    let mut p = Probe::start();
    for line in ["DQ.RESCHEDULE q DELAY 50000 a", "DQ.RESCHEDULE q AT 0 a"] {
        reserved(&mut p, "");
        p.says("DQ.NACK q a SILENT AWAIT n", "'delayed'");
        p.says(&format!("DQ.RESCHEDULE q AT {LAST} a"), "1");
        p.says("DQ.RESCHEDULE q PRIORITY 3 a", "1");
        assert_eq!(get(&mut p, "awaits"), "'n'");
        p.says(line, "1");
        assert_eq!(get(&mut p, "awaits"), "nil");
        let due = get(&mut p, "due");
        p.says("DQ.SIGNAL q a n", "1");
        assert_eq!(get(&mut p, "due"), due);
    }
}

/// Names and values count for MAXBYTES as payloads do.
#[test]
fn steps_count_for_max_bytes() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q MAXBYTES 12");
    let token = reserved(&mut p, "");
    assert_eq!(p.field_int("DQ.STATS q", "bytes"), 2);
    p.says(&format!("DQ.STEP q a {token} n 12345"), "1");
    assert_eq!(p.field_int("DQ.STATS q", "bytes"), 8);
    let full = "-MAXBYTES queue is full";
    p.unseen(&format!("DQ.STEP q a {token} m 1234"), full);
    p.unseen(&format!("DQ.STEP q a {token} n 1 m 123456789"), full);
    p.unseen("DQ.SIGNAL q a m 1234", full);
    p.says(&format!("DQ.STEP q a {token} n 1 m 1234567"), "1");
    assert_eq!(p.field_int("DQ.STATS q", "bytes"), 12);
    // What does not make it larger is accepted, even above the limit.
    p.run("DQ.CFGSET q MAXBYTES 5");
    p.says(&format!("DQ.STEP q a {token} m 7654321"), "1");
    p.unseen("DQ.ADD q b x", full);
    // They go with the job.
    p.says("DQ.ADD q a x XX", "'a'");
    assert_eq!(p.field_int("DQ.STATS q", "bytes"), 2);
    p.says("DQ.POP q COUNT 1 NOACK", "[ [ ... ] ]");
}

#[test]
fn a_wait_holds_the_rule_up() {
    let (_server, mut client) = start();
    client.run("DQ.ADD q a x EVERY 60000");
    // During a wait the rule makes no new occurrences.
    client.run("DQ.CLOCK ADVANCE 60000");
    client.delivery_of("DQ.POP q");
    client.says("DQ.NACK q a SILENT AWAIT go", "'delayed'");
    client.says("DQ.CLOCK NEXT", "nil$");
    client.run("DQ.CLOCK ADVANCE 600000");
    client.says("DQ.POP q", "nil*");
    client.says("DQ.SIGNAL q a go", "1");
    client.delivery_of("DQ.POP q ID a");
    client.says("DQ.ACK q a", "1");
    assert!(client.ask("DQ.GET q a").contains("'steps' nil$"));
}

trait Tokens {
    /// The token of what the command delivers.
    fn delivery_of(&mut self, line: &str) -> String;
}

impl Tokens for Raw {
    #[track_caller]
    fn delivery_of(&mut self, line: &str) -> String {
        self.words(line)[2].clone()
    }
}

/// Thirty days pass; signals come before the wait, after it, and never.
#[test]
fn a_month_passes() {
    const DAY: i64 = 86_400_000;
    let (_server, mut client) = start();
    let began = clock(&mut client);
    for (id, delay) in [("before", ""), ("after", ""), ("never", "DELAY 2592000000")] {
        client.run(&format!("DQ.ADD q {id} x"));
        let token = client.delivery_of(&format!("DQ.POP q ID {id}"));
        client.says(&format!("DQ.STEP q {id} {token} asked yes"), "1");
        if id == "before" {
            client.says("DQ.SIGNAL q before signed", "1");
        }
        let state = if id == "before" {
            "'ready'"
        } else {
            "'delayed'"
        };
        client.says(
            &format!("DQ.NACK q {id} SILENT AWAIT signed {delay}"),
            state,
        );
    }
    client.delivery_of("DQ.POP q ID before");
    client.says("DQ.ACK q before", "1");
    // The only instant to come is that of the job whose wait has an end.
    client.run(&format!("DQ.CLOCK ADVANCE {}", 29 * DAY));
    client.says("DQ.POP q", "nil*");
    client.says("DQ.SIGNAL q after signed", "1");
    client.delivery_of("DQ.POP q ID after");
    client.says("DQ.ACK q after", "1");
    assert_eq!(client.int("DQ.CLOCK NEXT"), began + 30 * DAY);
    client.says("DQ.CLOCK NEXT", "nil$");
    assert_eq!(field(&mut client, "DQ.GET q never", "awaits"), "nil$");
    let delivered = client.ask("DQ.POP q WITHSTEPS");
    assert!(fits(&delivered, "[ 'never' 'x' ? 1 ? [ 'asked' 'yes' ] ]"));
    // A late signal is kept for the next attempt.
    client.says("DQ.SIGNAL q never signed", "1");
    // A TTL ends a wait without an end.
    client.run("DQ.ADD q mortal x TTL 5000");
    client.delivery_of("DQ.POP q ID mortal");
    client.says("DQ.NACK q mortal SILENT AWAIT n", "'delayed'");
    client.run("DQ.CLOCK ADVANCE 5000");
    client.says("DQ.SIGNAL q mortal n", "nil$");
}

/// All kinds of notes, on all kinds of jobs.
fn furnish(client: &mut Raw) {
    for (id, options) in [
        ("a", "ATTEMPTS 1"),
        ("b", "GROUP g TTL 9000000"),
        ("c", "EVERY 9000000 AT 0"),
        ("d", ""),
    ] {
        client.run(&format!("DQ.ADD q {id} x KEEP 1000 {options}"));
        let token = client.delivery_of(&format!("DQ.POP q ID {id} TTR 9000000"));
        let long = "v".repeat(3000);
        client.says(&format!("DQ.STEP q {id} {token} one 1 two {long}"), "1");
        client.run(&format!("DQ.TOUCH q {id} TOKEN {token} PROGRESS half"));
    }
    for line in [
        "DQ.ADD q d y NEXT KEEP 8",
        "DQ.SIGNAL q d three",
        "DQ.NACK q a FATAL",
        "DQ.NACK q b SILENT AWAIT four",
        "DQ.NACK q c SILENT AWAIT five DELAY 8000000",
    ] {
        let reply = client.ask(line);
        assert!(
            !reply.starts_with('-') && reply != "nil$",
            "{line} -> {reply}"
        );
    }
}

/// The data type's whole life: no note is lost, and copies are equal.
#[test]
fn they_go_wherever_the_queue_goes() {
    for preamble in ["yes", "no"] {
        let builder = Server::builder()
            .aof()
            .config("aof-use-rdb-preamble", preamble);
        let (mut master, replica) = pair(builder);
        let mut client = master.raw();
        furnish(&mut client);
        let digest = |client: &mut Raw, key: &str| client.ask(&format!("DEBUG DIGEST-VALUE {key}"));
        let before = digest(&mut client, "q");
        master.assert_followed_by(&[&replica]);
        for line in [
            "DEBUG RELOAD",
            "DEBUG LOADAOF",
            "COPY q copy",
            "RENAME copy other",
        ] {
            client.run(line);
        }
        assert_eq!(digest(&mut client, "other"), before);
        client.says("MOVE other 1", "1");
        client.run("SELECT 1");
        assert_eq!(digest(&mut client, "other"), before);
        client.run("SELECT 0");
        let Reply::Bulk(payload) = client.run("DUMP q") else {
            panic!("no payload");
        };
        assert_eq!(
            show(&client.call(&[b"RESTORE", b"restored", b"0", &payload])),
            "+OK"
        );
        assert_eq!(digest(&mut client, "restored"), before);
        master.assert_followed_by(&[&replica]);
        client.run("BGREWRITEAOF");
        wait_until("a rewrite", PATIENCE, || {
            master.info("persistence", "aof_rewrite_in_progress") == "0"
                && master.info("persistence", "aof_rewrite_scheduled") == "0"
        });
        master.restart();
        let mut client = master.raw();
        assert_eq!(digest(&mut client, "q"), before);
        assert_eq!(digest(&mut client, "restored"), before);
        // And it continues: on the promoted replica as here.
        replica.promote();
        for server in [&master, &replica] {
            let mut client = server.raw();
            client.says("DQ.SIGNAL q b four", "1");
            assert!(client
                .ask("DQ.POP q ID b WITHSTEPS")
                .contains("'four' '' ] ]"));
            client.says("DQ.KICK q IDS 1 a", "1");
            client.says("DQ.ACK q d", "1");
            assert_eq!(field(&mut client, "DQ.GET q d", "keep"), "8");
        }
    }
}

/// A small queue with notes can sleep, too, and its figures are known meanwhile.
#[test]
fn a_queue_with_notes_sleeps() {
    let server = Server::start();
    let mut client = server.raw();
    client.run("DQ.ADD q a x DELAY 90000000 KEEP 7");
    client.says("DQ.SIGNAL q a name value", "1");
    let awake = client.int("MEMORY USAGE q");
    let digest = client.ask("DEBUG DIGEST-VALUE q");
    wait_until("it sleeps", PATIENCE, || {
        client.int("MEMORY USAGE q") < awake / 2
    });
    assert_eq!(server.number("dq", "dq_bytes"), 11);
    assert_eq!(client.ask("DEBUG DIGEST-VALUE q"), digest);
    client.says("DQ.SIGNAL q a name", "0");
    assert_eq!(client.ask("DEBUG DIGEST-VALUE q"), digest);
}

/// "Steps of a job and other keys of the same server can be written in one script, and so take effect together or
/// not at all."
#[test]
fn a_script_writes_steps_and_other_keys_together() {
    const SCRIPT: &[u8] = b"
        if not redis.call('DQ.STEP', KEYS[1], ARGV[1], ARGV[2], 'moved', 'yes') then return nil end
        redis.call('DECRBY', KEYS[2], 10)
        return redis.call('INCRBY', KEYS[3], 10)";
    const ONCE: &[u8] = b"
        if not redis.call('DQ.TOUCH', KEYS[1], ARGV[1], 'TOKEN', ARGV[2]) then return nil end
        if redis.call('DQ.SIGNAL', KEYS[1], ARGV[1], 'once', 'yes') == 0 then return 0 end
        return redis.call('INCRBY', KEYS[2], 10)";
    let mut p = Probe::start();
    let token = reserved(&mut p, "").to_string();
    let mut client = p.server.raw();
    for expected in ["10", "0", "0"] {
        let reply = client.call(&[b"EVAL", ONCE, b"2", b"q", b"twice", b"a", token.as_bytes()]);
        assert_eq!(show(&reply), expected);
    }
    let mut run = |token: &str| {
        show(&client.call(&[
            b"EVAL",
            SCRIPT,
            b"3",
            b"q",
            b"from",
            b"to",
            b"a",
            token.as_bytes(),
        ]))
    };
    assert_eq!(run(&token), "10");
    p.says("DQ.NACK q a", "'ready'");
    assert_eq!(run(&token), "nil$", "it is another's now, or nobody's");
    p.says("GET from", "'-10'");
    p.talk(
        "> MULTI
        +OK
        > DQ.SIGNAL q a one
        +QUEUED
        > DQ.SIGNAL q a one
        +QUEUED
        > EXEC
        [ 1 0 ]",
    );
}

#[test]
fn progress_and_keep_are_shown() {
    let mut p = Probe::start();
    let token = reserved(&mut p, "KEEP 0");
    assert_eq!(get(&mut p, "keep"), "0");
    p.unseen(
        "DQ.ADD q b x KEEP -1",
        "-ERR value is not an integer or out of range",
    );
    p.unseen(
        "DQ.ADD q b x KEEP 4398046511104",
        "-ERR value is not an integer or out of range",
    );
    assert_eq!(get(&mut p, "progress"), "nil");
    p.unseen(
        &format!("DQ.TOUCH q a TOKEN {} PROGRESS x", token + 1),
        "nil$",
    );
    p.seen(
        &format!("DQ.TOUCH q a TOKEN {token} TTR 90000 PROGRESS \"\""),
        "?",
    );
    assert_eq!(get(&mut p, "progress"), "''");
    let long = "p".repeat(1025);
    p.seen(&format!("DQ.TOUCH q a TOKEN {token} PROGRESS {long}"), "?");
    assert_eq!(get(&mut p, "progress"), format!("'{}'", &long[..1024]));
    assert_eq!(p.field_int("DQ.STATS q", "bytes"), 2);
    p.says("DQ.NACK q a", "'ready'");
    assert!(get(&mut p, "progress").starts_with("'ppp"));
    p.says("DQ.ADD q a x REPLACE", "'a'");
    assert_eq!(
        (get(&mut p, "progress"), get(&mut p, "keep")),
        ("nil".into(), "nil".into())
    );
}
