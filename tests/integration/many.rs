//! Many jobs in one command, and ids that read as its words; WITHDUE.

use crate::probe::Probe;
use crate::scene::{Lines, Scene};
use crate::support::Server;

/// Reserves that many jobs of a queue `q`; ids and tokens as IDS wants them.
fn reserved(p: &mut Probe, count: usize, options: &str) -> String {
    let mut pairs = String::new();
    for id in 0..count {
        p.run(&format!("DQ.ADD q j{id} x {options}"));
        let token = p.pop_token(&format!("DQ.POP q ID j{id}"));
        pairs.push_str(&format!(" j{id} {token}"));
    }
    pairs
}

#[test]
fn many_are_touched_each_by_its_token() {
    let mut p = Probe::start();
    p.unseen("DQ.TOUCH q IDS 2 a 1 b 2", "[ nil$ nil$ ]");
    let pairs = reserved(&mut p, 3, "");
    let before = p.time_us();
    let reply = p.words(&format!("DQ.TOUCH q IDS 5{pairs} j0 1 nobody 7 TTR 400000"));
    assert_eq!(reply[3..], ["nil$", "nil$"]);
    for (id, deadline) in reply[..3].iter().enumerate() {
        let deadline: u64 = deadline.parse().expect("a deadline");
        assert!(deadline * 1000 >= before + 400_000_000);
        let shown = p.field_int(&format!("DQ.GET q j{id}"), "deadline");
        assert_eq!(shown as u64, deadline);
    }
    // The length of the last lease is that of the next one.
    let before = p.time_us();
    let again: u64 = p.words(&format!("DQ.TOUCH q ids 3{pairs}"))[0]
        .parse()
        .expect("a deadline");
    assert!(again * 1000 >= before + 400_000_000);
    // RESP3 has its own null.
    p.says3("DQ.TOUCH q IDS 1 nobody 1", "[ nil ]");
}

#[test]
fn many_are_given_back_each_by_its_token() {
    let mut p = Probe::start();
    p.unseen("DQ.NACK q IDS 1 a 1 FATAL", "[ nil$ ]");
    let pairs = reserved(&mut p, 3, "ATTEMPTS 2");
    p.seen(
        &format!("DQ.NACK q IDS 4{pairs} nobody 1 DELAY 100000 PRIORITY 3"),
        "[ 'delayed' 'delayed' 'delayed' nil$ ]",
    );
    // These deliveries have ended.
    p.unseen(
        &format!("DQ.NACK q IDS 3{pairs} SILENT"),
        "[ nil$ nil$ nil$ ]",
    );
    assert_eq!(p.field_int("DQ.GET q j2", "priority"), 3);
    p.run("DQ.RESCHEDULE q DELAY 0 j0 j1 j2");
    let token = p.pop_token("DQ.POP q");
    // A job that is named twice is given back once.
    p.says(
        &format!("DQ.NACK q IDS 2 j0 {token} j0 {token}"),
        "[ 'dead' nil$ ]",
    );
    // The first id reads IDS.
    p.run("DQ.ADD q IDS x PRIORITY -1");
    let token = p.pop_token("DQ.POP q ID IDS");
    p.says(&format!("DQ.NACK q IDS 1 IDS {token}"), "[ 'ready' ]");
}

#[test]
fn pairs_that_do_not_fit_are_refused_and_nothing_is_done() {
    let mut p = Probe::start();
    let pairs = reserved(&mut p, 2, "");
    for command in ["TOUCH", "NACK"] {
        for rest in [
            "1".into(),
            "1 j0".into(),
            format!("3{pairs}"),
            format!("2{pairs} j0"),
            format!("2{pairs} TOKEN 5"),
            format!("1{pairs}"),
            "9223372036854775807 j0 1".into(),
        ] {
            p.unseen(
                &format!("DQ.{command} q IDS {rest}"),
                "-ERR syntax error, ...",
            );
        }
        for count in ["0", "-1", "007", "9223372036854775808"] {
            p.unseen(
                &format!("DQ.{command} q IDS {count}{pairs}"),
                "-ERR value is not an integer or out of range",
            );
        }
        // Without a number behind it, it is an id.
        for rest in ["x", "-", "1x", "\"\""] {
            p.unseen(
                &format!("DQ.{command} q IDS {rest}{pairs}"),
                "-ERR syntax error, ...",
            );
        }
        p.unseen(&format!("DQ.{command} q IDS"), "nil$");
        p.unseen(&format!("DQ.{command} q ids TOKEN 1"), "nil$");
    }
    let range = "-ERR value is not an integer or out of range";
    p.unseen(
        &format!("DQ.NACK q IDS 2{pairs} DELAY 4398046511103"),
        range,
    );
    p.unseen(&format!("DQ.TOUCH q IDS 2{pairs} TTR 0"), range);
    p.run("SET s x");
    p.unseen(
        "DQ.TOUCH s IDS 1 a 1",
        "-WRONGTYPE Operation against a key holding the wrong kind of value",
    );
}

/// Ids that read as words of the commands, or as numbers of them.
const HOSTILE: [&str; 12] = [
    "IDS",
    "ids",
    "UNRESERVED",
    "WITHTOKENS",
    "RESULTS",
    "PRIORITY",
    "DELAY",
    "TOKEN",
    "1",
    "12",
    "-1",
    "\x00",
];

fn add_hostile(p: &mut Probe) {
    for id in HOSTILE {
        p.run(&format!("DQ.ADD q {id} x"));
    }
}

#[test]
fn no_id_behind_ids_is_a_word() {
    let mut p = Probe::start();
    // No job can be added as `*`; here it is an id like any other.
    let all = format!("13 {} *", HOSTILE.join(" "));
    for ids in ["IDS", "ids"] {
        add_hostile(&mut p);
        p.seen(&format!("DQ.RESCHEDULE q DELAY 100000 {ids} {all}"), "12");
        p.seen(
            &format!("DQ.RESCHEDULE q PRIORITY 7 AT 5 {ids} {all}"),
            "12",
        );
        p.says("DQ.LEN q READY", "12");
        p.unseen(&format!("DQ.ACK q {ids} {all}"), "0");
        p.unseen(
            &format!("DQ.AWAIT q 0.001 {ids} {all}"),
            "[ [ '*' 'unknown' nil$ nil$ nil$ ] ]",
        );
        p.run("DQ.POP q COUNT 99");
        p.unseen(&format!("DQ.DEL q UNRESERVED {ids} {all}"), "0");
        p.seen(&format!("DQ.ACK q {ids} {all}"), "12");
        for form in ["unreserved ", ""] {
            add_hostile(&mut p);
            p.seen(&format!("DQ.DEL q {form}{ids} {all}"), "12");
        }
    }
}

#[test]
fn each_acknowledged_delivery_is_answered() {
    let mut p = Probe::start();
    for (word, result) in [("WITHTOKENS", ""), ("RESULTS", " a\x00b")] {
        let ack = format!("DQ.ACK q {word} IDS");
        p.unseen(&format!("{ack} 2 IDS 1{result} b 2{result}"), "[ 0 0 ]");
        p.run("DQ.CFGSET q DONELEN 100");
        add_hostile(&mut p);
        let held = HOSTILE.map(|id| {
            let token = p.pop_token(&format!("DQ.POP q ID {id}"));
            format!(" {id} {token}{result}")
        });
        p.run("DQ.DEL q IDS 1 ids");
        p.unseen(
            &format!("{ack} 2 IDS 1{result} RESULTS x{result}"),
            "[ 0 0 ]",
        );
        p.says3(&format!("{ack} 1{}", held[5]), "[ 1 ]");
        p.seen(
            &format!("{ack} 14{}{} nobody 1{result}", held.concat(), held[0]),
            "[ 1 0 1 1 1 0 1 1 1 1 1 1 0 0 ]",
        );
        let kept = p.field_text("DQ.GET q WITHTOKENS", "result");
        assert_eq!(kept == "nil", result.is_empty(), "{kept}");
        p.run("DEL q");
    }
}

#[test]
fn ids_that_do_not_fit_their_number_are_refused() {
    let mut p = Probe::start();
    let plain = [
        "DEL q",
        "DEL q UNRESERVED",
        "ACK q",
        "AWAIT q 0",
        "RESCHEDULE q DELAY 5",
    ];
    let forms = plain
        .map(|form| (form, ""))
        .into_iter()
        .chain([("ACK q WITHTOKENS", " 1"), ("ACK q RESULTS", " 1 r")]);
    p.run("DQ.ADD q a x");
    p.run("DQ.POP q");
    for (form, rest) in forms {
        let (name, _) = form.split_once(' ').expect("a key");
        p.unseen(
            &format!("DQ.{form} IDS"),
            &format!(
                "-ERR wrong number of arguments for 'dq.{}' command",
                name.to_lowercase()
            ),
        );
        for number in ["0", "-1", "x", "01", "9223372036854775808"] {
            p.unseen(
                &format!("DQ.{form} IDS {number} a{rest}"),
                "-ERR value is not an integer or out of range",
            );
        }
        for ids in [
            "1".into(),
            format!("2 a{rest}"),
            format!("1 a{rest} b{rest}"),
            format!("1 a{rest} b"),
            format!("9223372036854775807 a{rest}"),
        ] {
            p.unseen(&format!("DQ.{form} IDS {ids}"), "-ERR syntax error, ...");
        }
    }
}

#[test]
fn withdue_tells_for_when_a_job_was_due() {
    let mut p = Probe::start();
    p.talk(
        "> DQ.ADD q a x AT 1000
        'a'
        > DQ.ADD q b x AT 2000
        'b'
        > DQ.ADD q c x AT 3000
        'c'
        > DQ.ADD q d x AT 4000
        'd'
        > DQ.ADD q e x AT 5000
        'e'
        > DQ.POP q WITHDUE TTR 100000
        [ 'a' 'x' ? 1 ? 1000 ]
        > DQ.POP q NOACK withdue
        [ 'b' 'x' nil$ 1 nil$ 2000 ]
        > DQ.POP q COUNT 1 WITHDUE
        [ [ 'c' 'x' ? 1 ? 3000 ] ]
        > DQ.BPOP q 0 WITHDUE COUNT 1
        [ 'q' [ [ 'd' 'x' ? 1 ? 4000 ] ] ]
        > DQ.BPOP none q 0 TTR 100000 WITHDUE
        [ 'q' 'e' 'x' ? 1 ? 5000 ]
        > DQ.NACK q e SILENT
        'ready'
        > DQ.POP q ID e WITHDUE
        [ 'e' 'x' ? 1 ? 5000 ]",
    );
    p.unseen("DQ.POP q WITHDUE WITHDUE", "-ERR syntax error, ...");
    // A client that waits gets it, too.
    let mut raw = p.server.raw();
    raw.send(&crate::probe::packed("DQ.BPOP q 0 WITHDUE NOACK"));
    p.server.wait_for_blocked(1);
    let due = p.time_ms() + 20;
    p.run(&format!("DQ.ADD q f x AT {due}"));
    let reply = crate::probe::show(&raw.read());
    assert_eq!(reply, format!("[ 'q' 'f' 'x' nil$ 1 nil$ {due} ]"));
}

/// DQ.MADD raises one event, and serves each client that waits.
#[test]
fn added_together() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q");
    let mut waiting = [(); 3].map(|()| p.server.waiting("DQ.BPOP q 0"));
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
fn ten_thousand_added_are_one_record() {
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
