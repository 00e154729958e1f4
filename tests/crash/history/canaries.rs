//! Histories that each rule must reject, and one with something of everything that none may reject.

use super::builder::{HistoryBuilder, START_MS};
use super::check::{check, Rule};
use super::{payload, Add, Del, Delivery, Due, End, Kept, Kick, Kind, Life, Taken, What};

/// A job that is added, delivered and acknowledged.
fn plain(kept: Kept) -> HistoryBuilder {
    let mut made = HistoryBuilder::new();
    made.add(1, 0);
    let token = made.pop(&[(1, 1)]);
    made.ack(1, token, Some(1));
    made.crash(kept);
    made
}

#[test]
fn what_is_right_is_not_rejected() {
    let mut made = HistoryBuilder::new();
    made.add(1, 0).priority = -1;
    made.add(2, 0).max_attempts = 2;
    made.add(3, 50).ttl_ms = Some(60);
    let token = made.pop(&[(1, 1), (2, 1)]);
    made.nack(2, token + 1, Kind::Fail, 20);
    made.later(20);
    let again = made.pop(&[(2, 2)]);
    made.nack(2, again, Kind::Fatal, 0);
    made.dead(2, 2);
    made.touch(1, token, 200);
    made.later(230);
    // The lease has expired, and the worker that got the job next died with its server, its ACK unanswered.
    let token = made.pop(&[(1, 2)]);
    made.ack(1, token, None);
    made.crash(Kept::All);
    made.later(100);
    let token = made.pop(&[(1, 3)]);
    made.nack(1, token, Kind::Silent, 0);
    let token = made.pop(&[(1, 3)]);
    made.ack(1, token, Some(1));
    made.add(4, 0);
    made.take(4);
    made.add(6, 0);
    made.add(7, 0);
    let token = made.pop(&[(6, 1), (7, 1)]);
    made.ack(6, token, Some(1));
    made.ack(7, token + 1, Some(1));
    made.add(5, 0);
    made.crash(Kept::Before(0));
    let verdict = check(&made.history);
    assert_eq!(
        verdict.faults.len(),
        0,
        "{}",
        verdict.complaint(&made.history)
    );
    let causes: u64 = verdict.tally.again.values().sum();
    assert_eq!((verdict.tally.deliveries, causes), (9, 4));
    assert!(verdict.tally.orders > 0);
}

#[test]
fn lost() {
    let mut made = HistoryBuilder::new();
    made.add(1, 0);
    assert_eq!(made.found(), [Rule::Lost]);
    made.crash(Kept::All);
    assert_eq!(made.found(), [Rule::Lost], "kept by the setting");
    made.history.lives[0].kept = Kept::Before(10_000);
    assert_eq!(made.found(), [Rule::Lost], "before the last save");
    made.history.lives[0].kept = Kept::Before(0);
    assert_eq!(made.found(), [], "after the last save");
    made.history.entries[0].confirmed = true;
    assert_eq!(made.found(), [Rule::Lost], "confirmed by WAIT");
    // A refused ACK does not explain that the job is gone.
    let token = made.pop(&[(1, 1)]);
    made.ack(1, token, Some(0));
    assert_eq!(made.found(), [Rule::Lost]);
}

/// Of jobs that a POP with NOACK without an answer may have taken, only those beyond its COUNT are lost.
#[test]
fn lost_beyond_what_may_have_been_taken() {
    let mut made = HistoryBuilder::new();
    made.add(1, 0);
    made.add(2, 0);
    let pop = made.answer_pop(None);
    pop.noack = true;
    pop.count = 2;
    assert_eq!(made.found(), []);
    made.add(3, 0);
    assert_eq!(made.found(), [Rule::Lost]);
}

#[test]
fn half_a_transaction() {
    let mut made = HistoryBuilder::new();
    for serial in [1, 2] {
        made.add(serial, 0).answer = None;
        made.history.entries.last_mut().expect("an ADD").unit = Some(9);
    }
    made.crash(Kept::All);
    assert_eq!(made.found(), [], "none of it");
    let token = made.pop(&[(1, 1)]);
    made.ack(1, token, Some(1));
    assert_eq!(made.found(), [Rule::Half]);
}

#[test]
fn early() {
    for (delay, rules) in [(0, vec![]), (1000, vec![Rule::Early])] {
        let mut made = HistoryBuilder::new();
        made.add(1, delay);
        let token = made.pop(&[(1, 1)]);
        made.ack(1, token, Some(1));
        assert_eq!(made.found(), rules, "a delay of {delay}");
    }
    // The last entry decides, whatever came before it.
    let mut made = HistoryBuilder::new();
    made.add(1, 0);
    let token = made.pop(&[(1, 1)]);
    made.nack(1, token, Kind::Fail, 50);
    let token = made.pop(&[(1, 2)]);
    made.ack(1, token, Some(1));
    assert_eq!(made.found(), [Rule::Early], "after a NACK");
    let mut made = HistoryBuilder::new();
    made.add(1, 0);
    made.reschedule(1, 50);
    made.take(1);
    assert_eq!(made.found(), [Rule::Early], "after a RESCHEDULE");
    // A reschedule that a crash may have undone proves nothing.
    made.history.entries[2].life = 1;
    made.history.lives.push(Life {
        kept: Kept::Before(2_000),
        end: End::Crash,
    });
    assert_eq!(made.found(), []);
}

#[test]
fn past_its_ttl() {
    for (wait, rules) in [(0, vec![]), (100, vec![Rule::Expired])] {
        let mut made = HistoryBuilder::new();
        made.add(1, 0).ttl_ms = Some(50);
        made.later(wait);
        let token = made.pop(&[(1, 1)]);
        made.ack(1, token, Some(1));
        assert_eq!(made.found(), rules, "{wait} ms after it");
    }
}

#[test]
fn unexpected() {
    type Change = fn(&mut Delivery);
    let changes: [Change; 4] = [
        |job| job.payload = payload(77),
        |job| job.payload.push(0),
        |job| job.id = "other".to_owned(),
        |job| job.queue = "other".to_owned(),
    ];
    for change in changes {
        let mut made = plain(Kept::All);
        let What::Pop(pop) = &mut made.history.entries[1].what else {
            unreachable!("the second entry");
        };
        change(&mut pop.answer.as_mut().expect("an answer")[0]);
        assert!(made.found().contains(&Rule::Unexpected));
    }
    let mut made = plain(Kept::All);
    let What::Add(add) = &mut made.history.entries[0].what else {
        unreachable!("the first entry");
    };
    add.answer = Some(Taken::Refused);
    assert_eq!(made.found(), [Rule::Unexpected], "it was refused");
    let mut made = plain(Kept::All);
    made.dead(77, 1);
    assert_eq!(
        made.found(),
        [Rule::Unexpected],
        "dead, but nobody added it"
    );
    // Delivered before its ADD.
    let mut made = plain(Kept::All);
    made.history.entries[0].sent.at_us = 1_000_000;
    assert_eq!(made.found(), [Rule::Unexpected]);
}

#[test]
fn attempts() {
    let mut made = HistoryBuilder::new();
    made.add(1, 0).max_attempts = 3;
    made.pop(&[(1, 2)]);
    assert_eq!(made.found(), [Rule::Lost, Rule::Attempts], "two at once");
    made.history.entries.pop();
    made.answer_pop(None);
    let token = made.pop(&[(1, 2)]);
    made.ack(1, token, Some(1));
    assert_eq!(made.found(), [], "one was not heard of");

    for (second, rules) in [
        (1, vec![Rule::Attempts]),
        (2, vec![]),
        (3, vec![Rule::Attempts]),
    ] {
        let mut made = HistoryBuilder::new();
        made.add(1, 0);
        made.pop(&[(1, 1)]);
        made.later(100);
        let token = made.pop(&[(1, second)]);
        made.ack(1, token, Some(1));
        assert_eq!(made.found(), rules, "the second is {second}");
    }
    let mut made = HistoryBuilder::new();
    made.add(1, 0).max_attempts = 1;
    made.pop(&[(1, 1)]);
    made.later(100);
    let token = made.pop(&[(1, 2)]);
    made.ack(1, token, Some(1));
    assert_eq!(made.found(), [Rule::Attempts], "more than it may have");
}

#[test]
fn dead_without_a_reason() {
    for (limit, attempts, rules) in [
        (2, 2, vec![]),
        (2, 1, vec![Rule::Dead]),
        (0, 5, vec![Rule::Dead]),
    ] {
        let mut made = HistoryBuilder::new();
        made.add(1, 0).max_attempts = limit;
        made.dead(1, attempts);
        assert_eq!(made.found(), rules, "{attempts} of {limit}");
    }
}

#[test]
fn two_leases() {
    for (wait, rules) in [(0, vec![Rule::TwoLeases]), (100, vec![])] {
        let mut made = HistoryBuilder::new();
        made.add(1, 0);
        made.pop(&[(1, 1)]);
        made.later(wait);
        let token = made.pop(&[(1, 2)]);
        made.ack(1, token, Some(1));
        assert_eq!(made.found(), rules, "after {wait} ms");
        // A lease outlives the crash of a server that keeps everything, and of no other server.
        for (kept, rules) in [(Kept::All, rules), (Kept::Before(2_000), vec![])] {
            for entry in &mut made.history.entries[2..] {
                entry.life = 1;
            }
            let end = End::Crash;
            made.history.lives = vec![Life { kept, end }];
            assert_eq!(made.found(), rules, "{kept:?} after {wait} ms");
        }
    }
    // A lease that TOUCH made longer.
    let mut made = HistoryBuilder::new();
    made.add(1, 0);
    let token = made.pop(&[(1, 1)]);
    made.touch(1, token, 1000);
    made.later(100);
    let token = made.pop(&[(1, 2)]);
    made.ack(1, token, Some(1));
    assert_eq!(made.found(), [Rule::TwoLeases]);
}

#[test]
fn after_its_end() {
    for (kept, rules) in [
        (Kept::All, vec![Rule::Finished]),
        (Kept::Before(4_500), vec![]),
    ] {
        let mut made = plain(kept);
        made.later(100);
        let token = made.pop(&[(1, 2)]);
        made.ack(1, token, Some(1));
        assert_eq!(made.found(), rules, "{kept:?}");
    }
    // A delivery that a crash has undone, so that the token before it is valid again.
    let mut made = HistoryBuilder::new();
    made.add(1, 0);
    let token = made.pop(&[(1, 1)]);
    made.later(100);
    made.pop(&[(1, 2)]);
    made.crash(Kept::Before(5_000));
    made.ack(1, token, Some(1));
    assert_eq!(made.found(), []);
    // In the same life it is a fault, even where a crash would have undone the ACK.
    let mut made = plain(Kept::Before(0));
    made.history.lives.clear();
    made.later(100);
    let token = made.pop(&[(1, 2)]);
    made.ack(1, token, Some(1));
    assert_eq!(made.found(), [Rule::Finished]);
    let mut made = HistoryBuilder::new();
    made.add(1, 0);
    made.take(1);
    made.take(1);
    assert_eq!(made.found(), [Rule::Finished], "taken with NOACK");
    let mut made = HistoryBuilder::new();
    made.add(1, 0);
    made.write(What::Del(Del {
        ids: vec!["j1".to_owned()],
        spares: false,
        answer: Some(1),
    }));
    made.take(1);
    assert_eq!(made.found(), [Rule::Finished], "deleted");
}

#[test]
fn stale_tokens() {
    let mut made = HistoryBuilder::new();
    made.add(1, 0);
    let first = made.pop(&[(1, 1)]);
    made.later(100);
    let second = made.pop(&[(1, 2)]);
    made.touch(1, first, 100);
    made.ack(1, second, Some(1));
    assert_eq!(made.found(), [Rule::Stale], "of the one before");
    let mut made = HistoryBuilder::new();
    made.add(1, 0);
    let token = made.pop(&[(1, 1)]);
    made.nack(1, token, Kind::Fail, 0);
    made.ack(1, token, Some(1));
    assert_eq!(made.found(), [Rule::Stale], "of a delivery given back");
}

#[test]
fn order() {
    type Change = fn(&mut Add);
    let changes: [(Change, &str); 3] = [
        (|add| add.priority = -1, "priority"),
        (|add| add.due = Due::At(START_MS - 10), "due"),
        (|add| add.due = Due::At(START_MS), "order of adding"),
    ];
    for (change, what) in changes {
        // The first job's due time is START_MS.
        for in_one_answer in [true, false] {
            let mut made = HistoryBuilder::new();
            made.add(1, 0);
            change(made.add(2, 0));
            let wrong = match what {
                "order of adding" => [(2, 1), (1, 1)],
                _ => [(1, 1), (2, 1)],
            };
            if in_one_answer {
                made.pop(&wrong);
            } else {
                made.pop(&wrong[..1]);
                made.pop(&wrong[1..]);
            }
            assert_eq!(made.found(), [Rule::Lost, Rule::Order], "{what}");
        }
    }
    // A job that was added later is not passed over.
    let mut made = HistoryBuilder::new();
    made.add(1, 0);
    made.pop(&[(1, 1)]);
    made.add(2, 0).priority = -1;
    made.pop(&[(2, 1)]);
    assert_eq!(made.found(), [Rule::Lost]);
}

#[test]
fn tokens() {
    for change in [0, 1] {
        let mut made = HistoryBuilder::new();
        made.add(1, 0);
        made.add(2, 0);
        let first = made.pop(&[(1, 1)]);
        made.pop(&[(2, 1)]);
        let What::Pop(pop) = &mut made.history.entries[3].what else {
            unreachable!("the fourth entry");
        };
        let lease = &mut pop.answer.as_mut().expect("an answer")[0].lease;
        lease.as_mut().expect("a lease").token = first - change;
        assert!(made.found().contains(&Rule::Tokens), "{change} less");
    }
}

/// A kick of a dead job explains why it starts afresh; a job that was never dead needs another reason.
#[test]
fn kicks() {
    for (limit, rules) in [(1, vec![]), (0, vec![Rule::Attempts])] {
        let mut made = HistoryBuilder::new();
        made.add(1, 0).max_attempts = limit;
        made.pop(&[(1, 1)]);
        made.later(100);
        made.write(What::Kick(Kick {
            ids: None,
            answer: Some(1),
        }));
        let token = made.pop(&[(1, 1)]);
        made.ack(1, token, Some(1));
        assert_eq!(made.found(), rules, "ATTEMPTS {limit}");
    }
}

/// A crash undoes a kick, and what came after it: the attempts continue from the last save.
#[test]
fn attempts_of_the_last_save() {
    for (attempts, rules) in [(3, vec![]), (4, vec![Rule::Attempts])] {
        let mut made = HistoryBuilder::new();
        made.add(1, 0).max_attempts = 5;
        made.pop(&[(1, 1)]);
        made.later(100);
        let token = made.pop(&[(1, 2)]);
        let save = Kept::Before(1000 * made.now_ms);
        made.nack(1, token, Kind::Fatal, 0);
        made.write(What::Kick(Kick {
            ids: Some(vec!["j1".to_owned()]),
            answer: Some(1),
        }));
        made.pop(&[(1, 1)]);
        made.crash(save);
        made.later(100);
        let token = made.pop(&[(1, attempts)]);
        made.ack(1, token, Some(1));
        assert_eq!(made.found(), rules, "the next is {attempts}");
    }
}

/// A crash undoes a second delivery, and the first one's token is valid again: what it does in the next life says
/// nothing about the second delivery.
#[test]
fn a_token_that_a_crash_brings_back() {
    type Use = fn(&mut HistoryBuilder, u64);
    let uses: [(&str, Use, u32); 2] = [
        (
            "given back",
            |made, token| made.nack(1, token, Kind::Silent, 0),
            1,
        ),
        ("touched", |made, token| _ = made.touch(1, token, 1000), 2),
    ];
    for (what, with, third) in uses {
        for (second, rules) in [(2, vec![]), (1, vec![Rule::Attempts])] {
            let mut made = HistoryBuilder::new();
            made.add(1, 0);
            let first = made.pop(&[(1, 1)]);
            let save = Kept::Before(1000 * made.now_ms);
            made.later(100);
            made.pop(&[(1, second)]);
            made.crash(save);
            with(&mut made, first);
            made.later(1000);
            let last = made.pop(&[(1, third)]);
            made.ack(1, last, Some(1));
            assert_eq!(made.found(), rules, "{what}, the second is {second}");
        }
    }
}
