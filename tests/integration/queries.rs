//! DQ.GET, DQ.PEEK, DQ.SCAN, DQ.LEN, DQ.STATS; and how much a reply holds.

use std::collections::{BTreeMap, BTreeSet};

use crate::probe::{data, plain, show, Probe};
use crate::support::{Reply, Server};
use crate::turned::builder;

/// Reserved `v`, dead `x`, ready `r`, delayed `d`.
fn one_in_each_state(p: &mut Probe) {
    p.talk(
        "> DQ.ADD q v pv
        'v'
        > DQ.POP q TTR 1000000
        [ 'v' 'pv' ? 1 ? ]
        > DQ.ADD q x px PRIORITY 7
        'x'
        > DQ.POP q
        [ 'x' 'px' ? 1 ? ]
        > DQ.NACK q x FATAL
        'dead'
        > DQ.ADD q r pr AT 5000
        'r'
        > DQ.ADD q d pd AT 4000000000000 TTL 1000000
        'd'",
    );
}

#[test]
fn get() {
    let mut p = Probe::start();
    one_in_each_state(&mut p);
    let rest = "'attempts' ? 'max-attempts' 0 'backoff' [ ] 'expires' ? 'token'";
    p.talk(&format!(
        "> DQ.GET q nobody
        nil$
        3> DQ.GET q nobody
        nil
        > DQ.GET none a
        nil$
        3> DQ.GET none a
        nil
        > DQ.GET q d
        [ 'id' 'd' 'payload' 'pd' 'state' 'delayed' 'priority' 0 'due' 4000000000000 'deadline' nil$ 'ttr' 60000 {rest} nil$ ...
        3> DQ.GET q d
        {{ 'id' 'd' 'payload' 'pd' 'state' 'delayed' 'priority' 0 'due' 4000000000000 'deadline' nil 'ttr' 60000 {rest} nil ...
        3> DQ.GET q r
        {{ 'id' 'r' 'payload' 'pr' 'state' 'ready' 'priority' 0 'due' 5000 'deadline' nil 'ttr' 60000 {rest} nil ...
        3> DQ.GET q v
        {{ 'id' 'v' 'payload' 'pv' 'state' 'reserved' 'priority' 0 'due' ? 'deadline' ? 'ttr' 60000 {rest} ? ...
        3> DQ.GET q x
        {{ 'id' 'x' 'payload' 'px' 'state' 'dead' 'priority' 7 'due' ? 'deadline' nil 'ttr' 60000 {rest} nil ..."
    ));
    assert!(matches!(
        p.field("DQ.GET q v", "deadline"),
        Reply::Integer(_)
    ));
    assert!(matches!(p.field("DQ.GET q v", "token"), Reply::Bulk(_)));
    assert!(matches!(
        p.field("DQ.GET q d", "expires"),
        Reply::Integer(_)
    ));
    p.run("DQ.ADD q b x BACKOFF 2 5 6");
    assert_eq!(p.field_text("DQ.GET q b", "backoff"), "[ 5 6 ]");
}

#[test]
fn looking_changes_nothing() {
    let mut p = Probe::start();
    one_in_each_state(&mut p);
    p.all_unseen(
        "DQ.GET q nobody -> nil$
        DQ.PEEK q READY -> [ [ 'r' 'pr' 5000 0 0 ] ]
        DQ.PEEK q DEAD COUNT 5 -> [ [ 'x' 'px' ? 1 7 ] ]
        DQ.SCAN q 0 STATE READY COUNT 100 -> [ '0' [ 'r' ] ]
        DQ.LEN q -> 3
        DQ.LEN none -> 0
        DQ.STATS none -> nil$
        DQ.CFGGET none -> nil$
        EXISTS none -> 0",
    );
    p.unseen("DQ.GET q v", "[ 'id' 'v' ...");
    p.unseen("DQ.STATS q", "[ 'delayed' 1 ...");
}

#[test]
fn values_are_cut_to_a_prefix() {
    let mut p = Probe::start();
    for line in [
        "DQ.CFGSET q DONELEN 9",
        "DQ.ADD q first abc",
        "DQ.POP q",
        "DQ.ADD q a pay\\x00load AFTER 1 first",
    ] {
        p.run(line);
    }
    let mut raw = p.server.raw();
    let token = p.field("DQ.GET q first", "token");
    let Reply::Bulk(token) = token else {
        panic!("no token")
    };
    raw.call(&[b"DQ.ACK", b"q", b"RESULTS", b"first", &token[..], b"result"]);
    let token = p.pop_token("DQ.POP q");
    p.run(&format!("DQ.STEP q a {token} step value empty \"\""));
    p.run("DQ.ADD q a later NEXT");
    for (prefix, payload, bytes, next, steps, results) in [
        ("", "pay\\x00load", 8, "later", "value", "result"),
        ("PREFIX 0", "", 8, "", "", ""),
        ("PREFIX 3", "pay", 8, "lat", "val", "res"),
        ("prefix 7", "pay\\x00loa", 8, "later", "value", "result"),
        (
            "PREFIX 9223372036854775807",
            "pay\\x00load",
            8,
            "later",
            "value",
            "result",
        ),
    ] {
        let line = format!("DQ.GET q a {prefix}");
        assert_eq!(p.field_text(&line, "payload"), format!("'{payload}'"));
        assert_eq!(p.field_int(&line, "payload-bytes"), bytes);
        assert_eq!(p.field_text(&line, "next"), format!("'{next}'"));
        let steps = format!("{{ 'step' '{steps}' 'empty' '' }}");
        assert_eq!(p.field_text(&line, "steps"), steps);
        let results = format!("[ [ 'first' 'done' '{results}' ] ]");
        assert_eq!(p.field_text(&line, "results"), results);
        // Not cut: other texts, and what others ask for.
        assert_eq!(p.field_text(&line, "id"), "'a'");
        assert_eq!(p.field_text(&line, "state"), "'reserved'");
    }
    p.says3(
        "DQ.GET q first PREFIX 2",
        "{ 'id' 'first' 'payload' 'ab' 'state' 'done' ...",
    );
    assert_eq!(p.field_text("DQ.GET q first PREFIX 2", "result"), "'re'");
    p.all_unseen(
        "DQ.PEEK q DONE PREFIX 2 -> [ [ 'first' 'ab' ? 1 0 3 ] ]
        DQ.PEEK q RESERVED COUNT 2 prefix 0 FROM 0 -> [ [ 'a' '' ? 1 0 8 ] ]
        DQ.PEEK q RESERVED PREFIX 8 -> [ [ 'a' ? ? 1 0 8 ] ]
        DQ.PEEK q RESERVED -> [ [ 'a' ? ? 1 0 ] ]
        DQ.GET q nobody PREFIX 3 -> nil$
        DQ.PEEK none READY PREFIX 3 -> [ ]",
    );
    let (syntax, range) = (
        "-ERR syntax error, ...",
        "-ERR value is not an integer or out of range",
    );
    for command in ["DQ.GET q a", "DQ.PEEK q READY"] {
        for rest in ["PREFIX", "PREFIX 1 PREFIX 1", "1", "PREFIXES 1"] {
            p.unseen(&format!("{command} {rest}"), syntax);
        }
        for number in ["-1", "x", "1.5", "\"\"", "9223372036854775808"] {
            p.unseen(&format!("{command} PREFIX {number}"), range);
        }
    }
}

/// Six jobs with 2^22 bytes of payload each: DQ.PEEK ends with 2^24.
#[test]
fn peek_is_bounded_in_bytes() {
    let mut p = Probe::start();
    let mut raw = p.server.raw();
    let payload = vec![b'x'; 1 << 22];
    let mut ids = String::new();
    for id in 0..6 {
        let id = format!("j{id}");
        raw.call(&[
            b"DQ.ADD",
            b"q",
            id.as_bytes(),
            &payload,
            b"AT",
            b"4000000000000",
        ]);
        raw.call(&[
            b"DQ.ADD",
            b"q",
            format!("b{id}").as_bytes(),
            &payload,
            b"AFTER",
            b"1",
            id.as_bytes(),
        ]);
        ids.push_str(&format!(" {id}"));
    }
    let shown = |p: &mut Probe, state: &str| {
        for (options, count) in [
            ("COUNT 9", 4),
            ("COUNT 3", 3),
            ("COUNT 9 PREFIX 4194304", 4),
            ("COUNT 9 PREFIX 4194303", 5),
            ("COUNT 9 PREFIX 0", 6),
        ] {
            let Reply::Array(jobs) = p.run(&format!("DQ.PEEK q {state} {options}")) else {
                panic!("no jobs")
            };
            assert_eq!(jobs.len(), count, "{state} {options}");
        }
    };
    shown(&mut p, "BLOCKED");
    shown(&mut p, "DELAYED");
    p.run("DQ.PURGE q BLOCKED");
    p.run(&format!("DQ.RESCHEDULE q AT 5{ids}"));
    shown(&mut p, "READY");
    p.run("DQ.POP q COUNT 6");
    p.run("DQ.POP q COUNT 6");
    shown(&mut p, "RESERVED");
    for id in ids.split_whitespace() {
        p.says(&format!("DQ.NACK q {id} FATAL"), "'dead'");
    }
    shown(&mut p, "DEAD");
    p.run("DQ.KICK q COUNT 6");
    p.run("DQ.CFGSET q DONELEN 9");
    p.run("DQ.POP q COUNT 6");
    p.run("DQ.POP q COUNT 6");
    p.says(&format!("DQ.ACK q{ids}"), "6");
    shown(&mut p, "DONE");
}

/// A reply of deliveries is bounded by bytes as well as by jobs; the remaining jobs are in the next one.
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
        other => panic!("{}", show(&other)),
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

#[test]
fn peek_shows_as_many_as_are_asked_for() {
    let mut p = Probe::start();
    for i in 0..12_000 {
        p.run(&format!("DQ.ADD q {i} x AT {}", 1_000_000 + i));
    }
    for (options, shown) in [
        ("", 1),
        ("COUNT 11999", 11_999),
        ("COUNT 9223372036854775807", 12_000),
        ("COUNT 50000 FROM 1000010 TO 1011000", 10_991),
    ] {
        let jobs = p.run(&format!("DQ.PEEK q READY {options}"));
        let Reply::Array(jobs) = jobs else {
            panic!("{options}: {jobs:?}");
        };
        assert_eq!(jobs.len(), shown, "{options}");
    }
}

const STATS: [&str; 28] = [
    "delayed",
    "ready",
    "reserved",
    "dead",
    "blocked",
    "done",
    "done-bytes",
    "next-due",
    "oldest-ready-ms",
    "waiting-clients",
    "paused",
    "bytes",
    "recurring",
    "groups",
    "rate-used",
    "added",
    "delivered",
    "acked",
    "nacked",
    "timed-out",
    "died",
    "deleted",
    "expired",
    "missed",
    "lateness-count",
    "lateness-sum",
    "lateness-max",
    "lateness-buckets",
];

#[test]
fn stats_by_name_and_order() {
    let mut p = Probe::of(builder());
    p.says("DQ.STATS q", "nil$");
    p.says3("DQ.STATS q", "nil");
    // No two of the states, and no two of the totals, count as many.
    for line in [
        "DQ.CLOCK SET 4000000000000",
        "DQ.ADD q rule x EVERY 60000 GRACE 1 DELAY 0",
        "DQ.CLOCK ADVANCE 50",
    ] {
        p.run(line);
    }
    (0..6).for_each(|_| drop(p.run("DQ.CLOCK ADVANCE 60000")));
    for line in [
        "DQ.MADD q 6 1 x 2 x 3 x 4 x 5 x 6 x TTL 10 DELAY 20",
        "DQ.CLOCK ADVANCE 10",
        "DQ.MADD q 5 1 x 2 x 3 x 4 x 5 x TTR 10",
        "DQ.POP q COUNT 5",
        "DQ.CLOCK ADVANCE 10",
        "DQ.DEL q 1 2 3 4",
        "DQ.POP q",
        "DQ.ACK q 5",
        "DQ.MADD q 2 a x b x",
        "DQ.POP q COUNT 2",
        "DQ.NACK q a FATAL",
        "DQ.NACK q b FATAL",
        "DQ.ADD q r x",
        "DQ.POP q",
        "DQ.NACK q r",
        "DQ.MADD q 3 u x v x w x PRIORITY -1",
        "DQ.POP q COUNT 3",
        "DQ.MADD q 4 c x d x e x f x AT 4000000400000",
    ] {
        p.run(line);
    }
    let Reply::Map(fields) = p.run3("DQ.STATS q") else {
        panic!("a map")
    };
    let names: Vec<String> = fields.iter().map(|(name, _)| plain(name)).collect();
    assert_eq!(names, STATS);
    let Reply::Array(flat) = p.run("DQ.STATS q") else {
        panic!("an array")
    };
    assert_eq!(flat.len(), 2 * STATS.len());
    assert_eq!(flat.iter().step_by(2).map(plain).collect::<Vec<_>>(), STATS);
    let expected = [
        ("delayed", 5),
        ("ready", 1),
        ("reserved", 3),
        ("dead", 2),
        ("next-due", 4_000_000_400_000),
        ("waiting-clients", 0),
        ("paused", 0),
        ("added", 22),
        ("delivered", 12),
        ("acked", 1),
        ("nacked", 3),
        ("timed-out", 5),
        ("died", 2),
        ("deleted", 4),
        ("expired", 6),
        ("missed", 7),
        ("recurring", 1),
        ("groups", 0),
        ("rate-used", 0),
        ("lateness-count", 12),
    ];
    for (name, value) in expected {
        assert_eq!(p.field_int("DQ.STATS q", name), value, "{name}");
    }
    p.run("DQ.PURGE q READY");
    p.run("DQ.PURGE q DELAYED");
    assert_eq!(p.field_text("DQ.STATS q", "next-due"), "nil");
    assert_eq!(p.field_text("DQ.STATS q", "oldest-ready-ms"), "nil");
    let Reply::Array(flat) = p.run("DQ.STATS q") else {
        panic!("an array")
    };
    let value = |name| &flat[2 * STATS.iter().position(|&field| field == name).unwrap() + 1];
    assert_eq!(value("next-due"), &Reply::NullBulk);
    assert_eq!(value("oldest-ready-ms"), &Reply::NullBulk);
    p.run("DQ.PAUSE q");
    assert_eq!(p.field_int("DQ.STATS q", "paused"), -1);
}

#[test]
fn lateness_buckets() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x");
    p.run("DQ.ADD q b x AT 1000");
    p.run("DQ.POP q COUNT 2");
    let Reply::Array(buckets) = p.field("DQ.STATS q", "lateness-buckets") else {
        panic!()
    };
    let mut last = (0, 0);
    for (i, bucket) in buckets.iter().enumerate() {
        let Reply::Array(pair) = bucket else {
            panic!("{bucket:?}")
        };
        let [bound, Reply::Integer(count)] = pair.as_slice() else {
            panic!("{pair:?}")
        };
        assert!(*count >= last.1, "cumulative");
        if i + 1 == buckets.len() {
            assert_eq!((bound, *count), (&Reply::Null, 2));
        } else {
            let Reply::Integer(bound) = *bound else {
                panic!("{bound:?}")
            };
            assert!(bound > last.0, "ascending");
            last = (bound, *count);
        }
    }
}

fn scan_all(p: &mut Probe, options: &str) -> Vec<String> {
    let mut cursor = "0".to_owned();
    let mut found = Vec::new();
    loop {
        let Reply::Array(reply) = p.run(&format!("DQ.SCAN q {cursor} {options}")) else {
            panic!("an array")
        };
        let [Reply::Bulk(next), Reply::Array(ids)] = reply.as_slice() else {
            panic!("{reply:?}")
        };
        found.extend(ids.iter().map(plain));
        cursor = String::from_utf8(next.clone()).expect("digits");
        if cursor == "0" {
            return found;
        }
    }
}

#[test]
fn scan_shows_every_id() {
    let mut p = Probe::start();
    p.says("DQ.SCAN q 0", "[ '0' [ ] ]");
    p.says3("DQ.SCAN q 0", "[ '0' [ ] ]");
    p.says("DQ.SCAN q 12345", "[ '0' [ ] ]");
    let fill = "for i=1,3000 do redis.call('DQ.ADD','q','id'..i,'x','DELAY',(i%2)*1000000) end";
    p.server.raw().call(&[b"EVAL", fill.as_bytes(), b"0"]);
    for options in ["", "COUNT 1", "COUNT 7", "COUNT 9223372036854775807"] {
        let found: BTreeSet<String> = scan_all(&mut p, options).into_iter().collect();
        assert_eq!(found.len(), 3000, "{options}");
    }
    let Reply::Array(reply) = p.run("DQ.SCAN q 0 COUNT 3001") else {
        panic!("an array")
    };
    assert_eq!(plain(&reply[0]), "0", "as many as are asked for, at once");
    let ready = scan_all(&mut p, "STATE ready COUNT 100");
    assert_eq!(ready.len(), 1500);
    let matched: BTreeSet<String> = scan_all(&mut p, "MATCH id*[37]5? count 50")
        .into_iter()
        .collect();
    let expected = (1..=3000).map(|i| format!("id{i}")).filter(|id| {
        let bytes = id.as_bytes();
        bytes.len() >= 5
            && bytes[bytes.len() - 2] == b'5'
            && b"37".contains(&bytes[bytes.len() - 3])
    });
    assert_eq!(matched, expected.collect());
    assert_eq!(scan_all(&mut p, "MATCH nothing STATE dead").len(), 0);
}

/// By payload, group, label, rule and state; done jobs are among those that are shown.
#[test]
fn scan_leaves_out_others() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONELEN 9");
    p.run("DQ.ADD q a mail:1");
    p.run("DQ.POP q");
    p.run("DQ.ACK q a");
    p.run("DQ.ADD q b mail:2 GROUP g");
    p.run("DQ.ADD q c other GROUP g LABEL mail:\\xff");
    p.run("DQ.ADD q run x EVERY 3600000 AT 1 LABEL report");
    p.talk(
        "> DQ.SCAN q 0 PAYLOAD mail:* STATE DONE
        [ '0' [ 'a' ] ]
        > DQ.SCAN q 0 payload mail* group g
        [ '0' [ 'b' ] ]
        > DQ.SCAN q 0 GROUP none
        [ '0' [ ] ]
        > DQ.SCAN q 0 LABEL mail:* COUNT 100 MATCH c
        [ '0' [ 'c' ] ]
        > DQ.SCAN q 0 RECURRING COUNT 100
        [ '0' [ 'run' ] ]
        > DQ.SCAN q 0 label m* RECURRING COUNT 100
        [ '0' [ ] ]
        > DQ.SCAN q 0 LABEL report COUNT 100
        [ '0' [ 'run' ] ]",
    );
    let Reply::Array(all) = p.run("DQ.SCAN q 0 MATCH ?") else {
        panic!("no scan");
    };
    assert!(matches!(&all[1], Reply::Array(ids) if ids.len() == 3));
}

#[test]
fn scan_keeps_its_guarantee_while_jobs_come_and_go() {
    let mut p = Probe::start();
    for i in 0..500 {
        p.run(&format!("DQ.ADD q stays{i} x"));
    }
    let mut cursor = "0".to_owned();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut round = 0;
    loop {
        let Reply::Array(reply) = p.run(&format!("DQ.SCAN q {cursor} COUNT 5")) else {
            panic!("an array")
        };
        let Reply::Array(ids) = &reply[1] else {
            panic!()
        };
        for id in ids {
            *seen.entry(plain(id)).or_default() += 1;
        }
        cursor = plain(&reply[0]);
        if cursor == "0" {
            break;
        }
        // The table grows tenfold meanwhile, and shrinks again.
        let new: String = (0..50).map(|i| format!(" new{round}-{i} x")).collect();
        p.run(&format!("DQ.MADD q 50{new}"));
        if round % 3 == 2 {
            p.run(&format!("DQ.DEL q new{round}-0 new{round}-1 new{round}-2"));
        }
        round += 1;
    }
    let kept = (0..500)
        .filter(|i| seen.contains_key(&format!("stays{i}")))
        .count();
    assert_eq!(kept, 500);
}

#[test]
fn patterns_as_the_servers_own_scan_takes_them() {
    let mut p = Probe::start();
    let ids = [
        "a", "abc", "a*c", "a?c", "[x]", "A", "a\\x5cb", "ab\\xff", "a-c", "\\x00z", "^",
    ];
    for id in ids {
        p.run(&format!("DQ.ADD q {id} x"));
        p.run(&format!("SADD s {id}"));
    }
    let patterns = [
        "*",
        "a*",
        "a?c",
        "a\\x5c*c",
        "a\\x5c?c",
        "[a-b]*",
        "[^a]*",
        "[a^]",
        "\\x5c[x\\x5c]",
        "a[*?]c",
        "**c",
        "?",
        "",
        "A",
        "[a",
        "[]",
        "[^]",
        "[z-a]*",
        "*\\xff",
        "\\x00*",
        "a[\\x5c-]c",
        "a\\x5c",
        "*[",
        "[a-",
    ];
    for pattern in patterns {
        let pattern = if pattern.is_empty() { "\"\"" } else { pattern };
        let sorted = |reply: Reply| {
            let Reply::Array(reply) = reply else {
                panic!("{reply:?}")
            };
            let Reply::Array(ids) = &reply[1] else {
                panic!("{reply:?}")
            };
            ids.iter().map(plain).collect::<BTreeSet<_>>()
        };
        let ours = sorted(p.run(&format!("DQ.SCAN q 0 COUNT 1000 MATCH {pattern}")));
        let theirs = sorted(p.run(&format!("SSCAN s 0 COUNT 1000 MATCH {pattern}")));
        assert_eq!(ours, theirs, "{pattern}");
    }
}

#[test]
fn a_replica_shows_the_same() {
    let mut p = Probe::start();
    one_in_each_state(&mut p);
    let replica = Server::start();
    replica.replica_of(&p.server);
    let mut raw = replica.raw();
    for line in [
        "DQ.GET q v",
        "DQ.PEEK q READY COUNT 9",
        "DQ.PEEK q DEAD",
        "DQ.LEN q",
        "DQ.CFGGET q",
    ] {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        assert_eq!(data(&raw.call(&words)), data(&p.run(line)), "{line}");
    }
}

/// Jobs that wait for a signal, by its name, and jobs that failed, by their reasons.
#[test]
fn scans_by_signals_and_reasons() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONELEN 10 BACKOFF 0");
    p.run("DQ.MADD q 7 never x paid x late x signalled x lost x died x done x");
    p.run("DQ.POP q COUNT 7");
    for line in [
        "DQ.NACK q paid SILENT AWAIT paid:17 REASON wait",
        "DQ.NACK q late SILENT AWAIT paid:18 DELAY 0",
        "DQ.NACK q signalled SILENT AWAIT paid:19",
        "DQ.SIGNAL q signalled paid:19",
        "DQ.NACK q lost REASON \"\"",
        "DQ.NACK q died FATAL REASON gone:\\xff",
        "DQ.NACK q done REASON gone",
        "DQ.POP q ID done",
        "DQ.ACK q done",
        "DQ.NACK q never",
    ] {
        p.run(line);
    }
    p.talk(
        "> DQ.SCAN q 0 AWAITS paid:* COUNT 100
        [ '0' [ 'paid' ] ]
        > DQ.SCAN q 0 awaits other* COUNT 100
        [ '0' [ ] ]
        > DQ.SCAN q 0 REASON gone* COUNT 100
        [ '0' [ 'died' ] ]
        > DQ.SCAN q 0 reason wai? AWAITS * COUNT 100
        [ '0' [ 'paid' ] ]
        > DQ.SCAN q 0 REASON * COUNT 100 MATCH lost
        [ '0' [ 'lost' ] ]
        > DQ.SCAN q 0 REASON * COUNT 100 MATCH never
        [ '0' [ ] ]
        > DQ.SCAN q 0 REASON * COUNT 100 MATCH done
        [ '0' [ ] ]",
    );
}
