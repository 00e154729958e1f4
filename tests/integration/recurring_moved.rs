//! Recurring jobs whose queue goes to another server.

use crate::probe::data;
use crate::scene::{Lines, Scene};
use crate::support::Server;

/// All that is shown of these jobs.
fn shown(client: &mut crate::support::Raw) -> Vec<String> {
    let lines = [
        "DQ.GET q waits",
        "DQ.GET q leased",
        "DQ.GET q retries",
        "DQ.NEXT q waits COUNT 5",
        "DQ.LEN q",
        "DEBUG DIGEST-VALUE q",
    ];
    lines.map(|line| data(&client.run(line))).to_vec()
}

#[test]
fn by_migrate() {
    let (source, target) = (Server::start(), Server::start());
    let mut client = source.raw();
    for line in [
        "DQ.ADD q waits x CRON 0\\x2012\\x2029\\x202\\x20* TZ Europe/Berlin JITTER 60000 GRACE 5000",
        "DQ.ADD q leased x DELAY 0 EVERY 3600000 TIMES 3 TTR 600000",
        "DQ.ADD q retries x DELAY 0 PRIORITY 1 EVERY 3600000 TTR 600000",
    ] {
        let reply = client.ask(line);
        assert!(!reply.starts_with('-'), "{line} -> {reply}");
    }
    let token = client.words("DQ.POP q ID leased")[2].clone();
    client.run("DQ.POP q ID retries");
    client.says("DQ.NACK q retries DELAY 600000 REASON why", "'delayed'");
    let before = shown(&mut client);
    let port = target.port();
    client.says(&format!("MIGRATE 127.0.0.1 {port} q 0 60000"), "+OK");
    client.says("EXISTS q", "0");
    assert_eq!(source.number("dq", "dq_queues"), 0);
    let mut there = target.raw();
    assert_eq!(shown(&mut there), before);
    assert_eq!(target.number("dq", "dq_recurring"), 3);
    // The delivery is acknowledged on the new server, and the rule continues.
    let due = |client: &mut crate::support::Raw| client.words("DQ.GET q leased")[9].parse::<u64>();
    let first = due(&mut there).expect("a due");
    there.says(&format!("DQ.ACK q WITHTOKENS leased {token}"), "1");
    assert_eq!(due(&mut there), Ok(first + 3_600_000));
    there.says(&format!("DQ.ACK q WITHTOKENS leased {token}"), "0");
}
