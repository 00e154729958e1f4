//! COST of DQ.ADD, DQ.MADD and DQ.TOUCH: what deliveries count in RATE and GROUPRATE.

use crate::probe::{show, Probe};
use crate::scene::Lines;
use crate::support::{wait_until, Raw, Reply, Server, PATIENCE};
use crate::turned::start;

const RANGE: &str = "-ERR value is not an integer or out of range";

fn cost(p: &mut Probe, id: &str) -> String {
    show(&p.field(&format!("DQ.GET q {id}"), "cost"))
}

/// The id of the job that a POP or BPOP delivers.
fn got(client: &mut Raw, line: &str) -> Option<String> {
    let at = usize::from(line.starts_with("DQ.BPOP"));
    match client.run(line) {
        Reply::Array(job) => Some(show(&job[at]).trim_matches('\'').to_owned()),
        _ => None,
    }
}

#[test]
fn a_job_has_a_cost_within_bounds() {
    let mut p = Probe::start();
    for wrong in [
        "0",
        "1000001",
        "-1",
        "1.5",
        "x",
        "\"\"",
        "18446744073709551616",
    ] {
        p.unseen(&format!("DQ.ADD q a x COST {wrong}"), RANGE);
        p.unseen(&format!("DQ.MADD q 1 a x COST {wrong}"), RANGE);
        p.unseen(&format!("DQ.TOUCH q a COST {wrong}"), RANGE);
    }
    p.unseen("DQ.ADD q a x COST", "-ERR syntax error, ...");
    p.unseen("DQ.ADD q a x COST 2 COST 2", "-ERR syntax error, ...");
    p.unseen("DQ.TOUCH q IDS 1 a 1 COST 2", "-ERR syntax error, ...");
    p.run("DQ.ADD q a x COST 1000000");
    p.run("DQ.ADD q b x");
    p.run("DQ.MADD q 2 c x d x COST 7");
    let costs: Vec<String> = ["a", "b", "c", "d"]
        .iter()
        .map(|id| cost(&mut p, id))
        .collect();
    assert_eq!(costs, ["1000000", "1", "7", "7"]);
    p.run("DQ.ADD q a x REPLACE");
    assert_eq!(cost(&mut p, "a"), "1");
}

#[test]
fn rates_go_to_four_thousand_million() {
    let mut p = Probe::start();
    for name in ["RATE", "GROUPRATE"] {
        p.seen(&format!("DQ.CFGSET q {name} 4294967295 1000"), "+OK");
        p.unseen(&format!("DQ.CFGSET q {name} 4294967296 1000"), RANGE);
    }
}

#[test]
fn a_cost_goes_with_its_job_wherever_that_goes() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q DONELEN 5");
    p.run("DQ.ADD q done x COST 3");
    p.run("DQ.POP q");
    p.run("DQ.ACK q done");
    assert_eq!(cost(&mut p, "done"), "3");
    p.run("DQ.KICK q IDS 1 done");
    assert_eq!(cost(&mut p, "done"), "3");
    p.run("DQ.ADD q again x DELAY 0 EVERY 60000 COST 4");
    p.run("DQ.POP q ID again NOACK");
    assert_eq!(cost(&mut p, "again"), "4");
    p.run("DQ.ADD q again x EVERY 60000 XX");
    assert_eq!(cost(&mut p, "again"), "1");
    p.run("DQ.ADD q next x COST 5");
    p.run("DQ.POP q ID next");
    p.run("DQ.ADD q next y NEXT COST 6");
    assert_eq!(cost(&mut p, "next"), "5");
    p.run("DQ.ACK q next");
    assert_eq!(cost(&mut p, "next"), "6");
}

/// On a clock that stands still, so that each instant is exact.
#[test]
fn no_window_lets_more_go_than_it_should() {
    let (_server, mut client) = start();
    client.words("DQ.CFGSET q RATE 10 1000");
    for (id, cost) in [("a", 4), ("b", 6), ("c", 5), ("d", 25), ("e", 1)] {
        client.words(&format!("DQ.ADD q {id} x COST {cost}"));
    }
    let pop = |client: &mut Raw| got(client, "DQ.POP q");
    assert_eq!(pop(&mut client).as_deref(), Some("a"));
    client.int("DQ.CLOCK ADVANCE 400");
    assert_eq!(pop(&mut client).as_deref(), Some("b"));
    assert_eq!(pop(&mut client), None, "10 are in the window");
    client.int("DQ.CLOCK ADVANCE 599");
    assert_eq!(pop(&mut client), None);
    client.int("DQ.CLOCK ADVANCE 1");
    assert_eq!(pop(&mut client), None, "6 and 5 are more than 10");
    client.int("DQ.CLOCK ADVANCE 400");
    assert_eq!(pop(&mut client).as_deref(), Some("c"));
    client.int("DQ.CLOCK ADVANCE 999");
    assert_eq!(
        pop(&mut client),
        None,
        "nothing passes what costs more than all"
    );
    client.int("DQ.CLOCK ADVANCE 1");
    assert_eq!(pop(&mut client).as_deref(), Some("d"));
    assert_eq!(pop(&mut client), None);
    client.int("DQ.CLOCK ADVANCE 1000");
    assert_eq!(pop(&mut client).as_deref(), Some("e"));
}

#[test]
fn a_group_whose_first_does_not_fit_is_passed_over() {
    let (_server, mut client) = start();
    client.words("DQ.CFGSET q GROUPRATE 10 1000");
    for (id, group, cost) in [
        ("a1", "a", 8),
        ("a2", "a", 8),
        ("a3", "a", 1),
        ("b1", "b", 99),
    ] {
        client.words(&format!("DQ.ADD q {id} x GROUP {group} COST {cost}"));
    }
    let pop = |client: &mut Raw, id: &str| got(client, &format!("DQ.POP q {id}"));
    assert_eq!(pop(&mut client, "").as_deref(), Some("a1"));
    assert_eq!(
        pop(&mut client, "").as_deref(),
        Some("b1"),
        "more than all, alone"
    );
    assert_eq!(pop(&mut client, ""), None, "none passes a2");
    assert_eq!(pop(&mut client, "ID a2"), None);
    assert_eq!(
        pop(&mut client, "ID a3").as_deref(),
        Some("a3"),
        "by its own cost"
    );
    client.int("DQ.CLOCK ADVANCE 1000");
    assert_eq!(pop(&mut client, "").as_deref(), Some("a2"));
}

#[test]
fn what_a_delivery_counted_can_be_said_afterwards() {
    let (_server, mut client) = start();
    client.words("DQ.CFGSET q RATE 10 1000 GROUPRATE 10 1000");
    for id in ["a", "b", "c"] {
        client.words(&format!("DQ.ADD q {id} x GROUP g COST 5"));
    }
    let a = client.words("DQ.POP q")[2].clone();
    client.int("DQ.CLOCK ADVANCE 100");
    client.words("DQ.POP q");
    client.says("DQ.TOUCH q a TOKEN 1 COST 1", "nil$");
    assert!(
        got(&mut client, "DQ.POP q").is_none(),
        "not by a token that is not its own"
    );
    client.words(&format!("DQ.TOUCH q a TOKEN {a} COST 1"));
    let shown = client.words("DQ.GET q a");
    let at = shown
        .iter()
        .position(|word| word == "cost")
        .expect("the field");
    assert_eq!(shown[at + 1], "5", "the job's own stays");
    assert!(got(&mut client, "DQ.POP q").is_none(), "1 and 5 and 5");
    client.words("DQ.TOUCH q b COST 4");
    assert_eq!(got(&mut client, "DQ.POP q").as_deref(), Some("c"));
    // More than the whole rate: counted from the instant of its delivery.
    client.words("DQ.TOUCH q a COST 1000");
    client.words("DQ.ADD q d x GROUP g");
    client.int("DQ.CLOCK ADVANCE 899");
    assert!(got(&mut client, "DQ.POP q").is_none());
    client.int("DQ.CLOCK ADVANCE 1");
    assert_eq!(got(&mut client, "DQ.POP q").as_deref(), Some("d"));
}

/// Each wakes waiting clients: time, and a TOUCH that lowers the cost.
#[test]
fn who_waits_is_woken_when_it_fits() {
    for limit in ["RATE", "GROUPRATE"] {
        let server = Server::start();
        let mut client = server.raw();
        client.words(&format!("DQ.CFGSET q {limit} 10 60000"));
        for id in ["a", "b"] {
            client.words(&format!("DQ.ADD q {id} x GROUP g COST 7"));
        }
        client.words("DQ.POP q");
        let mut waits = server.raw();
        waits.begin("DQ.BPOP q 0");
        wait_until("a waiting client", PATIENCE, || {
            client
                .words("DQ.STATS q")
                .join(" ")
                .contains("waiting-clients 1")
        });
        client.words("DQ.TOUCH q a COST 3");
        assert_eq!(waits.delivery().id, "b", "{limit}");
        client.words(&format!("DQ.CFGSET q {limit} 10 200"));
        client.words("DQ.ADD q c x GROUP g COST 10");
        client.words("DQ.ADD q d x GROUP g COST 10");
        assert_eq!(got(&mut client, "DQ.BPOP q 5").as_deref(), Some("c"));
        assert_eq!(
            got(&mut client, "DQ.BPOP q 5").as_deref(),
            Some("d"),
            "{limit}"
        );
    }
}

/// No client and no timer is woken before something fits.
#[test]
fn a_costly_job_costs_no_time_while_it_waits() {
    let server = Server::start();
    let mut client = server.raw();
    client.words("DQ.CFGSET q RATE 3 600000 GROUPRATE 2 600000");
    for (id, group) in [("a", "g"), ("b", "g"), ("c", "h"), ("d", "h")] {
        client.words(&format!("DQ.ADD q {id} x GROUP {group} COST 2"));
    }
    client.words("DQ.POP q");
    let mut waits = server.raw();
    waits.begin("DQ.BPOP q 0.5");
    let fires = |client: &mut Raw| {
        let info = client.words("INFO dq").join(" ");
        let value = info
            .split("dq_timer_fires_total:")
            .nth(1)
            .expect("the field");
        value
            .split_whitespace()
            .next()
            .and_then(|it| it.parse::<u64>().ok())
            .expect("a number")
    };
    let before = fires(&mut client);
    assert_eq!(waits.reply(), "nil*");
    let after = fires(&mut client);
    assert!(after - before <= 4, "{} fires", after - before);
}
