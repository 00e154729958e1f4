//! Steps and signals on a server: how many there may be, waiting clients, sleep, scripts.

use crate::probe::{fits, show, Probe};
use crate::scene::{Lines, Scene};
use crate::support::{wait_until, Server, PATIENCE};

/// A queue `q` whose job `a` is reserved; the token.
fn reserved(p: &mut Probe, options: &str) -> u64 {
    p.run(&format!("DQ.ADD q a x REPLACE {options}"));
    p.pop_token("DQ.POP q ID a")
}

#[test]
fn a_job_has_a_thousand_steps_and_no_more() {
    let mut p = Probe::start();
    let token = reserved(&mut p, "");
    let pairs: Vec<String> = (0..999).map(|n| format!("n{n} {n}")).collect();
    p.says(&format!("DQ.STEP q a {token} {}", pairs.join(" ")), "1");
    p.unseen(
        &format!("DQ.STEP q a {token} one 1 more 1"),
        "-ERR a job has at most 1000 steps",
    );
    p.says(&format!("DQ.STEP q a {token} n0 2 one 1 one 2"), "1");
    p.unseen("DQ.SIGNAL q a more", "-ERR a job has at most 1000 steps");
    p.unseen("DQ.SIGNAL q a one", "0");
    p.seen(&format!("DQ.STEP q a {token} n998 3"), "1");
    let digest = p.server.digest();
    p.run("DEBUG RELOAD");
    assert_eq!(p.server.digest(), digest);
}

#[test]
fn waiting_clients_get_steps_too() {
    let mut p = Probe::start();
    let token = reserved(&mut p, "");
    p.run(&format!("DQ.STEP q a {token} one 1 two 2"));
    for (options, shown) in [("", "[ 'q' JOB ]"), ("COUNT 3", "[ 'q' [ [ JOB ] ] ]")] {
        let mut waiting = p
            .server
            .waiting(&format!("DQ.BPOP q 0 WITHSTEPS {options}"));
        p.says("DQ.NACK q a SILENT", "'ready'");
        let reply = waiting.reply();
        let job = "'a' 'x' ? 1 ? [ 'one' '1' 'two' '2' ]";
        assert!(fits(&reply, &shown.replace("JOB", job)), "{reply}");
    }
    p.says("DQ.NACK q a SILENT", "'ready'");
    p.says3(
        "DQ.BPOP q 1 WITHSTEPS",
        "[ 'q' 'a' 'x' ? 1 ? { 'one' '1' 'two' '2' } ]",
    );
}

/// A small queue with notes can sleep, too, and its figures are known meanwhile.
#[test]
fn a_queue_with_notes_sleeps() {
    let server = Server::start();
    let mut client = server.raw();
    client.run("DQ.ADD q a x DELAY 90000000 KEEP 7");
    client.says("DQ.SIGNAL q a name value", "1");
    let awake = client.int("MEMORY USAGE q");
    let digest = client.ask("DEBUG DIGEST-VALUE q");
    wait_until("it sleeps", PATIENCE, || {
        client.int("MEMORY USAGE q") < awake / 2
    });
    assert_eq!(server.number("dq", "dq_bytes"), 11);
    assert_eq!(client.ask("DEBUG DIGEST-VALUE q"), digest);
    client.says("DQ.SIGNAL q a name", "0");
    assert_eq!(client.ask("DEBUG DIGEST-VALUE q"), digest);
}

/// "Steps of a job and other keys of the same server can be written in one script, and so take effect together or
/// not at all."
#[test]
fn a_script_writes_steps_and_other_keys_together() {
    const SCRIPT: &[u8] = b"
        if not redis.call('DQ.STEP', KEYS[1], ARGV[1], ARGV[2], 'moved', 'yes') then return nil end
        redis.call('DECRBY', KEYS[2], 10)
        return redis.call('INCRBY', KEYS[3], 10)";
    const ONCE: &[u8] = b"
        if not redis.call('DQ.TOUCH', KEYS[1], ARGV[1], 'TOKEN', ARGV[2]) then return nil end
        if redis.call('DQ.SIGNAL', KEYS[1], ARGV[1], 'once', 'yes') == 0 then return 0 end
        return redis.call('INCRBY', KEYS[2], 10)";
    let mut p = Probe::start();
    let token = reserved(&mut p, "").to_string();
    let mut client = p.server.raw();
    for expected in ["10", "0", "0"] {
        let reply = client.call(&[b"EVAL", ONCE, b"2", b"q", b"twice", b"a", token.as_bytes()]);
        assert_eq!(show(&reply), expected);
    }
    let mut run = |token: &str| {
        show(&client.call(&[
            b"EVAL",
            SCRIPT,
            b"3",
            b"q",
            b"from",
            b"to",
            b"a",
            token.as_bytes(),
        ]))
    };
    assert_eq!(run(&token), "10");
    p.says("DQ.NACK q a", "'ready'");
    assert_eq!(run(&token), "nil$", "it is another's now, or nobody's");
    p.says("GET from", "'-10'");
    p.talk(
        "> MULTI
        +OK
        > DQ.SIGNAL q a one
        +QUEUED
        > DQ.SIGNAL q a one
        +QUEUED
        > EXEC
        [ 1 0 ]",
    );
}

#[test]
fn a_step_raises_no_event_and_its_name_may_be_long() {
    let mut p = Probe::start();
    let token = reserved(&mut p, "");
    let name = "n".repeat(256);
    p.raises(&format!("DQ.STEP q a {token} {name} v"), "1", "");
    p.says(&format!("DQ.SIGNAL q a {name}"), "0");
}
