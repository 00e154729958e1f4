//! DQ.BPOP on several keys gets a job of the first key that has one, in the order of its arguments, even after waiting.

use std::collections::BTreeSet;

use crate::scene::{now_ms, Lines, Scene};
use crate::support::cluster::Cluster;
use crate::support::{Raw, Server};

/// Two keys in both orders of their names.
fn pairs(tag: &str) -> [[String; 2]; 2] {
    let key = |name: &str| format!("{tag}{name}");
    [["q1", "q3"], ["q3", "q1"]].map(|pair| pair.map(key))
}

/// As one transaction; its replies.
fn transact(client: &mut Raw, lines: &[String]) -> String {
    client.says("MULTI", "+OK");
    for line in lines {
        client.says(line, "+QUEUED");
    }
    client.ask("EXEC")
}

/// How a job appears in a queue: what is done before any client waits, and afterwards.
const WAYS: [(&str, &[&str], &str); 8] = [
    ("added", &[], "DQ.ADD {} j x"),
    ("due long ago", &[], "DQ.ADD {} j x AT 1"),
    ("due together", &[], "DQ.ADD {} j x AT {due}"),
    (
        "renamed",
        &["DQ.ADD {}:there j x AT 1"],
        "RENAME {}:there {}",
    ),
    (
        "resumed",
        &["DQ.PAUSE {}", "DQ.ADD {} j x AT 1"],
        "DQ.RESUME {}",
    ),
    ("added with others", &[], "DQ.MADD {} 2 j x k x"),
    (
        "run now",
        &["DQ.ADD {} j x DELAY 1000000"],
        "DQ.RESCHEDULE {} DELAY 0 j",
    ),
    (
        "kicked",
        &["DQ.ADD {} j x", "DQ.POP {}", "DQ.NACK {} j FATAL"],
        "DQ.KICK {} COUNT 1",
    ),
];

fn those_who_waited(server: &Server, tag: &str) {
    let mut client = server.raw();
    for (way, before, then) in WAYS {
        for keys in pairs(tag) {
            // They come in both orders.
            for reversed in [false, true] {
                let [first, second] = &keys;
                let mut order = [first, second];
                if reversed {
                    order.reverse();
                }
                let lines = |line: &str| {
                    let due = (now_ms() + 50).to_string();
                    order.map(|key| line.replace("{due}", &due).replace("{}", key))
                };
                for line in before.iter().flat_map(|line| lines(line)) {
                    client.run(&line);
                }
                let mut waiting = server.waiting(&format!("DQ.BPOP {first} {second} 0"));
                transact(&mut client, &lines(then));
                let got = waiting.delivery().key;
                assert_eq!(got, *first, "{way}, to {order:?}");
                client.says(&format!("DEL {first} {second}"), "2");
            }
        }
    }
}

#[test]
fn holds_for_those_who_wait() {
    those_who_waited(&Server::start(), "");
}

#[test]
fn holds_in_a_cluster() {
    let cluster = Cluster::start(1);
    those_who_waited(&cluster.nodes[0], "{x}");
}

#[test]
fn holds_among_many_keys() {
    let server = Server::start();
    let mut client = server.raw();
    for turn in 0..5 {
        let mut names: Vec<String> = (0..5).map(|name| format!("q{name}")).collect();
        names.rotate_left(turn);
        let keys = names.join(" ");
        // One client gets the first, the next one the second: each job is handed over once.
        let mut line: Vec<Raw> = names
            .iter()
            .map(|_| server.waiting(&format!("DQ.BPOP {keys} 0")))
            .collect();
        let adds: Vec<String> = (0..5).map(|name| format!("DQ.ADD q{name} j x")).collect();
        transact(&mut client, &adds);
        let got: Vec<String> = line.iter_mut().map(|one| one.delivery().key).collect();
        assert_eq!(got, names);
        client.says(&format!("DEL {keys}"), "5");
    }
}

/// If clients name the keys in different orders, the order of one is not met; but none goes without.
#[test]
fn contradicting_orders_are_all_served() {
    let server = Server::start();
    let mut client = server.raw();
    let orders = ["a b", "b a", "b c", "c a", "c b a", "a"];
    for round in 0..orders.len() {
        let order = |number: usize| orders[(number + round) % orders.len()];
        let mut line: Vec<Raw> = (0..orders.len())
            .map(|number| {
                let noack = if (number + round) % 2 == 0 {
                    "NOACK"
                } else {
                    ""
                };
                server.waiting(&format!("DQ.BPOP {} 0 {noack}", order(number)))
            })
            .collect();
        let adds: Vec<String> = ["a", "b", "c"]
            .iter()
            .flat_map(|key| (0..orders.len()).map(move |number| format!("DQ.ADD {key} {number} x")))
            .collect();
        transact(&mut client, &adds);
        let mut seen = BTreeSet::new();
        for (number, waiting) in line.iter_mut().enumerate() {
            let got = waiting.delivery();
            assert!(order(number).contains(&got.key), "{}", order(number));
            assert!(seen.insert((got.key, got.id)), "delivered twice");
        }
        client.says("DEL a b c", "3");
    }
}

/// A job that exists already, but that the waiting client may not get.
#[test]
fn holds_where_others_wait_for_what_they_cannot_get() {
    let server = Server::start();
    let mut client = server.raw();
    for [first, second] in pairs("") {
        for held in [&[&first, &second][..], &[&first], &[&second]] {
            for key in [&first, &second] {
                client.says(&format!("DQ.CFGSET {key} MAXRESERVED 1"), "+OK");
                client.says(&format!("DQ.ADD {key} r x"), "'r'");
                client.run(&format!("DQ.POP {key}"));
                client.says(&format!("DQ.ADD {key} j x"), "'j'");
            }
            let held: Vec<&str> = held.iter().map(|key| key.as_str()).collect();
            let mut other = server.waiting(&format!("DQ.BPOP {} 0", held.join(" ")));
            client.begin(&format!("DQ.BPOP {first} {second} 1 NOACK"));
            assert_eq!(client.delivery().key, first, "others wait for {held:?}");
            client.says(&format!("DQ.ACK {} r", held[0]), "1");
            client.says(&format!("DQ.ADD {} k x", held[0]), "'k'");
            assert_eq!(other.delivery().key, held[0]);
            client.says(&format!("DEL {first} {second}"), "2");
        }
    }
}

/// Even after a standstill of the server it is known which job came first.
#[test]
fn what_was_due_earlier_goes_first() {
    let server = Server::start();
    let mut client = server.raw();
    for later in [200, 2000, 20_000] {
        let mut waiting = server.waiting("DQ.BPOP q3 q1 0");
        let due = now_ms() + later;
        let replies = transact(
            &mut client,
            &[
                "TIME".to_owned(),
                format!("DQ.ADD q3 j x AT {}", due + 20),
                format!("DQ.ADD q1 j x AT {due}"),
                format!("DEBUG SLEEP {}", (later + 100) as f64 / 1e3),
            ],
        );
        let key = waiting.delivery().key;
        client.says("DEL q1 q3", "2");
        let words = replies
            .split('\'')
            .filter_map(|word| word.parse::<u64>().ok());
        let began: Vec<u64> = words.take(2).collect();
        if began[0] * 1000 + began[1] / 1000 + 1 < due {
            assert_eq!(key, "q1");
            return;
        }
        // The machine took that long: both were due before they came.
    }
    panic!("a machine that takes 20 s for a command");
}
