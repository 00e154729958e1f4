//! Groups: whose turn it is, what holds a group back, and how groups are shown.

use crate::probe::show;
use crate::scene::{Lines, Scene};
use crate::support::{Raw, Reply, Server};
use crate::turned::{builder, clock, start};

/// Adds `<id>:<group>` each, without a group where there is none.
pub fn add(client: &mut Raw, jobs: &str) {
    for job in jobs.split(' ') {
        let line = match job.split_once(':') {
            Some((id, group)) => format!("DQ.ADD q {id} x GROUP {group}"),
            None => format!("DQ.ADD q {job} x"),
        };
        let id = job.split(':').next().unwrap_or(job);
        client.says(&line, &format!("'{id}'"));
    }
}

/// The ids of deliveries one by one, until there are none.
pub fn pop_all(client: &mut Raw, options: &str) -> String {
    let mut ids = Vec::new();
    loop {
        let words = client.words(&format!("DQ.POP q {options}"));
        match words.as_slice() {
            [id, _, ..] => ids.push(id.clone()),
            _ => return ids.join(" "),
        }
    }
}

/// Ids that PEEK shows.
fn peek(client: &mut Raw, state: &str) -> String {
    match client.run(&format!("DQ.PEEK q {state} COUNT 100")) {
        Reply::Array(jobs) => {
            let ids = jobs.iter().map(|job| match job {
                Reply::Array(job) => show(&job[0]),
                other => panic!("no job: {other:?}"),
            });
            ids.collect::<Vec<_>>().join(" ").replace('\'', "")
        }
        other => panic!("no jobs: {other:?}"),
    }
}

#[test]
fn groups_take_turns_and_jobs_without_one_are_one_more() {
    let (_server, mut client) = start();
    add(&mut client, "a1:a a2:a a3:a a4:a b1:b n1 n2 b2:b");
    assert_eq!(peek(&mut client, "READY"), "a1 a2 a3 a4 b1 n1 n2 b2");
    assert_eq!(pop_all(&mut client, ""), "a1 b1 n1 a2 b2 n2 a3 a4");
}

#[test]
fn a_count_takes_as_many_turns() {
    let (_server, mut client) = start();
    add(&mut client, "a1:a a2:a a3:a b1:b b2:b c1:c");
    let ids = |client: &mut Raw, line: &str| match client.run(line) {
        Reply::Array(jobs) => jobs.len(),
        other => panic!("{line} -> {other:?}"),
    };
    assert_eq!(ids(&mut client, "DQ.POP q COUNT 4"), 4);
    assert_eq!(peek(&mut client, "RESERVED"), "a1 a2 b1 c1");
    assert_eq!(pop_all(&mut client, ""), "b2 a3");
}

#[test]
fn who_comes_waits_no_longer_than_a_round() {
    let (_server, mut client) = start();
    for number in 0..200 {
        add(&mut client, &format!("big{number}:big"));
    }
    assert_eq!(client.words("DQ.POP q")[0], "big0");
    add(&mut client, "s1:s t1:t");
    let ids: Vec<String> = (0..3)
        .map(|_| client.words("DQ.POP q")[0].clone())
        .collect();
    assert_eq!(ids, ["big1", "s1", "t1"]);
}

#[test]
fn a_group_that_comes_again_begins_anew() {
    let (_server, mut client) = start();
    add(&mut client, "a1:a b1:b b2:b c1:c");
    client.says("DQ.DEL q a1", "1");
    add(&mut client, "a2:a");
    assert_eq!(pop_all(&mut client, ""), "b1 c1 a2 b2");
    // By KICK, too; and where its only job is replaced.
    for id in ["b1", "c1", "a2", "b2"] {
        client.says(&format!("DQ.ACK q {id}"), "1");
    }
    add(&mut client, "a1:a b1:b");
    client.words("DQ.POP q ID a1");
    client.says("DQ.NACK q a1 FATAL", "'dead'");
    add(&mut client, "c1:c");
    client.says("DQ.KICK q IDS 1 a1", "1");
    client.says("DQ.ADD q b1 y GROUP b REPLACE", "'b1'");
    assert_eq!(pop_all(&mut client, ""), "c1 a1 b1");
}

#[test]
fn priorities_order_within_a_group() {
    let (_server, mut client) = start();
    add(&mut client, "a1:a b1:b");
    client.says("DQ.ADD q a2 x GROUP a PRIORITY -5", "'a2'");
    client.says("DQ.ADD q a3 x GROUP a PRIORITY -9 DELAY 1000", "'a3'");
    assert_eq!(pop_all(&mut client, ""), "a2 b1 a1");
    client.int("DQ.CLOCK ADVANCE 1000");
    assert_eq!(pop_all(&mut client, ""), "a3");
}

#[test]
fn groups_are_told_of() {
    let (server, mut client) = start();
    let long = "g".repeat(257);
    let error = "-ERR GROUP must be 1 to 256 bytes long";
    let missing = "-ERR syntax error, a value is missing after GROUP";
    client.says("DQ.ADD q a x GROUP", missing);
    client.says("DQ.ADD q a x GROUP \"\"", error);
    client.says(&format!("DQ.ADD q a x GROUP {long}"), error);
    client.says("DQ.ADD q a x AFTER GROUP \"\"", error);
    client.says(&format!("DQ.ADD q a x AFTER GROUP {long}"), error);
    client.says("EXISTS q", "0");
    client.says("DQ.GROUPS q 0", "[ '0' [ ] ]");
    client.says("DQ.LEN q GROUP a", "0");
    add(&mut client, "a1:a a2:a b1:b n1");
    client.says("DQ.ADD q a3 x GROUP a DELAY 5000", "'a3'");
    client.words("DQ.POP q ID a1");
    client.says("DQ.LEN q GROUP a", "3");
    client.says("DQ.LEN q group b", "1");
    client.says("DQ.LEN q GROUP c", "0");
    client.says("DQ.GROUPS q 0 MATCH a*", "[ '0' [ [ 'a' 2 1 ] ] ]");
    client.says("DQ.GROUPS q x", "-ERR invalid cursor");
    client.says(
        "DQ.GROUPS q 0 COUNT 0",
        "-ERR value is not an integer or out of range",
    );
    let group_of = |client: &mut Raw, id: &str| {
        let words = client.words(&format!("DQ.GET q {id}"));
        let at = words.iter().position(|word| word == "group");
        at.map(|at| words[at + 1].clone())
    };
    assert_eq!(group_of(&mut client, "a3").as_deref(), Some("a"));
    assert_eq!(group_of(&mut client, "n1").as_deref(), Some("nil$"));
    let stats = client.words("DQ.STATS q");
    let at = stats.iter().position(|word| word == "groups");
    assert_eq!(at.map(|at| &*stats[at + 1]), Some("2"));
    assert_eq!(server.number("dq", "dq_groups"), 2);
    // A dead job does not hold its group back.
    client.words("DQ.POP q ID b1");
    client.says("DQ.NACK q b1 FATAL", "'dead'");
    client.says("DQ.LEN q GROUP b", "0");
    assert_eq!(server.number("dq", "dq_groups"), 1);
}

/// DQ.GROUPS shows every group that exists throughout, whatever else comes and goes.
#[test]
fn a_scan_shows_all_groups() {
    let (_server, mut client) = start();
    for number in 0..500 {
        add(&mut client, &format!("j{number}:g{number}"));
    }
    let (mut cursor, mut shown) = ("0".to_string(), std::collections::BTreeSet::new());
    for step in 0.. {
        let reply = client.run(&format!("DQ.GROUPS q {cursor} COUNT 7"));
        let Reply::Array(parts) = &reply else {
            panic!("{reply:?}");
        };
        cursor = show(&parts[0]).replace('\'', "");
        let Reply::Array(groups) = &parts[1] else {
            panic!("{reply:?}");
        };
        for group in groups {
            let Reply::Array(group) = group else {
                panic!("{reply:?}");
            };
            shown.insert(show(&group[0]));
        }
        if cursor == "0" {
            break;
        }
        add(&mut client, &format!("new{step}:new{step}"));
        client.says(&format!("DQ.DEL q j{}", 499 - step % 100), "1");
        add(&mut client, &format!("j{0}:g{0}", 499 - step % 100));
    }
    let missed = (0..400).find(|number| !shown.contains(&format!("'g{number}'")));
    assert_eq!(missed, None);
}

#[test]
fn groupmax_holds_a_group_and_wakes_who_waits() {
    let (server, mut client) = start();
    client.says("DQ.CFGSET q GROUPMAX 1", "+OK");
    add(&mut client, "a1:a a2:a b1:b n1 n2");
    assert_eq!(pop_all(&mut client, ""), "a1 b1 n1 n2");
    client.says("DQ.POP q ID a2", "nil*");
    let mut waiting = server.raw();
    waiting.begin("DQ.BPOP q 0");
    server.wait_for_blocked(1);
    client.says("DQ.ACK q n1 b1", "2");
    client.says("DQ.POP q", "nil*");
    client.says("DQ.ACK q a1", "1");
    assert_eq!(waiting.delivery().id, "a2");
    add(&mut client, "a3:a");
    // It does not stop a delivery that reserves nothing.
    client.says("DQ.POP q", "nil*");
    assert_eq!(pop_all(&mut client, "NOACK"), "a3");
    // The limit is removed while a client waits.
    add(&mut client, "a4:a");
    waiting.begin("DQ.BPOP q 0");
    server.wait_for_blocked(1);
    client.says("DQ.CFGSET q GROUPMAX 0", "+OK");
    assert_eq!(waiting.delivery().id, "a4");
}

/// A waiting client is served, whoever waits before it for a job that GROUPMAX holds back, and
/// whatever else happens.
#[test]
fn groupmax_does_not_hold_one_that_waits_with_noack() {
    let server = Server::start();
    let mut client = server.raw();
    client.says("DQ.CFGSET q TTR 600000 GROUPMAX 1", "+OK");
    client.says("DQ.ADD q later x DELAY 600000 GROUP other", "'later'");
    add(&mut client, "a:g");
    client.run("DQ.POP q");
    let plain = server.waiting("DQ.BPOP q 0");
    // One comes while such a job is there, one waits when it comes.
    add(&mut client, "b:g");
    let mut comes = server.raw();
    comes.begin("DQ.BPOP q 0 NOACK");
    assert_eq!(comes.delivery().id, "b");
    let mut waits = server.waiting("DQ.BPOP q 0 NOACK");
    add(&mut client, "c:g");
    assert_eq!(waits.delivery().id, "c");
    let mut both = server.waiting("DQ.BPOP q 0 NOACK COUNT 2");
    client.says("DQ.PAUSE q 600000", "+OK");
    add(&mut client, "d:g");
    client.says("DQ.RESUME q", "+OK");
    let reply = both.reply();
    assert!(reply.contains("'d'"), "{reply}");
    server.wait_for_blocked(1);
    drop(plain);
}

#[test]
fn grouprate_holds_a_group_for_its_window_and_no_longer() {
    let (server, mut client) = start();
    client.says("DQ.CFGSET q GROUPRATE 2 1000", "+OK");
    add(&mut client, "a1:a a2:a a3:a b1:b n1 n2 n3");
    assert_eq!(pop_all(&mut client, ""), "a1 b1 n1 a2 n2 n3");
    let mut waiting = server.raw();
    waiting.begin("DQ.BPOP q 0");
    server.wait_for_blocked(1);
    let begun = clock(&mut client);
    client.says("DQ.CLOCK ADVANCE 999", &(begun + 999).to_string());
    server.wait_for_blocked(1);
    client.says("DQ.CLOCK NEXT", &(begun + 1000).to_string());
    assert_eq!(waiting.delivery().id, "a3");
    // A group that gets jobs again has no new window.
    client.says("DQ.ACK q a1 a2 a3", "3");
    add(&mut client, "a4:a a5:a");
    client.says("DQ.CLOCK ADVANCE 500", &(begun + 1500).to_string());
    assert_eq!(pop_all(&mut client, ""), "a4");
    client.says("DQ.ACK q a4", "1");
    client.says("DQ.DEL q a5", "1");
    client.says("DQ.LEN q GROUP a", "0");
    add(&mut client, "a6:a");
    client.says("DQ.POP q", "nil*");
    client.says("DQ.POP q ID a6", "nil*");
    client.says("DQ.CLOCK ADVANCE 500", &(begun + 2000).to_string());
    assert_eq!(pop_all(&mut client, ""), "a6");
}

#[test]
fn groupfifo_keeps_the_order_of_adding() {
    let (server, mut client) = start();
    client.says("DQ.CFGSET q GROUPFIFO 1", "+OK");
    client.says("DQ.ADD q a1 x GROUP a DELAY 1000", "'a1'");
    client.says("DQ.ADD q a2 x GROUP a PRIORITY -1", "'a2'");
    client.says("DQ.ADD q a3 x GROUP a ATTEMPTS 1", "'a3'");
    add(&mut client, "b1:b n1 n2");
    // The due time of the first job holds its group back; other groups continue.
    assert_eq!(pop_all(&mut client, ""), "b1 n1 n2");
    client.says("DQ.POP q ID a2", "nil*");
    let mut waiting = server.raw();
    waiting.begin("DQ.BPOP q 0");
    server.wait_for_blocked(1);
    let begun = clock(&mut client);
    client.says("DQ.CLOCK ADVANCE 1000", &(begun + 1000).to_string());
    assert_eq!(waiting.delivery().id, "a1");
    // A retry holds it, too.
    client.says("DQ.NACK q a1 DELAY 500", "'delayed'");
    client.says("DQ.POP q", "nil*");
    client.says("DQ.CLOCK ADVANCE 500", &(begun + 1500).to_string());
    assert_eq!(pop_all(&mut client, ""), "a1");
    client.says("DQ.ACK q a1", "1");
    assert_eq!(pop_all(&mut client, ""), "a2");
    client.says("DQ.NACK q a2 FATAL", "'dead'");
    assert_eq!(pop_all(&mut client, ""), "a3");
    // A kicked job takes its old place.
    client.says("DQ.KICK q COUNT 1", "1");
    client.says("DQ.NACK q a3 SILENT", "'ready'");
    assert_eq!(pop_all(&mut client, ""), "a2");
    // Switched off and on with jobs there.
    client.says("DQ.CFGSET q GROUPFIFO 0", "+OK");
    assert_eq!(pop_all(&mut client, ""), "a3");
    client.says("DQ.CFGSET q GROUPFIFO 1", "+OK");
    client.says("DQ.ACK q a3", "1");
    add(&mut client, "a4:a");
    client.says("DQ.POP q", "nil*");
    client.says("DQ.ACK q a2", "1");
    assert_eq!(pop_all(&mut client, ""), "a4");
}

/// However many groups have still to be updated.
#[test]
fn a_pop_finds_the_ready_job_of_a_group_that_is_held_no_more() {
    let (_server, mut client) = start();
    client.says("DQ.CFGSET q GROUPFIFO 1", "+OK");
    let script = "for n = 1, 5000 do \
        redis.call('DQ.ADD', KEYS[1], n, 'x', 'DELAY', '600000', 'GROUP', n) end";
    let reply = client.call(&[b"EVAL", script.as_bytes(), b"1", b"q"]);
    assert_eq!(reply, Reply::NullBulk);
    client.says("DQ.ADD q held x GROUP last DELAY 600000", "'held'");
    add(&mut client, "ready:last");
    client.says("DQ.POP q", "nil*");
    // No timer comes in between.
    client.says("MULTI", "+OK");
    client.says("DQ.CFGSET q GROUPFIFO 0", "+QUEUED");
    client.says("DQ.POP q", "+QUEUED");
    let reply = show(&client.run("EXEC"));
    assert!(reply.contains("'ready'"), "{reply}");
}

#[test]
fn settings_of_groups_are_shown_and_bounded() {
    let (_server, mut client) = start();
    let out_of_range = "-ERR value is not an integer or out of range";
    for line in [
        "DQ.CFGSET q GROUPMAX -1",
        "DQ.CFGSET q GROUPRATE 4294967296 1",
        "DQ.CFGSET q GROUPRATE 1 0",
        "DQ.CFGSET q GROUPFIFO 2",
    ] {
        client.says(line, out_of_range);
    }
    client.says("EXISTS q", "0");
    client.says(
        "DQ.CFGSET q GROUPMAX 3 GROUPRATE 1000 60000 GROUPFIFO 1",
        "+OK",
    );
    let words = client.words("DQ.CFGGET q");
    let at = words
        .iter()
        .position(|word| word == "groupmax")
        .expect("it");
    assert_eq!(words[at + 1], "3");
}

#[test]
fn maxbytes_counts_each_name_once() {
    let (_server, mut client) = start();
    client.says("DQ.CFGSET q MAXBYTES 20", "+OK");
    // Id, payload and name: 2 + 1 + 4, then 2 + 1.
    client.says("DQ.ADD q a1 x GROUP aaaa", "'a1'");
    client.says("DQ.ADD q a2 x GROUP aaaa", "'a2'");
    let bytes = |client: &mut Raw| {
        let words = client.words("DQ.STATS q");
        let at = words.iter().position(|word| word == "bytes");
        at.map(|at| words[at + 1].clone())
    };
    assert_eq!(bytes(&mut client).as_deref(), Some("10"));
    client.says("DQ.ADD q b1 x GROUP bbbbbbbb", "-MAXBYTES queue is full");
    client.says("DQ.ADD q b1 x GROUP bbbbbbb", "'b1'");
    assert_eq!(bytes(&mut client).as_deref(), Some("20"));
    // What it replaces is taken off first, its group's last name too.
    client.says("DQ.ADD q b1 x GROUP ccccccc REPLACE", "'b1'");
    client.says("DQ.ADD q a1 x GROUP ccccccc REPLACE", "'a1'");
    client.says("DQ.DEL q a1 a2 b1", "3");
    assert_eq!(bytes(&mut client).as_deref(), Some("0"));
}

/// The rest of the deliveries of a queue that is in the middle of its turns.
const REST: &str = "c1 a2 b2 n2 c2 a3 a4";

fn scene(client: &mut Raw) {
    add(client, "a1:a a2:a a3:a a4:a b1:b b2:b n1 n2 c1:c c2:c");
    client.says("DQ.ADD q later x GROUP d DELAY 60000", "'later'");
    for id in ["a1", "b1", "n1"] {
        assert_eq!(client.words("DQ.POP q TTR 60000")[0], id);
    }
}

/// Copies the queue q to `copy`, and loads all anew and restores a dump as `again`. All have the same digest, which is
/// returned.
pub fn kept_by_copies(client: &mut Raw) -> String {
    let digest = client.ask("DEBUG DIGEST-VALUE q");
    client.says("COPY q copy", "1");
    assert_eq!(client.ask("DEBUG DIGEST-VALUE copy"), digest);
    client.says("DEBUG RELOAD", "+OK");
    assert_eq!(client.ask("DEBUG DIGEST-VALUE q"), digest);
    let Reply::Bulk(dump) = client.run("DUMP q") else {
        panic!("no dump");
    };
    client.call(&[b"RESTORE", b"again", b"0", &dump]);
    for copy in ["copy", "again"] {
        assert_eq!(client.ask(&format!("DEBUG DIGEST-VALUE {copy}")), digest);
    }
    digest
}

#[test]
fn turns_are_data() {
    let server = builder().start();
    let mut client = server.raw();
    scene(&mut client);
    kept_by_copies(&mut client);
    assert_eq!(pop_all(&mut client, ""), REST);
    for copy in ["copy", "again"] {
        client.says("DEL q", "1");
        client.says(&format!("RENAME {copy} q"), "+OK");
        assert_eq!(pop_all(&mut client, ""), REST, "{copy}");
    }
    // Whose turn it is, is part of the digest.
    client.says("DEL q", "1");
    add(&mut client, "a1:a b1:b");
    let before = client.ask("DEBUG DIGEST-VALUE q");
    client.says("DEL q", "1");
    add(&mut client, "b1:b a1:a");
    assert_ne!(client.ask("DEBUG DIGEST-VALUE q"), before);
}

#[test]
fn replicas_and_the_aof_have_the_same_turns() {
    let (mut master, replica) = (Server::builder().aof().start(), Server::start());
    replica.replica_of(&master);
    let mut client = master.raw();
    client.says(
        "DQ.CFGSET q GROUPMAX 5 GROUPRATE 100 1000 GROUPFIFO 0",
        "+OK",
    );
    scene(&mut client);
    client.says("DQ.ADD q a1 y GROUP c NEXT", "'a1'");
    client.says("DQ.ADD q r x GROUP e EVERY 3600000", "'r'");
    client.says("DQ.ADD q r y GROUP d EVERY 3600000 REPLACE", "'r'");
    replica.wait_for_offset_of(&master);
    replica.assert_same_data_as(&master);
    let digest = client.ask("DEBUG DIGEST-VALUE q");
    drop(client);
    master.restart();
    let mut client = master.raw();
    assert_eq!(client.ask("DEBUG DIGEST-VALUE q"), digest);
    let mut promoted = replica.raw();
    replica.promote();
    assert_eq!(pop_all(&mut client, "TTR 60000"), REST);
    assert_eq!(pop_all(&mut promoted, "TTR 60000"), REST);
}

/// A group's name is not a key, whatever it looks like; reading groups needs no permission to
/// write.
#[test]
fn rights_are_those_of_the_key() {
    let (server, mut admin) = start();
    admin.says("DQ.ADD mine a x GROUP other", "'a'");
    admin.says("DQ.ADD other a x GROUP mine", "'a'");
    admin.says("ACL SETUSER owner on nopass allcommands ~mine", "+OK");
    admin.says("ACL SETUSER reader on nopass allcommands %R~mine", "+OK");
    let (mut owner, mut reader) = (server.raw(), server.raw());
    owner.says("AUTH owner x", "+OK");
    reader.says("AUTH reader x", "+OK");
    owner.says("DQ.ADD mine b x GROUP other", "'b'");
    owner.says("DQ.CFGSET mine GROUPMAX 5", "+OK");
    for client in [&mut owner, &mut reader] {
        client.says("DQ.LEN mine GROUP other", "2");
        client.says("DQ.GROUPS mine 0", "[ '0' [ [ 'other' 2 0 ] ] ]");
    }
    let refused = |client: &mut Raw, line: &str| {
        let reply = client.ask(line);
        assert!(reply.starts_with("-NOPERM"), "{line} -> {reply}");
    };
    for line in [
        "DQ.LEN other GROUP mine",
        "DQ.GROUPS other 0",
        "DQ.ADD other c x GROUP mine",
    ] {
        refused(&mut owner, line);
    }
    refused(&mut reader, "DQ.CFGSET mine GROUPMAX 1");
    refused(&mut reader, "DQ.ADD mine c x GROUP other");
}
