//! Slots that move: one key after the other, as `redis-cli --cluster reshard` does it, and at once, as
//! Valkey 9.1 and Redis 8.4 can.

use std::time::Duration;

use crate::probe::packed;
use crate::router::Guides;
use crate::scene::{let_pass, now_ms, Delivery, Lines, Scene};
use crate::support::cluster::Cluster;
use crate::support::{wait_until, Raw, Server, PATIENCE};
use crate::traffic::Traffic;

/// How a slot is moved.
pub type Move = fn(&Cluster, u16, usize, usize);

/// Those that the servers know.
pub fn moves(cluster: &Cluster) -> Vec<Move> {
    let mut moves: Vec<Move> = vec![Cluster::move_slot];
    if cluster.moves_atomically() {
        moves.push(Cluster::move_slot_atomically);
    }
    if cluster.imports_slots() {
        moves.push(|cluster, slot, _, to| cluster.import_slots(slot..=slot, to));
    }
    moves
}

/// The queue's part of the digest.
pub fn digest(client: &mut Raw, key: &str) -> Vec<String> {
    client.words(&format!("DEBUG DIGEST-VALUE {key}"))
}

#[track_caller]
pub fn popped(client: &mut Raw, line: &str) -> Delivery {
    client.begin(line);
    client.delivery()
}

/// A queue with everything that it can hold, nothing of which comes to pass for a minute.
fn fill(client: &mut Raw, key: &str) {
    for line in [
        "DQ.CFGSET {} DEDUPE 600000 MAXLEN 1000 DEADLEN 10 BACKOFF 2 10 20",
        "DQ.ADD {} done x",
        "DQ.POP {}",
        "DQ.ACK {} done",
        "DQ.ADD {} dies x ATTEMPTS 1",
        "DQ.POP {}",
        "DQ.NACK {} dies FATAL",
        "DQ.ADD {} leased x TTR 600000",
        "DQ.POP {}",
        "DQ.ADD {} ready x PRIORITY 3 TTL 600000",
        "DQ.ADD {} later x DELAY 600000 PRIORITY -5",
        "DQ.ADD {} daily x CRON 0\\x2012\\x2029\\x202\\x20* TZ Europe/Berlin JITTER 60000 GRACE 5000",
        "DQ.ADD {} retries x DELAY 0 EVERY 3600000 TIMES 3 TTR 600000",
        "DQ.POP {} ID retries",
        "DQ.NACK {} retries DELAY 600000 REASON why",
        "DQ.ADD {} grouped x GROUP acme TTR 600000",
        "DQ.ADD {} other x GROUP beta",
        "DQ.POP {} ID grouped",
        "DQ.ADD {} again x GROUP acme",
        "DQ.CFGSET {} GROUPMAX 1 GROUPRATE 5 60000",
        "DQ.GROUPSET {} acme WEIGHT 3 MAX 2 RATE 5 60000 MAXLEN 9",
        "DQ.GROUPSET {} nobody RATE 0 0",
        "DQ.PAUSE {} 600000 GROUP beta",
        "DQ.PAUSE {} 600000",
    ] {
        client.run(&line.replace("{}", key));
    }
}

/// All of it arrives, tokens and memory included; the old side has nothing left, and does nothing.
#[test]
fn a_queue_moves_with_all_that_it_holds() {
    let cluster = Cluster::start(3);
    for (number, move_slot) in moves(&cluster).into_iter().enumerate() {
        let (still, timed) = (&format!("{{{number}}}still"), &format!("{{{number}}}timed"));
        let from = cluster.node_of(still);
        let to = (from + 1) % 3;
        let slot = cluster.slot_of(still);
        let (mut here, mut there) = (cluster.nodes[from].raw(), cluster.nodes[to].raw());
        fill(&mut here, still);
        let before = digest(&mut here, still);
        let mut waiting = cluster.nodes[from].waiting(&format!("DQ.BPOP {still} 0"));
        let mut none = cluster.nodes[from].waiting(&format!("DQ.BPOP {{{number}}}none 0"));
        let fill = format!("DQ.BPOP {still} 0 COUNT 5 FILL 3 600000");
        let mut filling = cluster.nodes[from].waiting(&fill);
        let due = now_ms() + 1500;
        here.run(&format!("DQ.ADD {timed} soon x AT {due}"));
        here.run(&format!("DQ.ADD {timed} vanishes x DELAY 600000 TTL 1500"));
        here.run(&format!("DQ.ADD {timed} long x TTR 600000"));
        here.run(&format!("DQ.ADD {timed} short x TTR 1500"));
        let long = popped(&mut here, &format!("DQ.POP {timed} ID long"));
        let short = popped(&mut here, &format!("DQ.POP {timed} ID short"));

        move_slot(&cluster, slot, from, to);
        assert_eq!(digest(&mut there, still), before);
        for client in [&mut waiting, &mut none, &mut filling] {
            let reply = client.reply();
            assert!(reply.starts_with(&format!("-MOVED {slot} ")), "{reply}");
        }
        there.says(
            &format!("DQ.ACK {timed} WITHTOKENS long {}", long.token),
            "1",
        );
        there.says(&format!("DQ.ADD {still} done again"), "nil$");
        // Dues, leases and TTLs come to pass over there.
        let mut came = [(); 2].map(|()| popped(&mut there, &format!("DQ.BPOP {timed} 0")));
        came.sort_by(|a, b| a.id.cmp(&b.id));
        assert_eq!(came.clone().map(|job| job.id), ["short", "soon"]);
        assert_eq!(came.clone().map(|job| job.attempts), [2, 1]);
        assert!(now_ms() >= short.deadline && now_ms() >= due);
        let token = |job: &Delivery| job.token.parse::<u64>().expect("a token");
        assert!(token(&came[0]) > token(&short));
        there.says(
            &format!("DQ.ACK {timed} WITHTOKENS short {}", short.token),
            "0",
        );
        wait_until("its TTL is past", PATIENCE, || {
            there.ask(&format!("DQ.LEN {timed}")) == "2"
        });
        assert_nothing_left(&cluster.nodes[from]);
    }
}

/// A number in a reply of names and values.
#[track_caller]
fn field(client: &mut Raw, line: &str, name: &str) -> u64 {
    let words = client.words(line);
    let at = words.iter().position(|word| word == name);
    let value = at.and_then(|at| words.get(at + 1)?.parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in {words:?}"))
}

/// Its occurrences come in a row, each once, on whichever side the slot is.
#[test]
fn a_recurring_job_goes_on_over_there() {
    let cluster = Cluster::start(2);
    for (number, move_slot) in moves(&cluster).into_iter().enumerate() {
        let queue = &format!("{{{number}}}tick");
        let slot = cluster.slot_of(queue);
        let mut at = cluster.node_of(queue);
        let first = now_ms();
        let mut client = cluster.nodes[at].raw();
        client.run(&format!("DQ.ADD {queue} a x AT {first} EVERY 1000"));
        client.run(&format!(
            "DQ.ADD {queue} leased x AT {first} EVERY 3600000 TTR 600000"
        ));
        let leased = popped(&mut client, &format!("DQ.POP {queue} ID leased"));
        let mut before = None;
        for _ in 0..3 {
            let mut client = cluster.nodes[at].raw();
            popped(&mut client, &format!("DQ.BPOP {queue} 0"));
            let due = field(&mut client, &format!("DQ.GET {queue} a"), "due");
            assert!(before < Some(due), "{before:?} and then {due}");
            assert_eq!((due - first) % 1000, 0, "an instant of its grid");
            assert!(now_ms() >= due);
            before = Some(due);
            client.says(&format!("DQ.ACK {queue} a"), "1");
            move_slot(&cluster, slot, at, 1 - at);
            at = 1 - at;
        }
        let mut client = cluster.nodes[at].raw();
        let runs =
            |client: &mut Raw, id: &str| field(client, &format!("DQ.GET {queue} {id}"), "runs");
        assert_eq!(runs(&mut client, "a"), 3);
        let token = &leased.token;
        client.says(&format!("DQ.ACK {queue} WITHTOKENS leased {token}"), "1");
        client.says(&format!("DQ.ACK {queue} WITHTOKENS leased {token}"), "0");
        assert_eq!(runs(&mut client, "leased"), 1);
        client.says(&format!("DEL {queue}"), "1");
    }
}

/// No key, nothing to look after, nobody waiting: from now on its timer has nothing to do.
#[track_caller]
pub fn assert_nothing_left(node: &Server) {
    node.wait_for_blocked(0);
    wait_until("nothing is left", PATIENCE, || {
        node.number("dq", "dq_queues") == 0 && node.raw().int("DBSIZE") == 0
    });
    assert_eq!(node.number("dq", "dq_waiting_clients"), 0);
    wait_until("the timer has come to rest", PATIENCE, || {
        let fires = node.number("dq", "dq_timer_fires_total");
        let_pass(Duration::from_millis(350));
        node.number("dq", "dq_timer_fires_total") == fires
    });
}

/// Clients that wait on keys that do not exist leave nothing behind, wherever the slot is by then.
#[test]
fn waits_on_nothing_leave_nothing() {
    let cluster = Cluster::start(2);
    let from = cluster.node_of("{x}none");
    let (slot, to) = (cluster.slot_of("{x}none"), 1 - from);
    let leaving = cluster.nodes[from].waiting("DQ.BPOP {x}none {x}other 0");
    let mut staying = cluster.nodes[from].waiting("DQ.BPOP {x}none 0");
    cluster.begin_move(slot, from, to);
    drop(leaving);
    cluster.nodes[from].wait_for_blocked(1);
    let mut there = cluster.nodes[to].raw();
    there.says("ASKING", "+OK");
    there.begin("DQ.BPOP {x}none 0");
    cluster.nodes[to].wait_for_blocked(1);
    let mut client = cluster.nodes[to].raw();
    client.says("ASKING", "+OK");
    client.says("DQ.ADD {x}none a x", "'a'");
    cluster.finish_move(slot, from, to);
    // Who waits on the new side is served there, once it serves the slot.
    assert_eq!(there.delivery().id, "a");
    let reply = staying.reply();
    assert!(reply.starts_with("-MOVED "), "{reply}");
    assert_nothing_left(&cluster.nodes[from]);
}

/// The server redirects who waits for a slot that has gone, by its cron; the module ends waits, by its
/// timer. Where both are late they come together, and the client must hear one of them.
#[test]
fn a_wait_that_ends_as_its_slot_goes_is_answered_once() {
    let cluster = Cluster::start(3);
    let from = cluster.node_of("{x}none");
    let (slot, to) = (cluster.slot_of("{x}none"), (from + 1) % 3);
    let mut waiting = [(); 3].map(|()| {
        let mut client = cluster.nodes[from].waiting("DQ.BPOP {x}none 1");
        client.begin("PING");
        client
    });
    // The waits end while the server sleeps. In the turn in which it sees that, the slot goes, and
    // a second sleep makes the cron late as well: it comes just behind the timer.
    let (mut first, mut second) = (cluster.nodes[from].raw(), cluster.nodes[from].raw());
    first.begin("DEBUG SLEEP 1.2");
    let_pass(Duration::from_millis(200));
    let gone = format!("CLUSTER SETSLOT {slot} NODE {}", cluster.id(to));
    second.send(&[packed(&gone), packed("DEBUG SLEEP 0.2")].concat());
    assert_eq!(first.reply(), "+OK");
    assert_eq!([second.reply(), second.reply()], ["+OK", "+OK"]);
    for client in &mut waiting {
        let reply = client.reply();
        assert!(reply == "nil*" || reply.starts_with("-MOVED "), "{reply}");
        assert_eq!(client.reply(), "+PONG", "after {reply}");
    }
}

/// Who was sent to a slot that is being imported waits there, and not longer than asked.
#[test]
fn waits_end_in_a_slot_that_comes() {
    let cluster = Cluster::start(3);
    let from = cluster.node_of("{x}none");
    let (slot, to) = (cluster.slot_of("{x}none"), (from + 1) % 3);
    cluster.begin_move(slot, from, to);
    let mut client = cluster.nodes[to].raw();
    client.says("ASKING", "+OK");
    client.says("DQ.BPOP {x}none 0.05", "nil*");
}

/// Queues wander over all three masters, there and back, while jobs are added, delivered, forgotten,
/// given back and acknowledged.
#[test]
fn under_traffic() {
    let cluster = Cluster::start(3);
    let queues: Vec<String> = (0..4).map(|n| format!("{{t{n}}}q")).collect();
    for move_slot in moves(&cluster) {
        let traffic = Traffic {
            guides: &Guides::Nodes(cluster.ports()),
            queues: &queues,
            wait: false,
        };
        let seen = traffic.during(|| {
            for _ in 0..3 {
                for queue in &queues {
                    let from = cluster.node_of(queue);
                    move_slot(&cluster, cluster.slot_of(queue), from, (from + 1) % 3);
                    let_pass(Duration::from_millis(100));
                }
            }
        });
        seen.assert_sound(None);
        assert!(seen.moved >= queues.len(), "clients were redirected");
        cluster.nodes.iter().for_each(assert_nothing_left);
    }
}
