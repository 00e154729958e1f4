//! DQ.POP.

use crate::probe::Probe;
use crate::support::Reply;

const MAX: u64 = (1 << 42) - 1;

#[test]
fn nil_where_none_is_ready() {
    let mut p = Probe::start();
    p.talk(
        "> DQ.POP q
        nil*
        3> DQ.POP q
        nil
        > DQ.POP q COUNT 5
        [ ]
        > DQ.POP q ID a
        nil*
        > EXISTS q
        0
        > DQ.ADD q a x DELAY 100000
        'a'",
    );
    p.all_unseen(
        "DQ.POP q -> nil*
        DQ.POP q ID a -> nil*
        DQ.POP q ID nobody -> nil*
        DQ.POP q COUNT 5 -> [ ]
        DQ.POP q NOACK TTR 5 -> nil*",
    );
    p.says3("DQ.POP q COUNT 5", "[ ]");
}

#[test]
fn reply() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x\\x00\\xff");
    let before = p.time_us();
    let reply = p.run("DQ.POP q");
    let after = p.time_us();
    let Reply::Array(words) = reply else { panic!() };
    let [id, payload, token, attempts, deadline] = words.as_slice() else {
        panic!("{words:?}")
    };
    assert_eq!((id, payload), (&Reply::bulk("a"), &Reply::bulk(b"x\0\xff")));
    assert_eq!(attempts, &Reply::Integer(1));
    let Reply::Bulk(token) = token else {
        panic!("{token:?}")
    };
    let token: u64 = std::str::from_utf8(token)
        .expect("digits")
        .parse()
        .expect("digits");
    assert!(token >> 20 >= before / 1000 && token >> 20 <= after / 1000);
    let Reply::Integer(deadline) = *deadline else {
        panic!("{deadline:?}")
    };
    let deadline_us = deadline as u64 * 1000;
    assert!(
        deadline_us >= before + 60_000_000,
        "no lease is shorter than asked"
    );
    assert!(deadline_us < after + 60_001_000);
    p.says("DQ.LEN q RESERVED", "1");
    assert_eq!(p.field_int("DQ.GET q a", "deadline"), deadline);
    assert_eq!(p.field_text("DQ.GET q a", "token"), format!("'{token}'"));
    p.says3("DQ.ADD q b y", "'b'");
    p.says3("DQ.POP q", "[ 'b' 'y' ? 1 ? ]");
}

#[test]
fn count() {
    let mut p = Probe::start();
    for id in 1..=5 {
        p.run(&format!("DQ.ADD q {id} x"));
    }
    p.talk(
        "> DQ.POP q COUNT 1
        [ [ '1' 'x' ? 1 ? ] ]
        > DQ.POP q count 2 TTR 90000
        [ [ '2' 'x' ? 1 ? ] [ '3' 'x' ? 1 ? ] ]
        3> DQ.POP q NOACK COUNT 9223372036854775807
        [ [ '4' 'x' nil 1 nil ] [ '5' 'x' nil 1 nil ] ]
        > DQ.POP q COUNT 9
        [ ]
        > DQ.LEN q
        3",
    );
    let token = |p: &mut Probe, id| {
        let text = p.field_text(&format!("DQ.GET q {id}"), "token");
        text.trim_matches('\'').parse::<u64>().expect("a token")
    };
    assert!(
        token(&mut p, 2) < token(&mut p, 3),
        "tokens grow within one command"
    );
}

#[test]
fn that_very_job() {
    let mut p = Probe::start();
    p.talk(
        "> DQ.ADD q a x
        'a'
        > DQ.ADD q b y PRIORITY 9
        'b'
        > DQ.ADD q later z DELAY 100000
        'later'
        > DQ.POP q id b
        [ 'b' 'y' ? 1 ? ]
        > DQ.POP q ID b
        nil*
        > DQ.POP q ID later
        nil*
        > DQ.POP q TTR 5 NOACK ID a
        [ 'a' 'x' nil$ 1 nil$ ]
        > DQ.LEN q
        2
        > DQ.NACK q b FATAL
        'dead'
        > DQ.POP q ID b
        nil*",
    );
}

#[test]
fn ttr() {
    let mut p = Probe::start();
    for (own, asked, ms) in [
        ("", "", 60_000),
        ("TTR 5000", "", 5000),
        ("TTR 5000", "TTR 7000", 7000),
    ] {
        p.run(&format!("DQ.ADD q a x {own} REPLACE"));
        let before = p.time_us();
        let deadline: u64 = p.words(&format!("DQ.POP q {asked}"))[4]
            .parse()
            .expect("a deadline");
        let after = p.time_us();
        assert!(
            deadline * 1000 >= before + ms * 1000 && deadline * 1000 < after + ms * 1000 + 1000
        );
    }
    // Only of this delivery.
    p.run("DQ.NACK q a");
    let before = p.time_us();
    let deadline: u64 = p.words("DQ.POP q")[4].parse().expect("a deadline");
    assert!(deadline * 1000 < before + 6_000_000);
    // A lease's end stops at the last instant.
    p.run("DQ.ADD q b x");
    p.says(
        &format!("DQ.POP q TTR {MAX}"),
        &format!("[ 'b' 'x' ? 1 {MAX} ]"),
    );
}

#[test]
fn noack() {
    let mut p = Probe::start();
    p.talk(
        "> DQ.ADD q a x
        'a'
        > DQ.POP q noack
        [ 'a' 'x' nil$ 1 nil$ ]
        > EXISTS q
        0
        > DQ.ADD q b x
        'b'
        3> DQ.POP q NOACK
        [ 'b' 'x' nil 1 nil ]
        > DQ.ADD q c x
        'c'
        > DQ.POP q TTR 10
        [ 'c' 'x' ? 1 ? ]",
    );
    p.until("DQ.LEN q READY", "1");
    p.says("DQ.POP q NOACK", "[ 'c' 'x' nil$ 2 nil$ ]");
}

#[test]
fn never_before_its_due() {
    let mut p = Probe::start();
    for i in 0..40 {
        p.run(&format!("DQ.ADD q {i} x DELAY {}", 1 + i % 7 * 3));
    }
    let mut got = 0;
    while got < 40 {
        let due_of = |p: &mut Probe| {
            let Reply::Array(jobs) = p.run("DQ.PEEK q DELAYED COUNT 100") else {
                panic!()
            };
            jobs
        };
        let delayed = due_of(&mut p);
        let reply = p.run("DQ.POP q NOACK");
        let after = p.time_us();
        let Reply::Array(words) = reply else { continue };
        got += 1;
        for job in delayed {
            let Reply::Array(job) = job else { panic!() };
            let Reply::Integer(due) = job[2] else {
                panic!()
            };
            if job[0] == words[0] {
                assert!(after >= due as u64 * 1000, "{words:?} at {after}");
            }
        }
    }
}

#[test]
fn a_job_is_found_at_its_due_millisecond() {
    let mut p = Probe::start();
    // The timer cannot run within a script.
    let script = "redis.call('DQ.ADD','q','a','x','DELAY','5') \
        local job,due=redis.call('DQ.GET','q','a') \
        for at=1,#job,2 do if job[at]=='due' then due=job[at+1] end end \
        while true do local before=now() local job=redis.call('DQ.POP','q') local after=now() \
        if job then return after>=due and 'at its due' or 'early' end \
        if before>=due then return 'late' end end";
    assert_eq!(p.eval("EVAL", script), "'at\\x20its\\x20due'");
    p.says("DQ.LEN q", "1");
}

#[test]
fn an_ended_lease_is_over_without_anybody_asking() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x TTR 30");
    let words = p.words("DQ.POP q");
    let (token, deadline): (u64, u64) =
        (words[2].parse().expect("t"), words[4].parse().expect("d"));
    p.until("DQ.POP q", "[ 'a' 'x' ? 2 ? ]");
    assert!(p.time_ms() >= deadline);
    let second: u64 = p
        .field_text("DQ.GET q a", "token")
        .trim_matches('\'')
        .parse()
        .expect("t");
    assert!(second > token);
    p.says(&format!("DQ.ACK q WITHTOKENS a {token}"), "0");
    p.says(&format!("DQ.ACK q WITHTOKENS a {second}"), "1");
}

#[test]
fn attempts_used_up() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x TTR 10 ATTEMPTS 2");
    p.says("DQ.POP q", "[ 'a' 'x' ? 1 ? ]");
    p.until("DQ.LEN q READY", "1");
    let deadline = p.words("DQ.POP q")[4].clone();
    p.until("DQ.LEN q DEAD", "1");
    p.talk(&format!(
        "> DQ.PEEK q DEAD
        [ [ 'a' 'x' {deadline} 2 0 ] ]
        > DQ.POP q
        nil*
        > DQ.LEN q
        0
        > EXISTS q
        1"
    ));
}

#[test]
fn refuses() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x PRIORITY 1");
    p.run("DQ.ADD q b x");
    let syntax = "-ERR syntax error, ...";
    for options in [
        "NOACK NOACK",
        "COUNT",
        "ID",
        "TTR",
        "COUNT 1 COUNT 1",
        "ID a ID a",
        "TTR 5 TTR 5",
        "COUNT 1 ID a",
        "ID a COUNT 1",
        "TTR 5 LEASE 5",
        "LEASE 5 TTR 5",
        "LEASE",
        "NONSENSE",
        "\"\"",
        "5",
    ] {
        p.unseen(&format!("DQ.POP q {options}"), syntax);
        p.unseen(&format!("DQ.POP none {options}"), syntax);
    }
    let range = "-ERR value is not an integer or out of range";
    for value in ["0", "-1", "x", "1.5", "9223372036854775808", "\"\""] {
        p.unseen(&format!("DQ.POP q COUNT {value}"), range);
        p.unseen(&format!("DQ.POP q TTR {value}"), range);
        p.unseen(&format!("DQ.POP q LEASE {value}"), range);
    }
    p.unseen("DQ.POP q TTR 4398046511104", range);
    p.unseen("DQ.POP none COUNT 0", range);
}

#[test]
fn one_reply_to_a_wrong_type() {
    let mut p = Probe::start();
    p.run("SET s v");
    for line in [
        "DQ.POP s",
        "DQ.POP s COUNT 3",
        "DQ.POP s ID x",
        "DQ.POP s NOACK COUNT 1",
    ] {
        p.says(
            line,
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
        );
        p.says("ECHO next", "'next'");
    }
}

#[test]
fn what_it_leaves() {
    let mut p = Probe::start();
    for id in ["a", "b", "c", "d"] {
        p.run(&format!("DQ.ADD q {id} x"));
    }
    p.seen("DQ.POP q", "[ 'a' 'x' ? 1 ? ]");
    p.seen("DQ.POP q NOACK", "[ 'b' 'x' nil$ 1 nil$ ]");
    p.run("DQ.ACK q a");
    p.raises("DQ.POP q", "[ 'c' 'x' ? 1 ? ]", "dq.pop");
    p.run("DQ.ACK q c");
    p.raises("DQ.POP q NOACK", "[ 'd' 'x' nil$ 1 nil$ ]", "dq.pop del");
}

#[test]
fn lateness_is_delivery_minus_due() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x AT 1000");
    let due_us = 1_000_000;
    let before = p.time_us();
    p.run("DQ.POP q");
    let after = p.time_us();
    for name in ["lateness-sum", "lateness-max"] {
        let late = p.field_int("DQ.STATS q", name) as u64;
        assert!(
            (before - due_us..=after - due_us).contains(&late),
            "{name} {late}"
        );
    }
    assert_eq!(p.field_int("DQ.STATS q", "lateness-count"), 1);
}

/// A reply is bounded by bytes as well as by jobs; the remaining jobs are in the next one.
#[test]
fn many_large_jobs_come_in_several_replies() {
    const JOBS: usize = 40;
    let mut p = Probe::start();
    let mut raw = p.server.raw();
    let payload = vec![b'x'; 1 << 20];
    for id in 0..JOBS {
        raw.call(&[b"DQ.ADD", b"q", id.to_string().as_bytes(), &payload]);
    }
    let mut count = |command: &[&[u8]]| match raw.call(command) {
        Reply::Array(jobs) => jobs.len(),
        other => panic!("{}", crate::probe::show(&other)),
    };
    let pop: [&[u8]; 4] = [b"DQ.POP", b"q", b"COUNT", b"1000"];
    assert_eq!([0; 3].map(|_| count(&pop)), [16, 16, 8]);
    p.says("DQ.LEN q RESERVED", "40");
    assert_eq!(count(&[b"DQ.POP", b"q", b"COUNT", b"1"]), 0);
    // One job is delivered, however large.
    let large = vec![b'x'; 20 << 20];
    raw.call(&[b"DQ.ADD", b"r", b"a", &large]);
    raw.call(&[b"DQ.ADD", b"r", b"b", b"small"]);
    let bpop: [&[u8]; 5] = [b"DQ.BPOP", b"r", b"0", b"COUNT", b"2"];
    for id in ["a", "b"] {
        let Reply::Array(got) = raw.call(&bpop) else {
            panic!("no reply");
        };
        let Reply::Array(jobs) = &got[1] else {
            panic!("no jobs");
        };
        let [Reply::Array(job)] = &jobs[..] else {
            panic!("{} jobs", jobs.len());
        };
        assert_eq!(job[0], Reply::bulk(id));
    }
}
