//! DQ.MADD: as many DQ.ADDs with the same options, all or none.

use crate::probe::Probe;
use crate::scene::{pair, Dice, Lines, Scene};
use crate::support::{wait_until, Server, PATIENCE};

const SYNTAX: &str = "-ERR syntax error, ...";
const RANGE: &str = "-ERR value is not an integer or out of range";

#[test]
fn ids_are_answered_in_order_and_nil_where_one_is_refused() {
    let mut p = Probe::start();
    p.seen("DQ.MADD q 3 a x b y c \"\"", "[ 'a' 'b' 'c' ]");
    p.unseen("DQ.MADD q 2 a 1 b 2", "[ nil$ nil$ ]");
    p.says3("DQ.MADD q 2 a 1 d 2", "[ nil 'd' ]");
    // The second job with that id finds the first.
    p.says("DQ.MADD q 2 e 1 e 2", "[ 'e' nil$ ]");
    p.says("DQ.MADD q 3 e 3 e 4 f 5 XX", "[ 'e' 'e' nil$ ]");
    p.says("DQ.MADD q 2 g 1 g 2 replace", "[ 'g' 'g' ]");
    p.says("DQ.LEN q", "6");
    assert_eq!(p.field_text("DQ.GET q e", "payload"), "'4'");
    assert_eq!(p.field_text("DQ.GET q g", "payload"), "'2'");
    // A queue without jobs is not created.
    p.unseen("DQ.MADD none 1 a x XX", "[ nil$ ]");
    p.says("EXISTS none", "0");
    let made = p.words("DQ.MADD r 3 * x * y a z");
    assert!(made[0] != made[1] && made[0].contains('-') && made[2] == "a");
    p.says("DQ.LEN r", "3");
    // An id in the dedupe window is refused.
    p.run("DQ.CFGSET r DEDUPE 100000");
    p.run("DQ.POP r ID a NOACK");
    p.says("DQ.MADD r 2 a x b x", "[ nil$ 'b' ]");
    // A dead job makes room for another one.
    p.run("DQ.POP q ID a");
    p.run("DQ.NACK q a FATAL");
    p.says("DQ.MADD q 1 a again", "[ 'a' ]");
    p.run("SET text x");
    p.unseen(
        "DQ.MADD text 1 a x",
        "-WRONGTYPE Operation against a key holding the wrong kind of value",
    );
}

#[test]
fn options_are_those_of_each_job() {
    let mut p = Probe::start();
    let options = "PRIORITY -3 TTR 5000 ATTEMPTS 4 BACKOFF 2 10 20 TTL 900000 GROUP g KEEP 7000";
    p.run(&format!("DQ.MADD q 2 a x b y AT 4000000000000 {options}"));
    p.run(&format!("DQ.ADD q c z AT 4000000000000 {options}"));
    let fields = |p: &mut Probe, id: &str| {
        let names = [
            "priority",
            "due",
            "ttr",
            "attempts",
            "max-attempts",
            "backoff",
            "group",
            "keep",
            "state",
        ];
        names.map(|name| p.field_text(&format!("DQ.GET q {id}"), name))
    };
    let alone = fields(&mut p, "c");
    assert_eq!(fields(&mut p, "a"), alone);
    assert_eq!(fields(&mut p, "b"), alone);
    assert_ne!(p.field_text("DQ.GET q a", "expires"), "nil");
    p.says("DQ.LEN q GROUP g", "3");
    // The delay counts from the same instant for all.
    p.run("DQ.MADD r 2 a x b y DELAY 100000");
    let due = p.field_int("DQ.GET r a", "due");
    assert_eq!(p.field_int("DQ.GET r b", "due"), due);
    p.run("DQ.RESCHEDULE r DELAY 0 a b");
    p.says("DQ.POP r COUNT 5", "[ [ 'a' ... ");
}

#[test]
fn where_one_would_be_an_error_nothing_is_added() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x");
    p.run("DQ.CFGSET q MAXLEN 3");
    p.unseen("DQ.MADD q 3 b x c x d x", "-MAXLEN queue is full");
    // Jobs that are refused or replaced do not make the queue longer.
    p.says("DQ.MADD q 4 a x b x c x a x", "[ nil$ 'b' 'c' nil$ ]");
    p.says("DQ.MADD q 3 a 1 b 1 c 1 XX", "[ 'a' 'b' 'c' ]");
    p.run("DQ.CFGSET q MAXLEN 0 MAXBYTES 12");
    p.unseen(
        "DQ.MADD q 2 a 12345 b 12345678 REPLACE",
        "-MAXBYTES queue is full",
    );
    p.says("DQ.MADD q 2 a 12345 b 123 REPLACE", "[ 'a' 'b' ]");
    p.says("DQ.MADD q 2 a 1 c 12345 REPLACE", "[ 'a' 'c' ]");
    p.run("DQ.CFGSET q MAXBYTES 0");
    let long = "x".repeat(1025);
    p.unseen(
        &format!("DQ.MADD q 2 new x {long} x"),
        "-ERR id must be 1 to 1024 bytes long",
    );
    for (rest, error) in [
        ("2 a x b", SYNTAX),
        ("2 a x", SYNTAX),
        ("1 a x b y", SYNTAX),
        ("1 a x NEXT", SYNTAX),
        ("1 a x EVERY 1000", SYNTAX),
        ("1 a x NX XX", SYNTAX),
        ("1 a x DELAY 1 AT 5", SYNTAX),
        ("1 a x DELAY", SYNTAX),
        ("1 a x TTR 5 TTR 5", SYNTAX),
        ("0 a x", RANGE),
        ("-1 a x", RANGE),
        ("x a x", RANGE),
        ("10001 a x", RANGE),
        ("1 a x DELAY -1", RANGE),
        ("1 a x TTR 0", RANGE),
        ("2 new x new2 x AT 4398046511104", RANGE),
        ("1 new x GROUP \"\"", "-ERR GROUP must be ..."),
        (
            "1 a",
            "-ERR wrong number of arguments for 'dq.madd' command",
        ),
    ] {
        p.unseen(&format!("DQ.MADD q {rest}"), error);
    }
    p.says("DQ.LEN q", "3");
}

#[test]
fn who_waits_is_served_and_events_are_raised() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q");
    let mut waiting: Vec<_> = (0..3).map(|_| p.server.raw()).collect();
    for client in &mut waiting {
        client.begin("DQ.BPOP q 0");
    }
    let all_wait = |p: &mut Probe| p.field_int("DQ.STATS q", "waiting-clients") == 3;
    wait_until("all wait", PATIENCE, || all_wait(&mut p));
    p.run("DQ.MADD q 4 a 1 b 2 c 3 d 4");
    let mut ids: Vec<String> = waiting.iter_mut().map(|it| it.delivery().id).collect();
    ids.sort();
    assert_eq!(ids, ["a", "b", "c"]);
    p.says("DQ.LEN q READY", "1");
    p.events();
    p.raises("DQ.MADD q 2 e 1 f 2 DELAY 100000", "[ 'e' 'f' ]", "dq.add");
    p.unseen("DQ.MADD q 1 e 1", "[ nil$ ]");
}

#[test]
fn it_stands_in_transactions_and_scripts() {
    let mut p = Probe::start();
    for line in [
        "MULTI",
        "DQ.MADD q 2 a 1 b 2",
        "DQ.POP q",
        "DQ.MADD q 1 a 3",
    ] {
        p.run(line);
    }
    p.says("EXEC", "[ [ 'a' 'b' ] [ 'a' ... ");
    p.says(
        "EVAL return\\x20redis.call('DQ.MADD',KEYS[1],'2','c','1','a','2') 1 q",
        "[ 'c' nil$ ]",
    );
    p.says("COMMAND GETKEYS DQ.MADD q 1 a x", "[ 'q' ]");
}

/// Random calls, and the same as single ADDs in a transaction, give equal queues: here, on a replica, in the AOF and in
/// a dump.
#[test]
fn followers_have_what_single_adds_would_have_made() {
    let (mut master, replica) = pair(Server::builder().aof());
    let mut dice = Dice::new(7);
    let mut client = master.raw();
    for _ in 0..120 {
        let count = 1 + dice.below(6);
        let condition = dice.pick(&["", "", "XX", "REPLACE"]);
        let group = dice.pick(&["", "GROUP g", "GROUP h"]);
        let keep = dice.pick(&["", "KEEP 90000"]);
        let due = 1_000_000 + dice.below(1000);
        let options = format!(
            "{condition} AT {due} {group} {keep} PRIORITY {}",
            dice.below(3)
        );
        let jobs: Vec<String> = (0..count)
            .map(|_| format!("j{} p{}", dice.below(40), dice.below(1000)))
            .collect();
        client.run(&format!(
            "DQ.MADD many {count} {} {options}",
            jobs.join(" ")
        ));
        client.run("MULTI");
        for job in &jobs {
            client.run(&format!("DQ.ADD single {job} {options}"));
        }
        client.run("EXEC");
        for key in ["many", "single"] {
            client.run(&format!("DQ.DEL {key} j{}", count * 3));
        }
    }
    assert_eq!(
        client.ask("DEBUG DIGEST-VALUE many"),
        client.ask("DEBUG DIGEST-VALUE single")
    );
    assert!(client.int("DQ.LEN many") > 20);
    master.assert_followed_by(&[&replica]);
    let digest = client.ask("DEBUG DIGEST");
    client.run("DQ.MADD q 3 * x * y b z GROUP g");
    master.assert_followed_by(&[&replica]);
    client.says("COPY many copy", "1");
    client.run("DEL copy");
    client.run("DEL q");
    assert_eq!(client.ask("DEBUG DIGEST"), digest);
    master.kill();
    master.restart();
    let mut client = master.raw();
    assert_eq!(client.ask("DEBUG DIGEST"), digest);
    client.says("DEBUG RELOAD", "+OK");
    assert_eq!(client.ask("DEBUG DIGEST"), digest);
}

#[test]
fn ten_thousand_are_one_record() {
    let server = Server::builder().aof().start();
    let mut client = server.raw();
    let mut words: Vec<Vec<u8>> = vec![b"DQ.MADD".to_vec(), b"q".to_vec(), b"10000".to_vec()];
    for number in 0..10_000 {
        words.push(format!("job-{number}").into_bytes());
        words.push(vec![b'x'; 100]);
    }
    let words: Vec<&[u8]> = words.iter().map(|word| &word[..]).collect();
    client.call(&words);
    client.says("DQ.LEN q", "10000");
    assert_eq!(server.count_in_aof("DQ.APPLY"), 1);
}
