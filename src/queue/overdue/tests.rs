use super::*;
use crate::queue::add::{Add, Condition, Recur};
use crate::queue::claim::{Claim, Nack, NackKind};
use crate::queue::clock::{Mint, When};
use crate::queue::codec::decode;
use crate::queue::deliver::{LeaseLength, Pop};
use crate::queue::effects::Effects;
use crate::queue::explain::{Code, Reason};
use crate::queue::recurring::rule::{Pattern, Rule};
use crate::queue::settings::SettingsChange;
use crate::queue::stats::Totals;
use crate::queue::view::Peek;
use crate::queue::HashSeed;

const START: u64 = 1_000_000;

/// A queue to which things happen, and time passes over it in which nothing is carried out.
struct Stage {
    queue: Queue,
    mint: Mint,
    dice: u64,
    now_ms: u64,
}

impl Stage {
    fn new(seed: u64, dead_len: Option<u64>) -> Self {
        let mut queue = Queue::new(&HashSeed::new([1, 2, 3, 4]));
        let change = SettingsChange {
            dead_len,
            ..SettingsChange::default()
        };
        let (now, out) = (Now::from_ms(START), &mut Effects::default());
        queue.configure_with(&change, now, out).unwrap();
        Stage {
            queue,
            mint: Mint::new(),
            dice: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            now_ms: START,
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.dice = self
            .dice
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(1);
        (self.dice >> 33) % n
    }

    fn now(&self) -> Now {
        Now::from_ms(self.now_ms)
    }

    fn add(&mut self, with_ttl: bool) {
        let id = self.below(300).to_string();
        let ttl_ms = (with_ttl && self.below(2) == 0).then(|| 1 + self.below(400));
        let rule = Rule {
            pattern: Pattern::Every { ms: 5_000 },
            until: 0,
            times: 0,
            grace_ms: self.below(2) * (1 + self.below(300)),
            jitter_ms: 0,
            ttl_ms: ttl_ms.unwrap_or(0),
        };
        let recurs = self.below(9) == 0;
        let group = format!("group-{}", self.below(3));
        let add = Add {
            when: When::Delay(self.below(2) * self.below(300)),
            condition: match self.below(4) {
                0 if !recurs => Condition::Next,
                _ => Condition::Replace,
            },
            priority: [0, 0, 0, -3, 1][self.below(5) as usize],
            ttl_ms,
            max_attempts: Some([0, 1, 1, 2][self.below(4) as usize]),
            group: (self.below(2) == 0).then_some(group.as_bytes()),
            recur: recurs.then_some(Recur {
                rule,
                is_timed: true,
            }),
            ..Add::new(Some(id.as_bytes()), b"payload")
        };
        let (now, out) = (self.now(), &mut Effects::default());
        let _ = self.queue.add(&add, now, &mut self.mint, out);
    }

    fn deliver(&mut self) {
        let pop = Pop {
            count: 1 + self.below(20),
            lease: LeaseLength::Asked(1 + self.below(400)),
            ..Pop::default()
        };
        let (now, out, mut ids) = (self.now(), &mut Effects::default(), Vec::new());
        let collect = |job: crate::queue::deliver::Delivery<'_>| ids.push(job.id.to_vec());
        self.queue.pop(&pop, now, &mut self.mint, out, collect);
        for id in ids {
            let nack = Nack {
                id: &id,
                claim: Claim::Current,
                delay_ms: Some(self.below(300)),
                priority: None,
                kind: [NackKind::Fail, NackKind::Fatal][self.below(2) as usize],
                reason: None,
                awaits: None,
                default_backoff: &[],
            };
            let touched = [(&id[..], Claim::Current)];
            match self.below(4) {
                0 => drop(self.queue.nack(&nack, now, out)),
                1 => {
                    let ttr_ms = Some(1 + self.below(400));
                    self.queue
                        .touch_many(touched.into_iter(), ttr_ms, now, out, |_| ());
                }
                _ => {}
            }
        }
    }

    fn happen(&mut self, with_ttl: bool) {
        for _ in 0..1 + self.below(60) {
            match self.below(5) {
                0 => self.deliver(),
                1 => self.now_ms += self.below(20),
                _ => self.add(with_ttl),
            }
        }
        if self.below(4) == 0 {
            let state = State::ALL[self.below(4) as usize];
            let (now, out) = (self.now(), &mut Effects::default());
            self.queue.purge(Some(state), now, out);
        }
    }

    /// The queue as it stands, and as it is once the timer has carried out all that is overdue.
    fn twins(&self) -> [Queue; 2] {
        [false, true].map(|expired| {
            let (mut queue, out) = (self.queue.copied(), &mut Effects::default());
            match expired {
                true => drop(queue.expire_overdue(self.now(), usize::MAX, out)),
                false => queue.expire_odd(self.now(), out),
            }
            queue
        })
    }
}

fn lens(queue: &Queue, now: Now) -> [usize; 5] {
    let [delayed, ready, reserved, dead, ..] =
        State::ALL.map(|state| queue.at(now).len(Some(state)));
    [delayed, ready, reserved, dead, queue.at(now).len(None)]
}

fn digest(queue: &Queue) -> Vec<u8> {
    let mut all = Vec::new();
    queue.digest(&mut |bytes| all.extend_from_slice(bytes));
    all
}

/// All ids of a state by PEEK, and by SCAN, sorted.
fn shown(queue: &Queue, state: State, now: Now) -> [Vec<Vec<u8>>; 2] {
    let (mut peeked, mut scanned, mut cursor) = (Vec::new(), Vec::new(), 0);
    let peek = Peek {
        state,
        from: 0,
        to: u64::MAX,
        count: u64::MAX,
        prefix: usize::MAX,
        is_bounded: false,
    };
    // Occurrences die out of turn, which shows where others die at the same instant.
    let died_out_of_turn = |id: &[u8]| state == State::Dead && id.contains(&b'@');
    queue.at(now).peek(&peek, |job| {
        peeked.extend((!died_out_of_turn(job.id)).then(|| job.id.to_vec()));
    });
    loop {
        cursor = queue.at(now).scan(cursor, |job| {
            scanned.extend((job.state == state).then(|| job.id.to_vec()));
        });
        if cursor == 0 {
            scanned.sort_unstable();
            return [peeked, scanned];
        }
    }
}

/// Name, waiting and reserved of all groups, sorted.
fn groups(queue: &Queue, at: At) -> Vec<(Vec<u8>, usize, usize)> {
    let (groups, mut all, mut cursor) = (queue.at(at).groups(), Vec::new(), 0);
    loop {
        cursor = groups.scan(cursor, false, |it| {
            all.push((it.name.to_vec(), it.waiting, it.reserved));
        });
        if cursor == 0 {
            break;
        }
    }
    all.sort_unstable();
    for (name, waiting, reserved) in &all {
        assert_eq!(queue.at(at).group_len(name), waiting + reserved);
    }
    assert!(queue.has_leftovers() || groups.len() == all.len());
    all
}

fn each_standstill(dead_len: Option<u64>, with_ttl: bool, mut check: impl FnMut(&Stage)) {
    let mut overdue = 0;
    for seed in 0..60 {
        let mut stage = Stage::new(seed, dead_len);
        for _ in 0..12 {
            stage.happen(with_ttl);
            stage.now_ms += stage.below(300);
            overdue += stage.queue.at(stage.now()).overdue().leases();
            check(&stage);
        }
    }
    assert!(overdue > 1_000, "{overdue}");
}

#[test]
fn what_is_past_is_counted_as_what_it_has_become() {
    for (dead_len, with_ttl) in [(None, true), (None, false), (Some(5), false)] {
        each_standstill(dead_len, with_ttl, |stage| {
            let now = stage.now();
            stage.queue.check_invariants().unwrap();
            let [still, expired] = stage.twins();
            assert_eq!(lens(&still, now), lens(&expired, now));
            let (seen, there) = (still.at(now).summary(), expired.at(now).summary());
            assert_eq!(seen.next_due, there.next_due);
            assert_eq!(seen.ready > 0, seen.oldest_ready_ms.is_some());
            if !with_ttl {
                assert_eq!(seen.oldest_ready_ms, there.oldest_ready_ms);
            }
        });
    }
}

#[test]
fn groups_hold_what_they_will_hold() {
    let mut differ = 0;
    each_standstill(None, true, |stage| {
        let [still, expired] = stage.twins();
        let (now, as_shown) = (stage.now().into(), At::as_shown(stage.now()));
        assert_eq!(groups(&still, now), groups(&expired, now));
        // As the timer left them.
        differ += usize::from(groups(&still, as_shown) != groups(&still, now));
    });
    assert!(differ > 100, "{differ}");
}

/// What DQ.EXPLAIN says of the ready jobs before a job.
fn behind(queue: &mut Queue, id: &[u8], now: Now) -> Option<Reason> {
    let all = queue.explain_job(id, now.into()).unwrap();
    all.into_iter().find(|it| it.code == Code::Behind)
}

#[test]
fn all_looks_agree() {
    each_standstill(None, true, |stage| {
        let [mut still, mut expired] = stage.twins();
        for state in State::ALL {
            let now = stage.now();
            let (seen, there) = (shown(&still, state, now), shown(&expired, state, now));
            assert_eq!(seen, there, "{state:?}");
            for id in &seen[1] {
                let [got, will_be] = [&still, &expired]
                    .map(|it| it.at(now).get(id).map(|it| (it.state, it.failure)));
                assert_eq!(got, will_be);
                assert_eq!(got.map(|it| it.0), Some(state));
                assert_eq!(behind(&mut still, id, now), behind(&mut expired, id, now));
            }
            assert_eq!(seen[1].len(), still.at(now).len(Some(state)));
        }
    });
}

#[test]
fn a_purge_takes_what_it_would_have_taken_later() {
    let states = || State::ALL.map(Some).into_iter().chain([None]);
    for (dead_len, with_ttl) in [(None, true), (None, false), (Some(5), false)] {
        each_standstill(dead_len, with_ttl, |stage| {
            for state in states() {
                let now = stage.now();
                let [mut still, mut expired] = stage.twins();
                let mut replica = still.copied();
                let (mut out, mut others) = (Effects::default(), Effects::default());
                let count = still.purge_as_it_stands(state, now, &mut out);
                assert_eq!(count, expired.purge(state, now, &mut others), "{state:?}");
                still.check_invariants().unwrap();
                for effect in decode(out.bytes()).filter(|_| count > 0) {
                    replica.apply(&effect.unwrap()).unwrap();
                }
                assert!(digest(&still) == digest(&replica), "as a replica has it");
                out.clear();
                still.expire_overdue(now, usize::MAX, &mut out);
                assert_eq!(lens(&still, now), lens(&expired, now), "{state:?}");
                let all = |queue: &Queue| State::ALL.map(|it| shown(queue, it, now)[1].clone());
                let totals = |totals: &Totals| totals.named().map(|(_, total)| total);
                while still.work_off(100) == 0 {}
                still.check_invariants().unwrap();
                // Which of the dead stay is said by the order in which occurrences die, too.
                if dead_len.is_none() {
                    assert_eq!(all(&still), all(&expired), "{state:?}");
                    assert_eq!(
                        totals(still.totals()),
                        totals(expired.totals()),
                        "{state:?}"
                    );
                }
            }
        });
    }
}

#[test]
fn a_replica_waits_for_its_masters_word() {
    each_standstill(None, true, |stage| {
        let at = At::as_shown(stage.now());
        let [delayed, ready, reserved, dead] = stage.queue.at(at).lens();
        let queue = &stage.queue;
        assert_eq!(delayed + ready, queue.jobs().schedule().len());
        assert_eq!(
            [reserved, dead],
            [queue.jobs().reserved().len(), queue.jobs().dead().len()]
        );
    });
}
