use super::*;
use crate::queue::add::Add;
use crate::queue::attr::Attrs;
use crate::queue::claim::{Claim, Nack, NackKind};
use crate::queue::clock::{Mint, Now, When};
use crate::queue::codec::decode;
use crate::queue::deliver::{LeaseLength, Pop};
use crate::queue::effect::Effect;
use crate::queue::effects::Effects;
use crate::queue::job::{Life, Place, State, Terms};
use crate::queue::settings::{Rate, SettingsChange};
use crate::queue::state::rows::Rows;
use crate::queue::state::store::NewJob;
use crate::queue::{HashSeed, Queue};

mod rounds;

const STATES: [State; 3] = [State::Delayed, State::Ready, State::Reserved];
const GROUPS: u64 = 60;

/// A queue whose passes over the groups end late, and its replica, where each pass ends at once. Nothing may show the
/// difference, except that a delivery may pass over a group that the old settings held back.
struct Stage {
    late: Queue,
    soon: Queue,
    mint: Mint,
    dice: u64,
    now_ms: u64,
    /// Deliveries that were decided in the middle of a pass.
    in_doubt: usize,
    /// Other deliveries.
    right: usize,
}

impl Stage {
    fn new(seed: u64) -> Self {
        let queue = || Queue::new(&HashSeed::new([1, 2, 3, 4]));
        Stage {
            late: queue(),
            soon: queue(),
            mint: Mint::new(),
            dice: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            now_ms: 1_000_000,
            in_doubt: 0,
            right: 0,
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.dice = self
            .dice
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(1);
        (self.dice >> 33) % n
    }

    fn change<T>(&mut self, change: impl FnOnce(&mut Self, Now, &mut Effects) -> T) -> T {
        let (now, mut out) = (Now::from_ms(self.now_ms), Effects::default());
        let result = change(self, now, &mut out);
        if out.is_empty() {
            return result;
        }
        for effect in decode(out.bytes()) {
            self.soon.apply(&effect.unwrap()).unwrap();
            self.soon.work_off(usize::MAX);
        }
        result
    }

    fn add(&mut self) {
        let (id, name) = (self.below(2000).to_string(), self.below(GROUPS + 1));
        let name = name.min(name * name / GROUPS);
        let (priority, wait) = (self.below(6) as i32 / 5, self.below(3) * self.below(4000));
        self.change(|it, now, out| {
            let (id, name) = (id.as_bytes(), name.to_string());
            let add = Add {
                when: When::Delay(wait),
                priority,
                group: (name != "0").then_some(name.as_bytes()),
                ..Add::new(Some(id), b"payload")
            };
            it.late.add(&add, now, &mut it.mint, out).unwrap();
        });
    }

    /// A job is only delivered if it may be: so says the replica, too, where no pass is under way.
    fn pop(&mut self, noack: bool) {
        let now = Now::from_ms(self.now_ms);
        let pop = Pop {
            count: 1,
            noack,
            lease: LeaseLength::Asked(1_000_000_000),
            ..Pop::default()
        };
        let (mut ids, was_passing) = (Vec::new(), self.late.parts.is_passing());
        let expected = self.soon.serving().next(None, noack, now);
        let expected = expected.map(|it| self.soon.jobs.job(it).id().to_vec());
        let popped = self.change(|it, now, out| {
            let count = it.late.pop(&pop, now, &mut it.mint, out, |job| {
                ids.push(job.id.to_vec());
            });
            for id in &ids {
                let handle = it.soon.jobs.find(it.soon.jobs.hashed(id)).unwrap();
                assert!(it.soon.jobs.is_ready(handle, now));
                assert!(it.soon.serving().may_be_served(handle, now, noack));
            }
            count
        });
        if was_passing {
            self.in_doubt += 1;
        } else if self.late.parts.group_rates.is_none() {
            // A replica has no windows.
            assert_eq!(ids.first(), expected.as_ref());
            self.right += 1;
        }
        if popped > 0 && !noack && self.below(2) == 0 {
            let kind = [NackKind::Fail, NackKind::Fatal, NackKind::Silent][self.below(3) as usize];
            let nack = Nack {
                id: &ids[0],
                claim: Claim::Current,
                delay_ms: (kind == NackKind::Fail).then_some(500),
                priority: None,
                kind,
                reason: None,
                awaits: None,
                default_backoff: &[],
            };
            self.change(|it, now, out| it.late.nack(&nack, now, out).unwrap());
        }
    }

    fn configure(&mut self) {
        let mut change = SettingsChange::default();
        match self.below(3) {
            0 => change.group_max = Some(self.below(3)),
            1 => change.group_fifo = Some(self.below(2) == 0),
            _ => {
                change.group_rate = Some((self.below(2) == 0).then_some(Rate {
                    count: 1,
                    window_ms: 3000,
                }));
            }
        }
        self.change(|it, now, out| it.late.configure_with(&change, now, out).unwrap());
    }

    fn check(&self) {
        let digest = |queue: &Queue| {
            let mut all: Vec<u8> = Vec::new();
            queue.digest(&mut |bytes| all.extend(bytes));
            all
        };
        let groups = |queue: &Queue| {
            let (mut all, mut cursor) = (Vec::new(), 0);
            loop {
                let show = |_, it: GroupView<'_>| {
                    let is_held = it.holds_any();
                    all.extend(is_held.then(|| (it.name.to_vec(), it.waiting, it.reserved)));
                };
                cursor = queue
                    .parts
                    .groups()
                    .map_or(0, |it| it.scan(cursor, false, show));
                if cursor == 0 {
                    all.sort_unstable();
                    return all;
                }
            }
        };
        for queue in [&self.late, &self.soon] {
            queue.check_invariants().unwrap();
        }
        assert!(digest(&self.late) == digest(&self.soon));
        let len = |queue: &Queue| queue.parts.groups().map_or(0, |it| it.len(&queue.jobs));
        let listed = groups(&self.late);
        assert_eq!(listed, groups(&self.soon));
        assert_eq!(listed.len(), len(&self.soon));
        assert!(self.late.parts.is_passing() || len(&self.late) == listed.len());
        let copy = self.late.copied();
        copy.check_invariants().unwrap();
        assert!(digest(&copy) == digest(&self.late));
    }
}

#[test]
fn it_is_all_the_same_when_groups_are_looked_at() {
    let (mut in_doubt, mut right) = (0, 0);
    for seed in 1..=6 {
        let mut stage = Stage::new(seed);
        for _ in 0..120 {
            for _ in 0..stage.below(60) {
                match stage.below(12) {
                    0..=6 => stage.add(),
                    7 | 8 => stage.pop(false),
                    9 => stage.pop(true),
                    10 => stage.now_ms += stage.below(100),
                    _ => {
                        let steps = stage.below(40) as usize;
                        stage.late.work_off(steps);
                    }
                }
            }
            match stage.below(5) {
                0..=2 => stage.configure(),
                _ => {
                    let state = STATES[stage.below(3) as usize];
                    stage.change(|it, now, out| it.late.purge(Some(state), now, out));
                }
            }
            stage.check();
            stage.now_ms += stage.below(2000);
        }
        stage.late.work_off(usize::MAX);
        assert!(!stage.late.has_leftovers());
        stage.check();
        assert_eq!(stage.late.jobs.len(), stage.soon.jobs.len());
        in_doubt += stage.in_doubt;
        right += stage.right;
    }
    assert!(
        in_doubt > 100 && right > 100,
        "{in_doubt} in the middle of a pass, {right} others"
    );
}

/// As RATE: no group waits for longer than a window because the clock was set back.
#[test]
fn the_window_of_a_group_follows_the_clock_back() {
    let mut queue = Queue::new(&HashSeed::new([1, 2, 3, 4]));
    let (mut mint, mut out) = (Mint::new(), Effects::default());
    let (before, after) = (90_000_000, 1_000_000);
    let rate = Rate {
        count: 1,
        window_ms: 1000,
    };
    let change = SettingsChange {
        group_rate: Some(Some(rate)),
        ..SettingsChange::default()
    };
    let at = Now::from_ms;
    queue.configure_with(&change, at(before), &mut out).unwrap();
    for id in [b"a", b"b"] {
        let add = Add {
            when: When::At(0),
            group: Some(b"acme"),
            ..Add::new(Some(id), b"payload")
        };
        queue.add(&add, at(before), &mut mint, &mut out).unwrap();
    }
    let pop = Pop {
        count: 1,
        ..Pop::default()
    };
    let mut popped = |queue: &mut Queue, ms| queue.pop(&pop, at(ms), &mut mint, &mut out, |_| ());
    assert_eq!(popped(&mut queue, before), 1);
    assert_eq!(popped(&mut queue, before + 999), 0);
    assert_eq!(popped(&mut queue, after), 0);
    assert_eq!(
        queue.serving().next_delivery(at(after), false),
        Some(after + 1000)
    );
    queue.check_invariants().unwrap();
    assert_eq!(popped(&mut queue, after + 999), 0);
    assert_eq!(popped(&mut queue, after + 1000), 1);
}

/// Whether a snapshot is accepted whose jobs have these groups and turns: (place, group, turn).
fn is_taken(jobs: &[(Place, Option<&str>, Option<u64>)]) -> bool {
    let terms = Terms {
        priority: 0,
        ttr_ms: 1000,
        max_attempts: 0,
        rest: Attrs::NONE,
    };
    let ids: Vec<String> = (0..jobs.len()).map(|number| number.to_string()).collect();
    let mut rows = Rows::default();
    for (id, &(place, group, turn)) in ids.iter().zip(jobs) {
        let life = Life {
            token: u64::from(place == Place::Reserved),
            ..Life::default()
        };
        rows.push(&NewJob {
            seq: 1 + id.parse::<u64>().unwrap(),
            place,
            life,
            group: group.map(str::as_bytes),
            turn,
            ..NewJob::scheduled(id.as_bytes(), b"payload", (1, 0), &terms)
        });
    }
    let mut queue = Queue::new(&HashSeed::new([1, 2, 3, 4]));
    queue.begin_restore();
    let rows = rows.bytes();
    let taken = queue.apply(&Effect::Rows { rows }).is_ok() && queue.end_restore().is_ok();
    if taken {
        queue.check_invariants().unwrap();
    }
    taken
}

#[test]
fn turns_that_contradict_each_other_are_refused() {
    use Place::{Dead, Reserved, Scheduled};
    let (a, b) = (Some("a"), Some("b"));
    assert!(is_taken(&[(Scheduled, a, Some(2)), (Reserved, b, Some(1))]));
    assert!(is_taken(&[
        (Scheduled, a, Some(2)),
        (Scheduled, None, Some(1))
    ]));
    assert!(is_taken(&[(Scheduled, a, Some(2)), (Dead, b, None)]));
    let long = "x".repeat(257);
    let refused: [&[_]; 11] = [
        // The same turn, or a turn that stands twice or not at all.
        &[(Scheduled, a, Some(2)), (Reserved, b, Some(2))],
        &[(Scheduled, a, Some(2)), (Scheduled, None, Some(2))],
        &[(Scheduled, a, Some(2)), (Reserved, a, Some(2))],
        &[(Scheduled, a, Some(2)), (Reserved, a, Some(3))],
        &[(Scheduled, a, None)],
        &[(Scheduled, a, Some(2)), (Scheduled, None, None)],
        // A turn of jobs that take no turns, or one that no queue comes to.
        &[(Scheduled, None, Some(1))],
        &[(Dead, a, Some(1))],
        &[(Scheduled, a, Some(0))],
        &[(Scheduled, a, Some(TURN_MAX + 1))],
        &[(Scheduled, Some(&long), Some(1))],
    ];
    for jobs in refused {
        assert!(!is_taken(jobs), "{jobs:?}");
    }
}
