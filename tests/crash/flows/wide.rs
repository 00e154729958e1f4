//! One end that unblocks more jobs than one command does, and servers that are killed before all are unblocked: the
//! unfinished work is data, and continues in the next life.

use std::time::Duration;

use redis::{cmd, Value};

use crate::cmd;
use crate::link::{bytes, number, text};
use crate::report::seeds;
use crate::rng::Rng;
use crate::support::audit::assert_faultless;
use crate::support::raw::encode;
use crate::support::{poll, wait_until, Client, Reply, Server, PATIENCE};

const JOBS: u64 = 12_000;
/// More than one try, as a server may have unblocked all jobs before it is killed.
const TRIES: u64 = 30;

/// Adds the jobs, in order.
fn add(server: &Server) {
    let mut client = server.raw();
    let mut bytes = encode(&[b"DQ.ADD", b"wide", b"root", b"x"]);
    for number in 0..JOBS {
        let id = format!("j{number}");
        let add = ["DQ.ADD", "wide", &id, "x", "AFTER", "1", "root"];
        bytes.extend(encode(&add.map(str::as_bytes)));
    }
    client.send(&bytes);
    for _ in 0..=JOBS {
        assert!(matches!(client.read(), Reply::Bulk(_)));
    }
}

fn length(client: &mut Client, state: &str) -> u64 {
    number(&cmd!(client, "DQ.LEN", "wide", state))
}

/// None if all that were blocked are ready, in their order, and due since the one end.
fn fault(ready: &[(String, u64)], ended: u64) -> Option<String> {
    let in_order = ready.iter().enumerate();
    let out = in_order
        .clone()
        .find(|(at, (id, _))| *id != format!("j{at}"));
    let undue = ready.iter().find(|(_, due)| *due != ended);
    match (ready.len() as u64 == JOBS, out, undue) {
        (true, None, None) => None,
        (_, out, undue) => Some(format!("{} jobs, {out:?}, {undue:?}", ready.len())),
    }
}

#[test]
fn a_wide_end_is_carried_out_over_all_lives() {
    let mut amid = 0;
    let seeds = seeds(1).flat_map(|seed| seed * TRIES..(seed + 1) * TRIES);
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let mut server = Server::builder().aof().start();
        cmd!(server.connect(), "DQ.CFGSET", "wide", "DONELEN", 1);
        add(&server);
        let mut client = server.connect();
        let reply = cmd!(client, "DQ.POP", "wide", "TTR", 600_000);
        let Value::Array(root) = reply else {
            panic!("DQ.POP -> {reply:?}");
        };
        let (id, token) = (text(&root[0]), text(&root[2]));
        client.send(cmd("DQ.ACK").arg(&["wide", "RESULTS", &id, &token, "result"]));
        // Several lives, each too short for all of the work.
        for _ in 0..4 {
            poll(Duration::from_micros(rng.below(6000)), || None::<()>);
            server.kill();
            assert_faultless(&server.folder().join("appendonlydir"));
            server.restart();
            let blocked = length(&mut server.connect(), "BLOCKED");
            amid += u64::from(blocked > 0 && blocked < JOBS);
        }
        let mut client = server.connect();
        // The first ACK may never have been carried out.
        cmd!(client, "DQ.ACK", "wide", "RESULTS", id, token, "result");
        wait_until("none is blocked", PATIENCE, || {
            length(&mut client, "BLOCKED") == 0
        });
        let ended = number(&get(&mut client, "root", "finished"));
        let ready = ready(&mut client);
        assert_eq!(fault(&ready, ended), None, "seed {seed}");
        let Value::Array(first) = cmd!(client, "DQ.POP", "wide", "WITHRESULTS") else {
            panic!("DQ.POP");
        };
        let expected = ["root", "done", "result"].map(|it| Value::BulkString(it.into()));
        assert_eq!(first[5], Value::Array(vec![Value::Array(expected.into())]));
        server.assert_no_crash();
        if amid > 1 {
            println!("{amid} lives ended amid the steps, with the try {seed}");
            let mut less = ready.clone();
            less.remove(7);
            let mut later = ready.clone();
            later[9].1 += 1;
            let mut swapped = ready;
            swapped.swap(3, 4);
            for falsified in [less, later, swapped] {
                assert!(fault(&falsified, ended).is_some());
            }
            return;
        }
    }
    panic!("hardly a life ended amid the steps: {amid}");
}

fn ready(client: &mut Client) -> Vec<(String, u64)> {
    let Value::Array(jobs) = cmd!(client, "DQ.PEEK", "wide", "READY", "COUNT", JOBS + 1) else {
        panic!("DQ.PEEK");
    };
    let place = |job: &Value| match job {
        Value::Array(job) => (text(&job[0]), number(&job[2])),
        other => panic!("no job: {other:?}"),
    };
    jobs.iter().map(place).collect()
}

fn get(client: &mut Client, id: &str, name: &str) -> Value {
    let Value::Array(words) = cmd!(client, "DQ.GET", "wide", id) else {
        panic!("{id} is not there");
    };
    let mut pairs = words.chunks_exact(2);
    let pair = pairs.find(|pair| bytes(&pair[0]) == Some(name.into()));
    pair.expect("the field")[1].clone()
}
