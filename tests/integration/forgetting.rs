//! The end of an id's dedupe window: the timer carries it out, and no client that watches the queue sees a change.

use crate::scene::{pair, Lines};
use crate::support::{wait_until, Raw, Reply, Server, PATIENCE};

fn is_touched(client: &mut Raw) -> bool {
    client.says("MULTI", "+OK");
    client.says("PING", "+QUEUED");
    client.run("EXEC") == Reply::NullArray
}

#[test]
fn touches_no_watch() {
    let (master, replica) = pair(Server::builder().aof());
    let (mut client, mut there) = (master.raw(), replica.raw());
    for window_ms in [100, 1000, 10_000] {
        client.says(&format!("DQ.CFGSET q DEDUPE {window_ms}"), "+OK");
        for id in 0..10 {
            client.says(&format!("DQ.ADD q {id} x"), &format!("'{id}'"));
        }
        client.run("DQ.POP q COUNT 10 NOACK");
        let before = master.digest();
        replica.wait_for_offset_of(&master);
        client.says("WATCH q", "+OK");
        there.says("WATCH q", "+OK");
        if master.digest() != before {
            // The machine took that long.
            client.says("UNWATCH", "+OK");
            there.says("UNWATCH", "+OK");
            continue;
        }
        wait_until("ids are forgotten", PATIENCE, || master.digest() != before);
        wait_until("the replica forgets them, too", PATIENCE, || {
            let digest = master.digest();
            replica.digest() == digest && master.digest() == digest
        });
        assert!(!is_touched(&mut client), "on the master");
        assert!(!is_touched(&mut there), "on the replica");
        // A change by a client is seen as before.
        client.says("WATCH q", "+OK");
        master.raw().says("DQ.ADD q 0 x", "'0'");
        assert!(is_touched(&mut client));
        return;
    }
    panic!("a machine that takes 10 s for a few commands");
}
