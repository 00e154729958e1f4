//! A rewritten AOF that was changed by hand. What it says of blocked jobs is in effects of their own, so it may be
//! missing, or lead in a circle. No job may stay blocked because of that.

use std::fs;
use std::path::PathBuf;

use dq::queue::after::Link;
use dq::queue::codec::decode;
use dq::queue::effect::Effect;

use crate::payloads::{encoded, is_well};
use crate::scene::{Lines, Scene};
use crate::support::raw::{self, Reply};
use crate::support::{wait_until, Server, PATIENCE};

/// What becomes of an effect; `None` takes it out.
type Forge = for<'a> fn(Effect<'a>) -> Option<Effect<'a>>;

fn base_of(server: &Server) -> PathBuf {
    let files = fs::read_dir(server.folder().join("appendonlydir")).expect("the folder of the AOF");
    let mut files = files.map(|file| file.expect("a file").path());
    let base = files.find(|path| path.to_string_lossy().ends_with(".base.aof"));
    base.expect("a base that is an AOF")
}

/// The same commands with other effects.
fn forged(aof: &[u8], forge: Forge) -> Vec<u8> {
    let (mut rest, mut forged) = (aof, Vec::new());
    while let Some((Reply::Array(words), length)) = Reply::parse(rest) {
        let bulk = |word: &Reply| match word {
            Reply::Bulk(bytes) => bytes.clone(),
            other => panic!("no command: {other:?}"),
        };
        let mut words: Vec<Vec<u8>> = words.iter().map(bulk).collect();
        if words[0] == b"DQ.APPLY" {
            let effects = decode(&words[2]).map(|effect| effect.expect("our own effects"));
            let effects: Vec<Effect<'_>> = effects.filter_map(forge).collect();
            words[2] = encoded(&effects);
        }
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        forged.extend(raw::encode(&words));
        rest = &rest[length..];
    }
    assert!(rest.is_empty());
    forged
}

/// Makes the server rewrite its AOF, and restarts it with the forged one.
fn restart_forged(server: &mut Server, forge: Forge) {
    kill_forged(server, forge);
    server.restart();
}

fn kill_forged(server: &mut Server, forge: Forge) {
    server.raw().run("BGREWRITEAOF");
    wait_until("the file is rewritten", PATIENCE, || {
        server.info("persistence", "aof_rewrite_in_progress") == "0"
            && server.info("persistence", "aof_rewrite_scheduled") == "0"
    });
    server.kill();
    let path = base_of(server);
    let aof = fs::read(&path).expect("the base");
    fs::write(&path, forged(&aof, forge)).expect("room on the disk");
}

fn without_links(effect: Effect<'_>) -> Option<Effect<'_>> {
    (!matches!(effect, Effect::Links { .. })).then_some(effect)
}

fn without_an_end(effect: Effect<'_>) -> Option<Effect<'_>> {
    without_links(effect).filter(|effect| !matches!(effect, Effect::Minted { .. }))
}

/// Makes the jobs that `b` is after wait for `b`.
fn in_a_circle(effect: Effect<'_>) -> Option<Effect<'_>> {
    Some(match effect {
        Effect::Links {
            id: b"b",
            on_dead,
            is_timed,
            of_group,
            latest,
            ..
        } => Effect::Links {
            id: b"b",
            on_dead,
            is_timed,
            of_group,
            latest,
            links: vec![Link::Held(b"c")],
        },
        other => other,
    })
}

fn in_a_circle_without_an_end(effect: Effect<'_>) -> Option<Effect<'_>> {
    let is_end = matches!(effect, Effect::Minted { .. });
    in_a_circle(effect).filter(|_| !is_end)
}

/// In `q`, `c` is after `b`, and that after `a`.
fn a_chain() -> Server {
    let builder = Server::builder().aof();
    let server = builder.config("aof-use-rdb-preamble", "no").start();
    let mut client = server.raw();
    client.says("DQ.ADD q a x", "'a'");
    client.says("DQ.ADD q b x AFTER 1 a", "'b'");
    client.says("DQ.ADD q c x AFTER 1 b", "'c'");
    server
}

#[test]
fn no_job_stays_blocked_by_a_forged_file() {
    let same: Forge = |effect| Some(effect);
    for (forge, is_refused) in [
        (same, false),
        (without_links, true),
        (in_a_circle, true),
        (without_an_end, false),
    ] {
        let mut server = a_chain();
        let mut client = server.raw();
        client.says("DQ.ADD q d x GROUP g", "'d'");
        client.says("DQ.ADD q e x AFTER GROUP g", "'e'");
        client.says("DQ.LEN q BLOCKED", "3");
        restart_forged(&mut server, forge);
        assert_eq!(server.log().contains("jobs blocked for ever"), is_refused);
        let mut client = server.raw();
        let mut ran = Vec::new();
        wait_until("all jobs run", PATIENCE, || {
            client.begin("DQ.BPOP q 10");
            let job = client.delivery();
            client.says(&format!("DQ.ACK q {}", job.id), "1");
            ran.push(job.id);
            ran.len() == 5
        });
        ran.sort();
        assert_eq!(ran, ["a", "b", "c", "d", "e"]);
        let replica = Server::start();
        replica.replica_of(&server);
        is_well(&server, &replica);
    }
}

/// Saved before the timer has found them: here by a replica, whose timer unblocks nothing.
#[test]
fn a_save_of_forged_jobs_is_read() {
    for forge in [without_an_end, in_a_circle_without_an_end] {
        let mut server = a_chain();
        kill_forged(&mut server, forge);
        let replica = Server::builder()
            .aof()
            .config("replicaof", "127.0.0.1 1")
            .with_files_of(server.folder())
            .start();
        let mut client = replica.raw();
        for _ in 0..2 {
            client.says("DQ.LEN q BLOCKED", "2");
            client.says("DEBUG RELOAD", "+OK");
        }
        assert!(replica.log().contains("blocked for ever"));
        replica.promote();
        wait_until("all are free", PATIENCE, || {
            client.ask("DQ.LEN q READY") == "3"
        });
        client.says("DEBUG RELOAD", "+OK");
        client.says("DQ.LEN q READY", "3");
    }
}

/// A replica, and a file of dumps, accept what such a server has written.
#[test]
fn what_was_set_free_is_followed() {
    let builder = Server::builder().aof();
    let mut server = builder.config("aof-use-rdb-preamble", "no").start();
    let mut client = server.raw();
    client.says("DQ.ADD q a x DELAY 1000000", "'a'");
    client.says("DQ.ADD q b x AFTER 1 a", "'b'");
    restart_forged(&mut server, without_an_end);
    let mut client = server.raw();
    wait_until("it is set free", PATIENCE, || {
        client.ask("DQ.LEN q READY") == "1"
    });
    let digest = server.digest();
    let replica = Server::start();
    replica.follow(&server);
    server.assert_followed_by(&[&replica]);
    client.says("DEBUG RELOAD", "+OK");
    assert_eq!(server.digest(), digest);
}
