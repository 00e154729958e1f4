//! As canaries.rs: histories in which groups were not served in turn, or their jobs not in order.

use super::builder::HistoryBuilder;
use super::check::Rule;
use super::{Bounds, Delivery, Kept, Kind, Taken, Turns, OWNER};

/// Jobs of these groups, added in this order.
fn made(turns: Turns, groups: &[Option<&str>]) -> HistoryBuilder {
    let mut made = HistoryBuilder::new();
    let bounds = Bounds {
        turns,
        ..Bounds::default()
    };
    made.history.bounds.insert("q".to_owned(), bounds);
    for (serial, group) in (1..).zip(groups) {
        made.add(serial, 0).group = group.map(str::to_owned);
    }
    made
}

/// All these jobs are delivered one by one, and acknowledged at once.
fn serve(made: &mut HistoryBuilder, serials: &[u64]) {
    for &serial in serials {
        let token = made.pop(&[(serial, 1)]);
        made.ack(serial, token, Some(1));
    }
}

const A: Option<&str> = Some("a");
const B: Option<&str> = Some("b");

#[test]
fn unfair() {
    for (order, rules) in [
        ([1, 3, 2, 4], vec![]),
        // The first group is served twice, though the other one has been waiting all the time.
        ([1, 2, 3, 4], vec![Rule::Unfair]),
        ([3, 4, 1, 2], vec![Rule::Unfair]),
        // The other group was served before the first of the two deliveries, and not since.
        ([3, 1, 2, 4], vec![Rule::Unfair]),
    ] {
        for other in [B, None] {
            let mut made = made(Turns::Fair, &[A, A, other, other]);
            serve(&mut made, &order);
            assert_eq!(made.found(), rules, "{order:?} beside {other:?}");
            // Nothing is known of the turns of another queue, and GROUPFIFO promises none.
            for turns in [Turns::Unknown, Turns::Fifo] {
                let bounds = made.history.bounds.get_mut("q");
                bounds.expect("bounds").turns = turns;
                assert_eq!(made.found(), [], "{order:?} under {turns:?}");
            }
        }
    }
}

/// A group with a WEIGHT may be served so often in a row, and the others may not.
#[test]
fn unfair_beyond_the_weight() {
    let owner = Some(OWNER);
    for (weight, order, rules) in [
        (2, [1, 2, 4, 3, 5], vec![]),
        (2, [1, 2, 3, 4, 5], vec![Rule::Unfair]),
        (3, [1, 2, 3, 4, 5], vec![]),
        (3, [4, 5, 1, 2, 3], vec![Rule::Unfair]),
    ] {
        let mut made = made(Turns::Fair, &[owner, owner, owner, B, B]);
        let bounds = made.history.bounds.get_mut("q");
        bounds.expect("bounds").own.weight = weight;
        serve(&mut made, &order);
        assert_eq!(made.found(), rules, "{order:?} with {weight}");
    }
}

#[test]
fn unfair_only_where_it_is_certain() {
    // The job came only after the first delivery, or was not due at the second one.
    let mut late = made(Turns::Fair, &[A, A]);
    serve(&mut late, &[1]);
    late.add(3, 0).group = B.map(str::to_owned);
    serve(&mut late, &[2, 3]);
    assert_eq!(late.found(), []);
    let mut delayed = made(Turns::Fair, &[A, A]);
    delayed.add(3, 50).group = B.map(str::to_owned);
    serve(&mut delayed, &[1, 2]);
    delayed.later(50);
    serve(&mut delayed, &[3]);
    assert_eq!(delayed.found(), []);
    // Out of turn (by id); after a POP whose answer is unknown; in another life.
    let mut by_id = made(Turns::Fair, &[A, A, B]);
    serve(&mut by_id, &[1]);
    let job = handed(&mut by_id, 2);
    by_id.answer_pop(Some(vec![job])).by_id = true;
    serve(&mut by_id, &[3]);
    assert!(!by_id.found().contains(&Rule::Unfair));
    let mut unanswered = made(Turns::Fair, &[A, A, B]);
    serve(&mut unanswered, &[1]);
    unanswered.answer_pop(None);
    serve(&mut unanswered, &[2, 3]);
    assert_eq!(unanswered.found(), []);
    let mut lives = made(Turns::Fair, &[A, A, B]);
    serve(&mut lives, &[1]);
    lives.crash(Kept::All);
    serve(&mut lives, &[2, 3]);
    assert_eq!(lives.found(), []);
}

/// The delivery that the next POP would make.
fn handed(made: &mut HistoryBuilder, serial: u64) -> Delivery {
    made.pop(&[(serial, 1)]);
    let entry = made.history.entries.pop().expect("a POP");
    match entry.what {
        super::What::Pop(pop) => pop.answer.expect("an answer").remove(0),
        _ => unreachable!("just written"),
    }
}

#[test]
fn out_of_group_order() {
    for (groups, rules) in [
        ([A, A], vec![Rule::GroupOrder]),
        ([A, B], vec![]),
        ([None, None], vec![Rule::Order]),
    ] {
        let mut made = made(Turns::Fifo, &groups);
        serve(&mut made, &[2, 1]);
        assert_eq!(made.found(), rules, "{groups:?}");
    }
    // Two jobs at a time.
    let mut both = made(Turns::Fifo, &[A, A]);
    let token = both.pop(&[(1, 1), (2, 1)]);
    both.ack(1, token, Some(1));
    both.ack(2, token + 1, Some(1));
    assert_eq!(both.found(), [Rule::GroupOrder]);
    // While the older job waits for its retry.
    let mut retried = made(Turns::Fifo, &[A, A]);
    let token = retried.pop(&[(1, 1)]);
    retried.nack(1, token, Kind::Fail, 20);
    serve(&mut retried, &[2]);
    retried.later(20);
    let token = retried.pop(&[(1, 2)]);
    retried.ack(1, token, Some(1));
    assert_eq!(retried.found(), [Rule::GroupOrder]);
    // By priority, which does not count with GROUPFIFO.
    let mut urgent = made(Turns::Fifo, &[A]);
    let add = urgent.add(2, 0);
    (add.group, add.priority) = (A.map(str::to_owned), -5);
    serve(&mut urgent, &[1, 2]);
    assert_eq!(urgent.found(), []);
}

#[test]
fn out_of_group_order_only_where_it_is_certain() {
    let mut dead = made(Turns::Fifo, &[A, A]);
    let token = dead.pop(&[(1, 1)]);
    dead.nack(1, token, Kind::Fatal, 0);
    serve(&mut dead, &[2]);
    dead.dead(1, 1);
    assert_eq!(dead.found(), []);
    // Not a fault if the older job may not have been added, or may have been acknowledged.
    let mut unknown = made(Turns::Fifo, &[A, A]);
    if let super::What::Add(add) = &mut unknown.history.entries[0].what {
        add.answer = None::<Taken>;
    }
    serve(&mut unknown, &[2]);
    assert_eq!(unknown.found(), []);
    let mut acked = made(Turns::Fifo, &[A, A]);
    let token = acked.pop(&[(1, 1)]);
    acked.ack(1, token, None);
    serve(&mut acked, &[2]);
    assert_eq!(acked.found(), []);
}
