//! Clients that DQ.AWAIT has told how a job ended, and a server that is killed then: with appendfsync always the end
//! must be in the file. Jobs are acked, deleted or dead, alone and in transactions; the command or the timer reports
//! the end.

use crate::rng::Rng;
use crate::support::{raw, Raw, Reply, Server};
use std::collections::BTreeMap;

const JOBS: usize = 60;
const CYCLES: u64 = 12;

fn words(line: &str) -> Vec<u8> {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    raw::encode(&words)
}

fn run(client: &mut Raw, line: &str) -> Reply {
    client.send(&words(line));
    client.read()
}

/// Commands that end a job, one of them only by the end of its lease.
fn ends(rng: &mut Rng, id: &str) -> Vec<String> {
    let end = match rng.below(4) {
        0 => format!("DQ.ACK q {id}"),
        1 => format!("DQ.DEL q {id}"),
        2 => format!("DQ.NACK q {id} FATAL REASON bad"),
        _ => format!("DQ.TOUCH q {id} TTR 1"),
    };
    match rng.below(3) {
        0 => vec!["MULTI".into(), end, "EXEC".into()],
        _ => vec![end],
    }
}

/// One life, which ends while jobs end: the jobs whose ends were reported, with the outcome.
fn life(server: &mut Server, rng: &mut Rng) -> BTreeMap<String, String> {
    let mut client = server.raw();
    let mut waiting = Vec::new();
    for number in 0..JOBS {
        let id = format!("j{number}");
        run(&mut client, &format!("DQ.ADD q {id} x ATTEMPTS 1"));
        run(&mut client, &format!("DQ.POP q ID {id} TTR 100000"));
        let mut one = server.raw();
        one.send(&words(&format!("DQ.AWAIT q 0 {id}")));
        waiting.push((id, one));
    }
    // All commands are sent at once, and only some replies are read.
    let mut bytes = Vec::new();
    for number in 0..JOBS {
        let commands = ends(rng, &format!("j{number}"));
        bytes.extend(commands.iter().flat_map(|line| words(line)));
    }
    client.send(&bytes);
    for _ in 0..rng.below(JOBS as u64) {
        client.read();
    }
    server.kill();
    let outcome = |reply: Reply| match reply {
        Reply::Array(told) => match &told[..] {
            [Reply::Array(end)] => format!("{:?}", end[1]),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let mut told = BTreeMap::new();
    for (id, mut one) in waiting {
        let rest = one.read_to_end();
        if let Some((reply, _)) = Reply::parse(&rest) {
            told.insert(id, outcome(reply));
        }
    }
    told
}

/// A job whose end was reported but is not in the file.
fn missing(server: &Server, told: &BTreeMap<String, String>) -> Option<String> {
    let mut client = server.raw();
    told.iter().find_map(|(id, outcome)| {
        let state = match run(&mut client, &format!("DQ.GET q {id}")) {
            Reply::Array(fields) => {
                let is_state = |it: &[Reply]| it[0] == Reply::bulk("state");
                let mut pairs = fields.chunks(2);
                pairs.find(|it| is_state(it)).map(|it| it[1].clone())
            }
            _ => None,
        };
        let has_ended = state.is_none_or(|state| state == Reply::bulk("dead"));
        (!has_ended).then(|| format!("{id}: {outcome} was told"))
    })
}

fn server() -> Server {
    let builder = Server::builder().aof();
    builder.config("appendfsync", "always").start()
}

#[test]
fn what_was_shown_is_in_the_file() {
    let (mut server, mut told) = (server(), 0);
    for seed in 1..=CYCLES {
        let ends = life(&mut server, &mut Rng::new(seed));
        server.restart();
        if let Some(fault) = missing(&server, &ends) {
            panic!("DQ_SEED={seed} {fault}, and the file does not have it");
        }
        told += ends.len();
        run(&mut server.raw(), "DEL q");
    }
    assert!(told > 30, "{told} ends were told");
}

#[test]
fn an_end_that_is_not_in_the_file_is_noticed() {
    let mut server = server();
    let noticed = (1..=CYCLES).any(|seed| {
        let mut client = server.raw();
        run(&mut client, "DEL q");
        for number in 0..JOBS {
            run(&mut client, &format!("DQ.ADD q j{number} x"));
        }
        // What is written from here on is removed from the file again.
        let file = std::fs::read_dir(server.folder().join("appendonlydir"));
        let before: Vec<_> = file
            .expect("a folder")
            .map(|entry| entry.expect("a file").path())
            .map(|path| (path.clone(), std::fs::read(path).expect("a file")))
            .collect();
        let ends = life(&mut server, &mut Rng::new(seed));
        for (path, bytes) in before {
            std::fs::write(path, bytes).expect("a file of ours");
        }
        server.restart();
        missing(&server, &ends).is_some()
    });
    assert!(noticed);
}
