//! DQ.ADD.

use crate::probe::{pairs, Probe};

const MAX: u64 = (1 << 42) - 1;

#[test]
fn ready_at_once_and_returns_the_id() {
    let mut p = Probe::start();
    let before = p.time_ms();
    p.talk(
        "> DQ.ADD q a hello
        'a'
        > TYPE q
        +dq-queue1
        > DQ.GET q a
        [ 'id' 'a' 'payload' 'hello' 'state' 'ready' 'priority' 0 'due' ? 'deadline' nil$ 'ttr' 60000 \
         'attempts' 0 'max-attempts' 0 'backoff' [ ] 'expires' nil$ 'token' nil$ ...
        > DQ.LEN q READY
        1",
    );
    let due = p.field_int("DQ.GET q a", "due") as u64;
    assert!((before..=p.time_ms()).contains(&due), "{before} {due}");
    p.talk(
        "> DQ.POP q
        [ 'a' 'hello' ? 1 ? ]",
    );
}

#[test]
fn every_option_in_any_order_and_case() {
    let mut p = Probe::start();
    p.talk(
        "> DQ.ADD q a x delay 60000 Priority -5 ttr 1000 ATTEMPTS 3 backoff 2 10 20 ttl 90000 nx
        'a'
        > DQ.ADD q b x TTL 90000 NX BACKOFF 2 10 20 ATTEMPTS 3 TTR 1000 PRIORITY -5 DELAY 60000
        'b'
        > DQ.ADD q c x BACKOFF 1 7 replace AT 4398046511103
        'c'",
    );
    for id in ["a", "b"] {
        let now = p.time_ms();
        p.says(
            &format!("DQ.GET q {id}"),
            &format!(
                "[ 'id' '{id}' 'payload' 'x' 'state' 'delayed' 'priority' -5 'due' ? 'deadline' nil$ \
                 'ttr' 1000 'attempts' 0 'max-attempts' 3 'backoff' [ 10 20 ] 'expires' ? 'token' nil$ ..."
            ),
        );
        let get = format!("DQ.GET q {id}");
        let (due, expires) = (p.field_int(&get, "due"), p.field_int(&get, "expires"));
        assert!(due as u64 <= now + 60_001 && due as u64 > now + 50_000);
        assert_eq!(expires - due, 30_000, "both counted from one instant");
    }
    p.says("DQ.LEN q DELAYED", "3");
}

#[test]
fn delays_count_from_the_next_full_millisecond() {
    let mut p = Probe::start();
    for i in 0..50 {
        let before = p.time_us();
        p.run(&format!("DQ.ADD q {i} x DELAY 100000 TTL 200000"));
        let after = p.time_us();
        let get = format!("DQ.GET q {i}");
        let due = p.field_int(&get, "due") as u64;
        let expires = p.field_int(&get, "expires") as u64;
        assert!(
            due * 1000 >= before + 100_000_000,
            "a delay is never shorter"
        );
        assert!(due * 1000 < after + 100_001_000, "nor a millisecond longer");
        assert_eq!(expires, due + 100_000);
    }
}

#[test]
fn instants() {
    let mut p = Probe::start();
    let cases = [
        ("AT 0", "ready", 0),
        ("AT 1", "ready", 1),
        ("AT 1000000000000", "ready", 1_000_000_000_000),
        ("AT 4398046511103", "delayed", MAX),
    ];
    for (at, state, due) in cases {
        p.says(&format!("DQ.ADD q {due} x {at}"), &format!("'{due}'"));
        let get = format!("DQ.GET q {due}");
        assert_eq!(p.field_text(&get, "state"), format!("'{state}'"));
        assert_eq!(p.field_int(&get, "due") as u64, due);
    }
    p.says("DQ.ADD q z x DELAY 0", "'z'");
    assert_eq!(p.field_text("DQ.GET q z", "state"), "'ready'");
    let far = MAX - p.time_ms() - 5000;
    p.says(&format!("DQ.ADD q far x DELAY {far} TTL {far}"), "'far'");
    p.says(&format!("DQ.ADD q lease x TTR {MAX}"), "'lease'");
    p.says("DQ.POP q ID lease", &format!("[ 'lease' 'x' ? 1 {MAX} ]"));
}

#[test]
fn refuses_numbers_out_of_range() {
    let mut p = Probe::start();
    p.run("DQ.ADD q old x DELAY 100000");
    let error = "-ERR value is not an integer or out of range";
    let past = [
        "DELAY 4398046511103",
        "TTL 4398046511103",
        "DELAY 2660000000000",
        "DELAY 4398046511104",
        "AT 4398046511104",
        "TTL 4398046511104",
        "TTR 4398046511104",
        "BACKOFF 1 4398046511104",
    ];
    let zero = ["TTR 0", "TTL 0", "BACKOFF 1 0", "BACKOFF 2 1 0"];
    let others = [
        "PRIORITY 2147483648",
        "PRIORITY -2147483649",
        "PRIORITY 1.5",
        "ATTEMPTS 4294967296",
    ];
    for option in past.into_iter().chain(zero).chain(others) {
        p.unseen(&format!("DQ.ADD q a x {option}"), error);
        p.unseen(&format!("DQ.ADD none a x {option}"), error);
    }
    for word in [
        "DELAY",
        "AT",
        "TTR",
        "TTL",
        "ATTEMPTS",
        "BACKOFF",
        "BACKOFF 1",
        "PRIORITY",
    ] {
        let junk = [
            "x",
            "\"\"",
            "1x",
            "1.0",
            "+1",
            "01",
            "9223372036854775808",
            "-9223372036854775809",
        ];
        for value in junk {
            p.says(&format!("DQ.ADD q a x {word} {value}"), error);
        }
        if word != "PRIORITY" {
            p.says(&format!("DQ.ADD q a x {word} -1"), error);
        }
        if !["PRIORITY", "BACKOFF"].contains(&word) {
            p.says(&format!("DQ.ADD q a x {word} 9223372036854775807"), error);
        }
    }
    p.says("EXISTS none", "0");
    p.says("DQ.LEN q", "1");
    p.says("DQ.ADD q p1 x PRIORITY 2147483647", "'p1'");
    p.says(
        "DQ.ADD q p2 x PRIORITY -2147483648 ATTEMPTS 4294967295",
        "'p2'",
    );
}

#[test]
fn refuses_what_is_no_syntax() {
    let mut p = Probe::start();
    p.run("DQ.ADD q old x DELAY 100000");
    let lines = "
        NX NX
        NX XX
        NX REPLACE
        XX REPLACE
        xx xx
        DELAY 1 AT 1
        AT 1 DELAY 1
        DELAY 1 DELAY 1
        AT 1 AT 1
        TTR 1 TTR 1
        TTL 1000 TTL 1000
        PRIORITY 1 PRIORITY 1
        ATTEMPTS 1 ATTEMPTS 1
        BACKOFF 1 1 BACKOFF 1 1
        DELAY
        AT
        TTR
        TTL
        PRIORITY
        ATTEMPTS
        BACKOFF
        BACKOFF 1
        BACKOFF 2 1
        BACKOFF 1 1 1
        BACKOFF 9223372036854775807 1
        NONSENSE
        \"\"
        NX\\x00";
    for options in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        p.unseen(&format!("DQ.ADD q a x {options}"), "-ERR syntax error, ...");
        p.unseen(
            &format!("DQ.ADD none a x {options}"),
            "-ERR syntax error, ...",
        );
    }
}

#[test]
fn ids() {
    let mut p = Probe::start();
    let (longest, longer) = ("i".repeat(1024), "i".repeat(1025));
    p.unseen("DQ.ADD q \"\" x", "-ERR id must be 1 to 1024 bytes long");
    p.unseen(
        &format!("DQ.ADD q {longer} x"),
        "-ERR id must be 1 to 1024 bytes long",
    );
    p.says("EXISTS q", "0");
    for id in [
        "i",
        &longest,
        "\\x00",
        "\\xff\\xfe",
        "a\\x00b",
        "a\\x00c",
        "\\x0d\\x0a",
    ] {
        p.run(&format!("DQ.ADD q {id} {id}\\x00\\xff"));
        let (got, line) = (
            p.run(&format!("DQ.GET q {id}")),
            format!("DQ.POP q ID {id}"),
        );
        assert!(matches!(got, crate::support::Reply::Array(_)), "{id}");
        let words = p.run(&line);
        let crate::support::Reply::Array(words) = words else {
            panic!("{line}")
        };
        let crate::support::Reply::Bulk(payload) = &words[1] else {
            panic!("{line}")
        };
        let crate::support::Reply::Bulk(own) = &words[0] else {
            panic!("{line}")
        };
        assert_eq!(payload, &[own.as_slice(), b"\0\xff"].concat());
    }
    p.says("DQ.LEN q RESERVED", "7");
    // Elsewhere such an id is simply not there.
    p.run("DQ.CFGSET q TTR 1000");
    for id in ["\"\"", longer.as_str()] {
        p.all_unseen(&format!(
            "DQ.DEL q {id} -> 0
            DQ.GET q {id} -> nil$
            DQ.POP q ID {id} -> nil*
            DQ.ACK q {id} -> 0
            DQ.ACK q WITHTOKENS {id} 5 -> 0
            DQ.NACK q {id} -> nil$
            DQ.TOUCH q {id} -> nil$
            DQ.RESCHEDULE q DELAY 5 {id} -> 0
            DQ.KICK q IDS 1 {id} -> 0"
        ));
    }
}

#[test]
fn payloads() {
    let mut p = Probe::start();
    p.talk(
        "> DQ.ADD q a \"\"
        'a'
        > DQ.POP q
        [ 'a' '' ? 1 ? ]",
    );
    let megabytes = "m".repeat(3 << 20);
    p.run(&format!("DQ.ADD q b {megabytes}"));
    assert_eq!(p.words("DQ.POP q")[1], megabytes);
}

#[test]
fn star_makes_growing_ids() {
    let mut p = Probe::start();
    let before = p.time_ms();
    let mut last = (0, 0);
    for i in 0..200 {
        let id = p.ask(&format!("DQ.ADD q{} * x", i % 3));
        let (ms, seq) = id.trim_matches('\'').split_once('-').expect("ms-seq");
        let id = (
            ms.parse::<u64>().expect("ms"),
            seq.parse::<u64>().expect("seq"),
        );
        assert!(id > last, "{id:?} after {last:?}");
        assert!(id.0 >= before);
        last = id;
    }
    assert!(last.0 <= p.time_ms());
    p.says("DQ.ADD q * x XX", "nil$");
    p.says("DQ.ADD q * x REPLACE", "?");
    assert_eq!(
        p.int("DQ.LEN q0") + p.int("DQ.LEN q1") + p.int("DQ.LEN q2"),
        200
    );
    p.says("DQ.GET q *", "nil$");
}

#[test]
fn star_avoids_what_is_held_or_remembered() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DEDUPE 60000");
    let id = p.ask("DQ.ADD q * x");
    let ms = id.trim_matches('\'').split_once('-').expect("ms-seq").0;
    let ms: u64 = ms.parse().expect("ms");
    // The clock cannot be held, so take the ids of the coming milliseconds, one of them remembered.
    let script = format!(
        "for ms = {}, {} do redis.call('DQ.ADD', 'q', string.format('%.0f-0', ms), 'x') end",
        ms + 1,
        ms + 400
    );
    assert_eq!(p.eval("EVAL", &script), "nil$");
    p.run(&format!("DQ.POP q ID {}-0 NOACK", ms + 100));
    let len = p.int("DQ.LEN q");
    let mut added = 0;
    while p.time_ms() < ms + 200 {
        let id = p.ask("DQ.ADD q * y");
        assert!(id.starts_with('\''), "{id}");
        assert_ne!(id, format!("'{}-0'", ms + 100), "remembered");
        added += 1;
    }
    assert_eq!(p.int("DQ.LEN q"), len + added, "each is new");
}

#[test]
fn nx_refuses_what_is_alive() {
    let mut p = Probe::start();
    p.talk(
        "> DQ.ADD q d old DELAY 100000
        'd'
        > DQ.ADD q r old
        'r'
        > DQ.ADD q v old PRIORITY -1
        'v'
        > DQ.POP q
        [ 'v' 'old' ? 1 ? ]",
    );
    for id in ["d", "r", "v"] {
        p.unseen(&format!("DQ.ADD q {id} new"), "nil$");
        p.unseen(&format!("DQ.ADD q {id} new NX DELAY 5 TTL 5"), "nil$");
        p.says3(&format!("DQ.ADD q {id} new"), "nil");
        assert_eq!(p.field_text(&format!("DQ.GET q {id}"), "payload"), "'old'");
    }
}

#[test]
fn nx_replaces_a_dead_job() {
    let mut p = Probe::start();
    p.talk(
        "> DQ.ADD q a old ATTEMPTS 5
        'a'
        > DQ.POP q
        [ 'a' 'old' ? 1 ? ]
        > DQ.NACK q a FATAL
        'dead'
        > DQ.ADD q a new
        'a'
        > DQ.LEN q DEAD
        0
        > DQ.POP q
        [ 'a' 'new' ? 1 ? ]",
    );
}

#[test]
fn xx_replaces_only_what_is_there() {
    let mut p = Probe::start();
    p.all_unseen(
        "DQ.ADD q a x XX -> nil$
        EXISTS q -> 0",
    );
    p.run("DQ.ADD q other x");
    p.unseen("DQ.ADD q a x XX", "nil$");
    p.run("DQ.DEL q other");
    for state in ["delayed", "ready", "reserved", "dead"] {
        bring_to(&mut p, state);
        p.says("DQ.ADD q a new XX PRIORITY 4", "'a'");
        starts_afresh(&mut p);
    }
}

#[test]
fn replace_replaces_whatever_is_there() {
    let mut p = Probe::start();
    p.says("DQ.ADD q a new REPLACE PRIORITY 4", "'a'");
    starts_afresh(&mut p);
    for state in ["delayed", "ready", "reserved", "dead"] {
        bring_to(&mut p, state);
        p.says("DQ.ADD q a new REPLACE PRIORITY 4", "'a'");
        starts_afresh(&mut p);
    }
}

/// The queue holds the job `a` alone, which was delivered before, in that state.
fn bring_to(p: &mut Probe, state: &str) {
    let steps = match state {
        "delayed" => "DQ.NACK q a DELAY 100000 -> 'delayed'",
        "ready" => "DQ.NACK q a -> 'ready'",
        "reserved" => "DQ.LEN q -> 1",
        _ => "DQ.NACK q a FATAL -> 'dead'",
    };
    p.says("DQ.ADD q a old TTR 1000000", "'a'");
    p.says("DQ.POP q", "[ 'a' 'old' ? 1 ? ]");
    for (line, reply) in pairs(steps) {
        p.says(line, reply);
    }
    assert_eq!(p.field_text("DQ.GET q a", "state"), format!("'{state}'"));
}

fn starts_afresh(p: &mut Probe) {
    p.talk(
        "> DQ.GET q a
        [ 'id' 'a' 'payload' 'new' 'state' 'ready' 'priority' 4 'due' ? 'deadline' nil$ 'ttr' 60000 \
         'attempts' 0 'max-attempts' 0 'backoff' [ ] 'expires' nil$ 'token' nil$ ...
        > DQ.ACK q a
        0
        > DQ.DEL q a
        1
        > EXISTS q
        0",
    );
}

#[test]
fn replacing_ends_the_token() {
    for word in ["REPLACE", "XX"] {
        let mut p = Probe::start();
        p.run("DQ.ADD q a x TTR 1000000");
        let token = p.pop_token("DQ.POP q");
        p.says(&format!("DQ.ADD q a y {word}"), "'a'");
        p.all_unseen(&format!(
            "DQ.ACK q a -> 0
            DQ.ACK q WITHTOKENS a {token} -> 0
            DQ.NACK q a -> nil$
            DQ.NACK q a TOKEN {token} -> nil$
            DQ.TOUCH q a TOKEN {token} -> nil$"
        ));
        assert!(p.pop_token("DQ.POP q") > token);
    }
}

#[test]
fn own_terms_and_the_queues() {
    let mut p = Probe::start();
    p.talk(
        "> DQ.CFGSET q TTR 5000 ATTEMPTS 7 BACKOFF 2 11 12
        +OK
        > DQ.ADD q a x
        'a'
        > DQ.ADD q b x TTR 9 ATTEMPTS 0 BACKOFF 1 5
        'b'
        > DQ.ADD q c x BACKOFF 0
        'c'
        > DQ.CFGSET q TTR 6000 ATTEMPTS 8 BACKOFF 0
        +OK
        > DQ.ADD q d x
        'd'",
    );
    let expected = [
        ("a", "5000 7 [ 11 12 ]"),
        ("b", "9 0 [ 5 ]"),
        ("c", "5000 7 [ 0 ]"),
        ("d", "6000 8 [ 0 ]"),
    ];
    for (id, terms) in expected {
        let get = format!("DQ.GET q {id}");
        let found = ["ttr", "max-attempts", "backoff"].map(|name| p.field_text(&get, name));
        assert_eq!(found.join(" "), terms, "{id}");
    }
}

#[test]
fn ttl_takes_the_job_in_any_state() {
    let mut p = Probe::start();
    p.in_time("expires", 60, |p, ms| {
        p.run("DQ.CFGSET q");
        p.run(&format!("DQ.ADD q a x TTL {ms} DELAY 100000"));
        p.run(&format!("DQ.ADD q ready x TTL {ms}"));
        p.run(&format!("DQ.ADD q dead x TTL {ms} PRIORITY -1"));
        p.run("DQ.POP q ID dead");
        p.run("DQ.NACK q dead FATAL");
    });
    p.until("DQ.SCAN q 0", "[ '0' [ ] ]");
    let total = |p: &mut Probe, name| p.field_int("DQ.STATS q", name);
    assert_eq!((total(&mut p, "died"), total(&mut p, "expired")), (1, 3));
}

#[test]
fn ttl_waits_for_the_end_of_a_lease() {
    let mut p = Probe::start();
    let reserve = |p: &mut Probe, ms: u64| {
        p.run(&format!("DQ.ADD q a x TTL {ms} TTR 100000"));
        p.run("DQ.POP q");
    };
    let expires = p.in_time("expires", 40, reserve);
    p.wait_until_ms(expires + 20);
    assert_eq!(p.field_text("DQ.GET q a", "state"), "'reserved'");
    let deadline = p.int("DQ.TOUCH q a TTR 40") as u64;
    p.until("EXISTS q", "0");
    assert!(p.time_ms() >= deadline);
    // An ACK in that time counts.
    let expires = p.in_time("expires", 40, reserve);
    p.wait_until_ms(expires + 5);
    p.says("DQ.ACK q a", "1");
}

#[test]
fn ready_order() {
    let mut p = Probe::start();
    let lines = "
        late x AT 3000 PRIORITY 1
        first x AT 2000 PRIORITY 1
        second x AT 2000 PRIORITY 1
        urgent x AT 5000 PRIORITY -7
        never x AT 1 PRIORITY 2147483647
        older x AT 1000 PRIORITY 1";
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        p.run(&format!("DQ.ADD q {line}"));
    }
    let order = ["urgent", "older", "first", "second", "late", "never"];
    let peeked = p.ask("DQ.PEEK q READY COUNT 10");
    for id in order {
        assert_eq!(p.words("DQ.POP q")[0], id, "{peeked}");
    }
}

#[test]
fn an_ended_lease_keeps_its_place() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x AT 1000");
    p.run("DQ.ADD q b x AT 2000");
    p.says("DQ.POP q TTR 20", "[ 'a' 'x' ? 1 ? ]");
    p.until("DQ.LEN q READY", "2");
    p.says("DQ.POP q", "[ 'a' 'x' ? 2 ? ]");
    p.says("DQ.POP q", "[ 'b' 'x' ? 1 ? ]");
}

#[test]
fn maxlen() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q MAXLEN 3");
    p.run("DQ.ADD q d x DELAY 100000");
    p.run("DQ.ADD q v x PRIORITY -1 TTR 1000000");
    p.run("DQ.POP q");
    p.run("DQ.ADD q r x");
    for line in ["DQ.ADD q new x", "DQ.ADD q new x REPLACE", "DQ.ADD q * x"] {
        p.unseen(line, "-MAXLEN queue is full");
    }
    // The condition is looked at first.
    p.all_unseen(
        "DQ.ADD q d x -> nil$
        DQ.ADD q v x NX -> nil$
        DQ.ADD q new x XX -> nil$",
    );
    // Replacing a live job is no growth.
    for line in ["DQ.ADD q d y XX", "DQ.ADD q v y REPLACE", "DQ.ADD q r y XX"] {
        p.says(line, &format!("'{}'", &line[9..10]));
    }
    // Dead ones do not count, but replacing one is growth; a kick is not held.
    p.talk(
        "> DQ.POP q ID v
        [ 'v' 'y' ? 1 ? ]
        > DQ.NACK q v FATAL
        'dead'
        > DQ.ADD q new x
        'new'
        > DQ.ADD q v z REPLACE
        -MAXLEN queue is full
        > DQ.ADD q v z XX
        -MAXLEN queue is full
        > DQ.ADD q v z
        -MAXLEN queue is full
        > DQ.KICK q COUNT 1
        1
        > DQ.LEN q
        4
        > DQ.ADD q more x
        -MAXLEN queue is full
        > DQ.CFGSET q MAXLEN 0
        +OK
        > DQ.ADD q more x
        'more'",
    );
}

#[test]
fn a_ladder_has_at_most_1024_steps() {
    let mut p = Probe::start();
    for (steps, reply) in [
        (1024, "'a'"),
        (1025, "-ERR BACKOFF takes at most 1024 delays"),
    ] {
        let ladder = " 5".repeat(steps);
        p.says(
            &format!("DQ.ADD q a x REPLACE BACKOFF {steps}{ladder}"),
            reply,
        );
        let reply = if steps == 1024 { "+OK" } else { reply };
        p.says(&format!("DQ.CFGSET q BACKOFF {steps}{ladder}"), reply);
    }
}

#[test]
fn what_it_leaves() {
    let mut p = Probe::start();
    p.all_seen(
        "DQ.ADD q a x -> 'a'
        DQ.ADD q b x DELAY 100000 TTL 200000 -> 'b'
        DQ.ADD q a y REPLACE -> 'a'
        DQ.ADD q b y XX -> 'b'",
    );
    p.raises("DQ.ADD q c x DELAY 100000", "'c'", "dq.add");
    p.says("OBJECT ENCODING q", "?");
}
