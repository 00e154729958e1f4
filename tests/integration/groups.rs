//! Groups: whose turn it is, what holds a group back, and how groups are shown.

use crate::probe::show;
use crate::scene::{Lines, Scene};
use crate::support::{wait_until, Raw, Reply, Server, PATIENCE};
use crate::turned::{clock, start};

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

#[test]
fn groups_are_told_of() {
    let (server, mut client) = start();
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

fn set(client: &mut Raw, name: &str, settings: &str) {
    client.says(&format!("DQ.GROUPSET q {name} {settings}"), "+OK");
}

fn group(client: &mut Raw, name: &str) -> String {
    client.ask(&format!("DQ.GROUPGET q {name}"))
}

/// Where `maxmemory` is reached, no group gets settings that had none, but each can be stopped that has jobs.
#[test]
fn at_maxmemory_settings_stay_and_groups_can_be_stopped() {
    let server = Server::start();
    let mut client = server.raw();
    set(&mut client, "set", "MAX 5");
    client.run("DQ.ADD q 1 x GROUP held");
    client.says("CONFIG SET maxmemory 1000", "+OK");
    for line in [
        "DQ.GROUPSET q held MAX 5",
        "DQ.GROUPSET q new MAX 5",
        "DQ.PAUSE q GROUP new",
        "DQ.PAUSE q 1000 GROUP new",
        "DQ.PAUSE other GROUP held",
    ] {
        let reply = client.ask(line);
        assert!(reply.starts_with("-OOM "), "{line} -> {reply}");
    }
    set(&mut client, "set", "MAX 6 WEIGHT 2");
    for name in ["set", "held"] {
        client.says(&format!("DQ.PAUSE q GROUP {name}"), "+OK");
        client.says(&format!("DQ.RESUME q GROUP {name}"), "+OK");
        client.says(&format!("DQ.PAUSE q 60000 GROUP {name}"), "+OK");
    }
    client.says("DQ.POP q", "nil*");
    client.says("DQ.GROUPSET q set CLEAR", "+OK");
    let reply = client.ask("DQ.PAUSE q GROUP set");
    assert!(reply.starts_with("-OOM "), "{reply}");
    client.says("CONFIG SET maxmemory 0", "+OK");
    client.says("DQ.PAUSE q GROUP new", "+OK");
}

#[test]
fn settings_are_shown() {
    let (_server, mut client) = start();
    client.says("DQ.GROUPGET q a", "nil$");
    client.says("DQ.GROUPS q 0 SET", "[ '0' [ ] ]");
    set(&mut client, "a", "MAX 3 RATE 5 1000 MAXLEN 7");
    let shown = |rate: &str, waiting, reserved, used| {
        format!("[ 'weight' nil$ 'max' 3 'rate' {rate} 'maxlen' 7 'paused' 0 'waiting' {waiting} 'reserved' {reserved} 'rate-used' {used} ]")
    };
    assert_eq!(group(&mut client, "a"), shown("[ 5 1000 ]", 0, 0, 0));
    set(&mut client, "a", "rate 0 0");
    assert_eq!(group(&mut client, "a"), shown("[ 0 0 ]", 0, 0, 0));
    set(&mut client, "a", "RATE 5 1000");
    client.says("DQ.CFGSET q GROUPRATE 1 60000", "+OK");
    add(&mut client, "a1:a a2:a a3:a b1:b");
    client.words("DQ.POP q");
    client.words("DQ.POP q");
    assert_eq!(group(&mut client, "a"), shown("[ 5 1000 ]", 2, 1, 1));
    assert_eq!(
        group(&mut client, "b"),
        "[ 'weight' nil$ 'max' nil$ 'rate' nil$ 'maxlen' nil$ 'paused' 0 'waiting' 0 'reserved' 1 'rate-used' 1 ]"
    );
    client.says("DQ.GROUPS q 0 MATCH b", "[ '0' [ [ 'b' 0 1 ] ] ]");
    client.says("DQ.GROUPS q 0 SET", "[ '0' [ [ 'a' 2 1 ] ] ]");
    client.says("DQ.GROUPS q 0 SET MATCH b*", "[ '0' [ ] ]");
    set(&mut client, "w", "WEIGHT 3");
    client.says("DQ.PAUSE q GROUP w", "+OK");
    let said = group(&mut client, "w");
    assert!(
        said.contains("'weight' 3 ") && said.contains("'paused' -1 "),
        "{said}"
    );
    set(&mut client, "a", "CLEAR");
    assert_eq!(
        group(&mut client, "a"),
        "[ 'weight' nil$ 'max' nil$ 'rate' nil$ 'maxlen' nil$ 'paused' 0 'waiting' 2 'reserved' 1 'rate-used' 0 ]"
    );
}

/// Pauses that end together are worked off in steps: commands of others go on between them, and each group may be served
/// at once.
#[test]
fn many_pauses_end_at_one_instant() {
    const MANY: usize = 20_000;
    let (server, mut client) = start();
    let replica = Server::start();
    replica.replica_of(&server);
    for number in 0..MANY {
        client.begin(&format!("DQ.PAUSE q 1000 GROUP g{number}"));
    }
    for _ in 0..MANY {
        assert_eq!(client.reply(), "+OK");
    }
    client.says("DQ.ADD q a x GROUP g7", "'a'");
    let now = clock(&mut client);
    let mut waiting = server.waiting("DQ.BPOP q 0");
    client.says("DQ.CLOCK ADVANCE 1000", &(now + 1000).to_string());
    assert_eq!(waiting.delivery().id, "a");
    wait_until("all pauses have gone", PATIENCE, || {
        client.ask("DQ.GROUPS q 0 SET COUNT 100000") == "[ '0' [ ] ]"
    });
    replica.wait_for_offset_of(&server);
    replica.assert_same_data_as(&server);
}
