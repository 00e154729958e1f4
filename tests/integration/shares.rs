//! What one group may have of its own: DQ.GROUPSET.

use crate::groups::{add, kept_by_copies, pop_all};
use crate::scene::{Lines, Scene};
use crate::support::{wait_until, Raw, Server, PATIENCE};
use crate::turned::{builder, clock, start};

const NO_NUMBER: &str = "-ERR value is not an integer or out of range";

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
fn settings_are_shown_and_bounded() {
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
    for line in [
        "DQ.GROUPSET q a MAX -1",
        "DQ.GROUPSET q a MAXLEN 9223372036854775808",
        "DQ.GROUPSET q a WEIGHT 0",
        "DQ.GROUPSET q a WEIGHT 1001",
        "DQ.GROUPSET q a RATE 0 5",
        "DQ.GROUPSET q a RATE 4294967296 5",
        "DQ.GROUPSET q a RATE 1 4398046511104",
    ] {
        client.says(line, NO_NUMBER);
    }
    client.says(
        "DQ.GROUPSET q a CLEAR MAX 3",
        "-ERR syntax error, CLEAR cannot be combined with other options",
    );
    let long = "g".repeat(257);
    let length = "-ERR GROUP must be 1 to 256 bytes long";
    for name in ["\"\"", &long] {
        client.says(&format!("DQ.GROUPSET q {name} MAX 1"), length);
        client.says(&format!("DQ.GROUPSET q {name} CLEAR"), length);
        client.says(&format!("DQ.GROUPGET q {name}"), "nil$");
    }
    set(&mut client, "a", "CLEAR");
    assert_eq!(
        group(&mut client, "a"),
        "[ 'weight' nil$ 'max' nil$ 'rate' nil$ 'maxlen' nil$ 'paused' 0 'waiting' 2 'reserved' 1 'rate-used' 0 ]"
    );
}

#[test]
fn they_make_the_queue_and_outlive_the_jobs() {
    let (server, mut client) = start();
    set(&mut client, "a", "CLEAR");
    client.says("EXISTS q", "0");
    set(&mut client, "a", "MAX 1");
    client.says("TYPE q", "+dq-queue1");
    let bytes = "EVAL return\\x20redis.call('DQ.STATS',KEYS[1])[24] 1 q";
    let before = client.ask(bytes);
    add(&mut client, "a1:a a2:a b1:b");
    assert_eq!(pop_all(&mut client, ""), "a1 b1");
    client.says("DQ.DEL q a1 a2 b1", "3");
    assert_eq!(client.ask(bytes), before);
    client.says("DQ.GROUPS q 0", "[ '0' [ ] ]");
    client.says("DQ.GROUPS q 0 SET", "[ '0' [ [ 'a' 0 0 ] ] ]");
    add(&mut client, "a1:a a2:a");
    assert_eq!(pop_all(&mut client, ""), "a1");
    // It makes no queue, and unmakes none.
    client.says("DQ.PURGE q ALL", "2");
    set(&mut client, "a", "CLEAR");
    client.says("EXISTS q", "1");
    // What changes nothing touches no WATCH.
    set(&mut client, "a", "MAX 1");
    let mut watching = server.raw();
    watching.says("WATCH q", "+OK");
    set(&mut client, "a", "MAX 1");
    set(&mut client, "b", "CLEAR");
    watching.says("MULTI", "+OK");
    watching.says("EXEC", "[ ]");
}

#[test]
fn they_hold_instead_of_the_queues() {
    let (server, mut client) = start();
    client.says("DQ.CFGSET q GROUPMAX 1", "+OK");
    set(&mut client, "a", "MAX 2");
    set(&mut client, "c", "MAX 0");
    add(&mut client, "a1:a a2:a a3:a b1:b b2:b c1:c c2:c c3:c");
    assert_eq!(pop_all(&mut client, ""), "a1 b1 c1 a2 c2 c3");
    client.says("DQ.EXPLAIN q a3", "[ [ 'group-max' 2 nil$ ] ]");
    // Who waits is served the moment that one may go.
    let mut waiting = server.waiting("DQ.BPOP q 0");
    set(&mut client, "a", "MAX 3");
    assert_eq!(waiting.delivery().id, "a3");
    // Whoever has none of its own has the queue's, as it is at the moment.
    client.says("DQ.CFGSET q GROUPMAX 2", "+OK");
    assert_eq!(pop_all(&mut client, ""), "b2");
    add(&mut client, "a4:a");
    client.says("DQ.POP q ID a4", "nil*");
    client.says("DQ.CFGSET q GROUPMAX 4", "+OK");
    client.says("DQ.POP q ID a4", "nil*");
    let mut waiting = server.waiting("DQ.BPOP q 0");
    set(&mut client, "a", "CLEAR");
    assert_eq!(waiting.delivery().id, "a4");
}

#[test]
fn a_rate_of_its_own_has_a_window_of_its_own() {
    let (server, mut client) = start();
    client.says("DQ.CFGSET q GROUPRATE 1 1000", "+OK");
    set(&mut client, "a", "RATE 2 5000");
    set(&mut client, "free", "RATE 0 0");
    add(
        &mut client,
        "a1:a a2:a a3:a b1:b b2:b f1:free f2:free f3:free",
    );
    assert_eq!(pop_all(&mut client, ""), "a1 b1 f1 a2 f2 f3");
    let begun = clock(&mut client);
    let until = begun + 5000;
    client.says(
        "DQ.EXPLAIN q a3",
        &format!("[ [ 'group-rate' 2 {until} ] ]"),
    );
    // The queue's windows begin anew, its own goes on.
    client.says("DQ.CFGSET q GROUPRATE 1 2000", "+OK");
    assert_eq!(pop_all(&mut client, ""), "b2");
    let mut waiting = server.waiting("DQ.BPOP q 0");
    client.says("DQ.CLOCK ADVANCE 4999", &(begun + 4999).to_string());
    server.wait_for_blocked(1);
    client.says("DQ.CLOCK NEXT", &until.to_string());
    assert_eq!(waiting.delivery().id, "a3");
    // The same said again changes nothing; another begins anew, and so does what holds after it has gone.
    add(&mut client, "a4:a a5:a a6:a");
    assert_eq!(pop_all(&mut client, ""), "a4");
    set(&mut client, "a", "RATE 2 5000");
    client.says("DQ.POP q", "nil*");
    set(&mut client, "a", "RATE 1 5000");
    assert_eq!(pop_all(&mut client, ""), "a5");
    set(&mut client, "a", "CLEAR");
    assert_eq!(pop_all(&mut client, ""), "a6");
    // A window outlives the jobs.
    client.says("DQ.PURGE q ALL", "11");
    set(&mut client, "a", "RATE 1 5000");
    add(&mut client, "a1:a");
    assert_eq!(pop_all(&mut client, "NOACK"), "a1");
    client.says("DQ.GROUPS q 0", "[ '0' [ ] ]");
    add(&mut client, "a1:a");
    client.says("DQ.POP q", "nil*");
    // What a delivery counts can be corrected.
    set(&mut client, "a", "RATE 3 5000");
    client.words("DQ.POP q");
    client.int("DQ.TOUCH q a1 COST 3");
    add(&mut client, "a2:a");
    client.says("DQ.POP q", "nil*");
    client.int("DQ.TOUCH q a1 COST 2");
    assert_eq!(pop_all(&mut client, ""), "a2");
}

#[test]
fn maxlen_holds_what_a_group_holds() {
    let (_server, mut client) = start();
    let full = "-MAXLEN group is full";
    set(&mut client, "a", "MAXLEN 2");
    add(&mut client, "a1:a b1:b");
    client.says("DQ.ADD q a2 x GROUP a DELAY 5000", "'a2'");
    client.says("DQ.ADD q a3 x GROUP a", full);
    client.says("DQ.ADD q a1 x GROUP a", "nil$");
    client.says("DQ.ADD q a1 x GROUP a REPLACE", "'a1'");
    client.says("DQ.ADD q b1 x GROUP a REPLACE", full);
    client.says("DQ.ADD q a3 x", "'a3'");
    client.says("DQ.MADD q 2 a4 x a5 x GROUP a", full);
    client.says("DQ.MADD q 2 a1 y a2 y GROUP a REPLACE", "[ 'a1' 'a2' ]");
    client.says("DQ.MADD q 3 a1 y b1 y a2 y GROUP a REPLACE", full);
    client.says("DQ.MADD q 2 x1 y x2 y GROUP b", "[ 'x1' 'x2' ]");
    // The queue's comes first; a successor and DQ.KICK are not held.
    client.says("DQ.CFGSET q MAXLEN 6", "+OK");
    client.says("DQ.ADD q a9 x GROUP a", "-MAXLEN queue is full");
    client.says("DQ.CFGSET q MAXLEN 0", "+OK");
    client.words("DQ.POP q ID a1");
    client.says("DQ.ADD q a1 z GROUP a NEXT", "'a1'");
    client.says("DQ.NACK q a1 FATAL", "'dead'");
    client.says("DQ.PURGE q ALL", "6");
    add(&mut client, "a1:a");
    client.words("DQ.POP q");
    client.says("DQ.NACK q a1 FATAL", "'dead'");
    add(&mut client, "a2:a a3:a");
    client.says("DQ.ADD q a1 x GROUP a", full);
    client.says("DQ.KICK q COUNT 1", "1");
    client.says("DQ.LEN q GROUP a", "3");
    set(&mut client, "a", "MAXLEN 0");
    add(&mut client, "a4:a");
}

#[test]
fn a_turn_lasts_as_many_deliveries_as_the_group_weighs() {
    let (_server, mut client) = start();
    set(&mut client, "a", "WEIGHT 3");
    let jobs = "a1:a a2:a a3:a a4:a a5:a b1:b b2:b b3:b n1 n2";
    add(&mut client, jobs);
    assert_eq!(pop_all(&mut client, ""), "a1 a2 a3 b1 n1 a4 a5 b2 n2 b3");
    client.says("DQ.PURGE q ALL", "10");
    add(&mut client, jobs);
    // POP ID neither takes from a turn nor ends it.
    client.words("DQ.POP q");
    client.words("DQ.POP q ID b3");
    client.words("DQ.POP q ID a5");
    assert_eq!(pop_all(&mut client, ""), "a2 a3 n1 b1 a4 n2 b2");
    client.says("DQ.PURGE q ALL", "10");
    // COUNT n is as many deliveries; a group without jobs has no turn any more.
    add(&mut client, jobs);
    client.run("DQ.POP q COUNT 2");
    client.says("DQ.DEL q a1 a2 a3 a4 a5", "5");
    add(&mut client, "a1:a a2:a");
    assert_eq!(pop_all(&mut client, ""), "b1 n1 a1 a2 b2 n2 b3");
    client.says("DQ.PURGE q ALL", "7");
    // A turn ends where the group may not be served.
    set(&mut client, "a", "MAX 2");
    add(&mut client, jobs);
    assert_eq!(pop_all(&mut client, ""), "a1 a2 b1 n1 b2 n2 b3");
    client.says("DQ.ACK q a1 a2", "2");
    assert_eq!(pop_all(&mut client, ""), "a3 a4");
}

#[test]
fn a_paused_group_is_passed_over() {
    let (server, mut client) = start();
    add(&mut client, "a1:a a2:a b1:b");
    client.says("DQ.PAUSE q GROUP a", "+OK");
    assert_eq!(pop_all(&mut client, ""), "b1");
    client.says("DQ.POP q ID a1", "nil*");
    client.says("DQ.POP q NOACK", "nil*");
    client.says("DQ.EXPLAIN q", "[ [ 'groups' 2 nil$ ] ]");
    client.says("DQ.EXPLAIN q a1", "[ [ 'group-paused' nil$ nil$ ] ]");
    client.says("DQ.GROUPS q 0 SET", "[ '0' [ [ 'a' 2 0 ] ] ]");
    let mut waiting = server.waiting("DQ.BPOP q 0");
    client.says("DQ.RESUME q GROUP a", "+OK");
    assert_eq!(waiting.delivery().id, "a1");
    client.says("DQ.GROUPS q 0 SET", "[ '0' [ ] ]");
    // It ends by itself, at its instant, and is no setting any more then.
    let until = clock(&mut client) + 30_000;
    client.says("DQ.PAUSE q 30000 GROUP a", "+OK");
    client.says("DQ.EXPLAIN q", &format!("[ [ 'groups' 1 {until} ] ]"));
    let why = format!("[ [ 'group-paused' nil$ {until} ] ]");
    client.says("DQ.EXPLAIN q a2", &why);
    assert!(group(&mut client, "a").contains(&format!("'paused' {until} ")));
    let mut waiting = server.waiting("DQ.BPOP q 0");
    client.says("DQ.CLOCK ADVANCE 29999", &(until - 1).to_string());
    server.wait_for_blocked(1);
    client.says("DQ.CLOCK NEXT", &until.to_string());
    assert_eq!(waiting.delivery().id, "a2");
    client.says("DQ.GROUPS q 0 SET", "[ '0' [ ] ]");
    // A second one counts instead of the first; CLEAR takes it away; it makes the queue.
    client.says("DQ.PAUSE other GROUP a", "+OK");
    client.says("DQ.PAUSE other 50 GROUP a", "+OK");
    client.says("DQ.ADD other a1 x GROUP a", "'a1'");
    client.says("DQ.POP other", "nil*");
    client.says("DQ.CLOCK ADVANCE 50", &(until + 50).to_string());
    assert_eq!(client.words("DQ.POP other")[0], "a1");
    client.says("DQ.GROUPSET q a MAX 5", "+OK");
    client.says("DQ.PAUSE q GROUP a", "+OK");
    client.says("DQ.GROUPSET q a MAX 6", "+OK");
    assert!(group(&mut client, "a").contains("'paused' -1 "));
    set(&mut client, "a", "CLEAR");
    assert!(group(&mut client, "a").contains("'paused' 0 "));
    client.says(
        "DQ.PAUSE q 5 GROUP",
        "-ERR syntax error, a value is missing after GROUP",
    );
    client.says(
        "DQ.RESUME q GROUP",
        "-ERR syntax error, a value is missing after GROUP",
    );
    client.says(
        "DQ.PAUSE q GROUP \"\"",
        "-ERR GROUP must be 1 to 256 bytes long",
    );
    client.says("DQ.RESUME q GROUP \"\"", "+OK");
    client.says("DQ.RESUME none GROUP a", "+OK");
    client.says("EXISTS none", "0");
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

/// Settings with jobs and without, some of them cleared.
fn scene(client: &mut Raw) {
    set(client, "a", "MAX 2 RATE 100 1000 WEIGHT 7");
    client.says("DQ.PAUSE q 600000 GROUP held", "+OK");
    add(client, "held:held");
    set(client, "empty", "MAXLEN 5 RATE 0 0");
    set(client, "gone", "MAX 1");
    add(client, "a1:a a2:a a3:a b1:b gone1:gone n1");
    set(client, "gone", "CLEAR");
    client.words("DQ.POP q TTR 600000");
}

#[test]
fn they_are_data() {
    let server = builder().start();
    let mut client = server.raw();
    scene(&mut client);
    let digest = kept_by_copies(&mut client);
    let set_there = "[ '0' [ [ 'a' 2 1 ] [ 'held' 1 0 ] [ 'empty' 0 0 ] ] ]";
    for copy in ["copy", "again"] {
        client.says("DEL q", "1");
        client.says(&format!("RENAME {copy} q"), "+OK");
        client.says("DQ.GROUPS q 0 SET", set_there);
        assert_eq!(pop_all(&mut client, "TTR 600000"), "b1 gone1 n1 a2");
    }
    set(&mut client, "empty", "MAXLEN 6");
    assert_ne!(client.ask("DEBUG DIGEST-VALUE q"), digest);
    client.says("DEL q", "1");
    client.says("DQ.GROUPGET q a", "nil$");
}

#[test]
fn replicas_and_the_aof_have_them() {
    let (mut master, replica) = (Server::builder().aof().start(), Server::start());
    replica.replica_of(&master);
    let mut client = master.raw();
    scene(&mut client);
    replica.wait_for_offset_of(&master);
    replica.assert_same_data_as(&master);
    let digest = client.ask("DEBUG DIGEST-VALUE q");
    drop(client);
    master.restart();
    let mut client = master.raw();
    assert_eq!(client.ask("DEBUG DIGEST-VALUE q"), digest);
    let mut promoted = replica.raw();
    promoted.says(
        "DQ.GROUPS q 0 SET",
        "[ '0' [ [ 'a' 2 1 ] [ 'held' 1 0 ] [ 'empty' 0 0 ] ] ]",
    );
    replica.promote();
    for client in [&mut client, &mut promoted] {
        assert_eq!(pop_all(client, "TTR 600000"), "b1 gone1 n1 a2");
    }
}
