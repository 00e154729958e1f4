use crate::queue::add::Add;
use crate::queue::after::{For, Link, OnDead};
use crate::queue::budget::FOLLOWED;
use crate::queue::claim::{Claim, Nack, NackKind};
use crate::queue::clock::{Mint, Now, When};
use crate::queue::codec::decode;
use crate::queue::deliver::Pop;
use crate::queue::effect::{Effect, Forgotten};
use crate::queue::effects::Effects;
use crate::queue::error::QueueError;
use crate::queue::job::State;
use crate::queue::state::purged::MANY;
use crate::queue::{HashSeed, Queue};
use crate::storage::few::Few;
use serde_bytes::Bytes;

struct Scene {
    queue: Queue,
    mint: Mint,
    out: Effects,
    now: Now,
}

impl Scene {
    fn new() -> Self {
        Scene {
            queue: Queue::new(&HashSeed::new([1, 2, 3, 4])),
            mint: Mint::new(),
            out: Effects::default(),
            now: Now::from_ms(1_000_000),
        }
    }

    fn add_with(&mut self, id: &str, add: Add<'_>) -> Result<bool, QueueError> {
        let add = Add {
            id: Some(id.as_bytes()),
            ..add
        };
        let added = self
            .queue
            .add(&add, self.now, &mut self.mint, &mut self.out)?
            .is_some();
        self.end();
        Ok(added)
    }

    fn add(&mut self, id: &str, after: &[&str], on_dead: OnDead) -> Result<bool, QueueError> {
        let ids: Vec<&Bytes> = after.iter().map(|id| Bytes::new(id.as_bytes())).collect();
        let add = Add {
            after: (!ids.is_empty()).then_some(For::Jobs(ids.into(), on_dead)),
            ..Add::new(None, b"payload")
        };
        self.add_with(id, add)
    }

    fn end(&mut self) {
        self.queue.follow_up(FOLLOWED, self.now, &mut self.out);
        self.out.clear();
        self.queue.check_invariants().unwrap();
    }

    fn pop(&mut self) -> Option<String> {
        let pop = Pop {
            count: 1,
            ..Pop::default()
        };
        let mut id = None;
        self.queue
            .pop(&pop, self.now, &mut self.mint, &mut self.out, |job| {
                id = Some(String::from_utf8_lossy(job.id).into_owned());
            });
        self.end();
        id
    }

    fn ack(&mut self, id: &str) {
        let acked = self
            .queue
            .ack(id.as_bytes(), Claim::Current, None, self.now, &mut self.out);
        assert!(acked, "{id}");
        self.end();
    }

    fn fail(&mut self, id: &str) {
        let nack = Nack {
            id: id.as_bytes(),
            claim: Claim::Current,
            delay_ms: None,
            priority: None,
            kind: NackKind::Fatal,
            reason: Some(b"broken"),
            awaits: None,
            default_backoff: &[],
        };
        let state = self.queue.nack(&nack, self.now, &mut self.out).unwrap();
        assert_eq!(state, Some(State::Dead));
        self.end();
    }

    fn del(&mut self, id: &str) {
        assert!(self
            .queue
            .delete(id.as_bytes(), false, self.now, &mut self.out));
        self.end();
    }

    fn state(&self, id: &str) -> Option<State> {
        self.queue
            .at(self.now)
            .get(id.as_bytes())
            .map(|job| job.state)
    }

    fn reason(&self, id: &str) -> String {
        let job = self.queue.at(self.now).get(id.as_bytes()).unwrap();
        let reason = job.failure.and_then(|failure| failure.reason);
        String::from_utf8_lossy(reason.unwrap_or_default()).into_owned()
    }

    fn results(&self, id: &str) -> Vec<String> {
        let job = self.queue.at(self.now).get(id.as_bytes()).unwrap();
        let results = job.waits.map_or(Vec::new(), |waits| waits.results);
        let shown = results.iter().map(|ended| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let outcome = ended.outcome.map_or("nil", |outcome| outcome.name());
            let value = ended.value.map_or("nil".into(), text);
            format!("{} {outcome} {value}", text(ended.id))
        });
        shown.collect()
    }
}

#[test]
fn a_chain_and_a_join() {
    let mut scene = Scene::new();
    scene.add("a", &[], OnDead::Wait).unwrap();
    scene.add("b", &["a"], OnDead::Wait).unwrap();
    scene.add("c", &["a", "b"], OnDead::Run).unwrap();
    assert_eq!(scene.state("c"), Some(State::Blocked));
    assert_eq!(scene.pop().as_deref(), Some("a"));
    assert_eq!(scene.pop(), None);
    scene.ack("a");
    assert_eq!(scene.state("b"), Some(State::Ready));
    assert_eq!(scene.pop().as_deref(), Some("b"));
    scene.fail("b");
    assert_eq!(scene.state("c"), Some(State::Ready));
    assert_eq!(scene.results("c"), ["a done nil", "b dead broken"]);
    assert_eq!(scene.pop().as_deref(), Some("c"));
    scene.ack("c");
    scene.del("b");
    assert!(scene.queue.parts.flows.is_none());
}

#[test]
fn deaths_and_deletions() {
    let mut scene = Scene::new();
    scene.add("a", &[], OnDead::Wait).unwrap();
    for (id, on_dead) in [("w", OnDead::Wait), ("r", OnDead::Run), ("d", OnDead::Die)] {
        scene.add(id, &["a"], on_dead).unwrap();
    }
    scene.add("e", &["d"], OnDead::Die).unwrap();
    scene.pop();
    scene.fail("a");
    assert_eq!(scene.state("w"), Some(State::Blocked));
    assert_eq!(scene.state("r"), Some(State::Ready));
    assert_eq!(scene.state("d"), Some(State::Dead));
    assert_eq!(scene.reason("d"), "after a: dead");
    assert_eq!(scene.reason("e"), "after d: dead");
    scene.del("a");
    assert_eq!(scene.reason("w"), "after a: deleted");
    // A dead job counts as ended at the ADD.
    scene.add("x", &["w"], OnDead::Die).unwrap();
    assert_eq!(scene.reason("x"), "after w: dead");
    scene.add("y", &["w"], OnDead::Run).unwrap();
    assert_eq!(scene.state("y"), Some(State::Ready));
    assert_eq!(scene.results("y"), ["w dead after a: deleted"]);
}

#[test]
fn what_is_refused() {
    let mut scene = Scene::new();
    scene.add("a", &[], OnDead::Wait).unwrap();
    let refused = |result: Result<bool, QueueError>| result.unwrap_err();
    assert_eq!(
        refused(scene.add("b", &["nobody"], OnDead::Wait)),
        QueueError::AfterUnknown
    );
    assert_eq!(
        refused(scene.add("b", &["a", "a"], OnDead::Wait)),
        QueueError::AfterTwice
    );
    assert_eq!(
        refused(scene.add("b", &["b"], OnDead::Wait)),
        QueueError::AfterItself
    );
    scene.add("b", &["a"], OnDead::Wait).unwrap();
    scene.add("c", &["b"], OnDead::Wait).unwrap();
    let replacing = |after: &'static [u8]| Add {
        condition: crate::queue::add::Condition::Replace,
        after: Some(For::Jobs(Few::One(Bytes::new(after)), OnDead::Wait)),
        ..Add::new(None, b"")
    };
    assert_eq!(
        refused(scene.add_with("a", replacing(b"c"))),
        QueueError::AfterItself
    );
    assert_eq!(scene.state("a"), Some(State::Ready));
}

#[test]
fn groups() {
    let mut scene = Scene::new();
    let member = Add {
        group: Some(b"g"),
        ..Add::new(None, b"")
    };
    let behind = Add {
        after: Some(For::Group(b"g")),
        when: When::Delay(50),
        ..Add::new(None, b"")
    };
    scene.add_with("first", behind.clone()).unwrap();
    assert_eq!(scene.state("first"), Some(State::Delayed));
    for id in ["a", "b"] {
        scene.add_with(id, member.clone()).unwrap();
    }
    scene.add_with("z", behind).unwrap();
    assert_eq!(scene.state("z"), Some(State::Blocked));
    scene.pop();
    scene.pop();
    scene.ack("a");
    assert_eq!(scene.state("z"), Some(State::Blocked));
    scene.fail("b");
    assert_eq!(scene.state("z"), Some(State::Delayed));
    assert!(scene.results("z").is_empty());
}

/// Restores a snapshot of the queue, with other links; without links where `forge` gives none.
fn restored(
    queue: &Queue,
    forge: impl Fn(&[u8]) -> Option<Vec<Link<'static>>>,
) -> Result<(), QueueError> {
    let mut restored = Queue::new(&HashSeed::new([1, 2, 3, 4]));
    restored.begin_restore();
    carried_out(&mut restored, queue, forge)?;
    restored.end_restore()?;
    restored.check_invariants().unwrap();
    Ok(())
}

fn carried_out(
    restored: &mut Queue,
    queue: &Queue,
    forge: impl Fn(&[u8]) -> Option<Vec<Link<'static>>>,
) -> Result<(), QueueError> {
    let mut chunks = Vec::new();
    queue.snapshot(&mut |chunk| chunks.push(chunk.to_vec()));
    for effect in chunks.iter().flat_map(|chunk| decode(chunk)) {
        match effect? {
            Effect::Links {
                id,
                on_dead,
                is_timed,
                of_group,
                latest,
                ..
            } => {
                if let Some(links) = forge(id) {
                    restored.apply(&Effect::Links {
                        id,
                        on_dead,
                        is_timed,
                        of_group,
                        latest,
                        links,
                    })?;
                }
            }
            effect => restored.apply(&effect)?,
        }
    }
    Ok(())
}

/// Effects that come one after the other, as an AOF has them, have no end at which they are checked. What nothing can
/// unblock is found by the next effect that is of no snapshot, by the timer, or by a copy's timer.
#[test]
fn no_job_stays_blocked_by_forged_effects() {
    let mut scene = Scene::new();
    scene.add("a", &[], OnDead::Wait).unwrap();
    scene.add("b", &["a"], OnDead::Wait).unwrap();
    scene.add("c", &["b"], OnDead::Wait).unwrap();
    type Forge = fn(&[u8]) -> Option<Vec<Link<'static>>>;
    let (circle, none): (Forge, Forge) = (
        |id| Some(vec![Link::Held(if id == b"b" { b"c" } else { b"b" })]),
        |_| None,
    );
    let first_alone: Forge = |id| (id == b"c").then(|| vec![Link::Held(b"b")]);
    for (forge, freed) in [(circle, 2), (none, 2), (first_alone, 1)] {
        let mut queue = Queue::new(&HashSeed::new([1, 2, 3, 4]));
        carried_out(&mut queue, &scene.queue, forge).unwrap();
        assert_eq!(queue.jobs.blocked_len(), 2);
        let (mut copy, now, out) = (queue.copied(), scene.now, &mut Effects::default());
        assert!(copy.next_event().is_some_and(|at| at <= now.ms()));
        let mut replica = queue.copied();
        copy.expire_overdue(now, usize::MAX, out);
        assert_eq!(copy.jobs.blocked_len(), 2 - freed);
        for effect in decode(out.bytes()) {
            replica.apply(&effect.unwrap()).unwrap();
        }
        queue.apply(&Effect::Forgot(Forgotten::Until(0))).unwrap();
        for queue in [&queue, &copy, &replica] {
            assert_eq!(queue.jobs.blocked_len(), 2 - freed);
            queue.check_invariants().unwrap();
        }
    }
}

#[test]
fn forged_links_are_refused() {
    let mut scene = Scene::new();
    scene.add("a", &[], OnDead::Wait).unwrap();
    scene.add("b", &["a"], OnDead::Wait).unwrap();
    scene.add("c", &["a"], OnDead::Wait).unwrap();
    let queue = &scene.queue;
    let all = |links: &[Link<'static>]| restored(queue, |_| Some(links.to_vec()));
    assert_eq!(all(&[Link::Held(b"a")]), Ok(()));
    for links in [
        &[][..],
        &[Link::Held(b"nobody")],
        &[Link::Held(b"b")],
        &[Link::Held(b"a"), Link::Held(b"a")],
        &[Link::Over(0)],
        &[Link::Pending(u64::MAX), Link::Held(b"a")],
        &[Link::Group(b"none")],
        &[Link::Held(b"a"), Link::Group(b"none")],
    ] {
        assert!(all(links).is_err(), "{links:?}");
    }
    let circle = restored(queue, |id| match id {
        b"b" => Some(vec![Link::Held(b"c")]),
        _ => Some(vec![Link::Held(b"b")]),
    });
    assert!(circle.is_err());
    assert!(restored(queue, |_| None).is_err(), "blocked after nothing");
}

/// What the timer carries out for waiting jobs counts as its steps: it takes no longer than other work.
#[test]
fn the_timer_follows_within_its_steps() {
    const STEPS: usize = 100;
    let mut scene = Scene::new();
    scene.add("first", &[], OnDead::Wait).unwrap();
    for number in 0..500 {
        scene
            .add(&format!("{number}"), &["first"], OnDead::Wait)
            .unwrap();
    }
    scene.pop();
    scene.ack("first");
    let mut blocked = scene.queue.jobs.blocked_len();
    assert!(0 < blocked && blocked < 500, "a command does a part of it");
    while blocked > 0 {
        let left = scene.queue.expire_overdue(scene.now, STEPS, &mut scene.out);
        let left = scene.queue.follow_up(left, scene.now, &mut scene.out);
        let freed = blocked - scene.queue.jobs.blocked_len();
        assert!(0 < freed && freed <= STEPS, "{freed} in {STEPS} steps");
        assert!(left == 0 || scene.queue.jobs.blocked_len() == 0);
        blocked -= freed;
        scene.out.clear();
    }
    scene.queue.check_invariants().unwrap();
}

/// The number by which the purged jobs waited no longer leads to the job.
#[test]
fn after_a_purge_of_all_that_waited_one_more_waits_for_the_same() {
    let mut scene = Scene::new();
    scene.add("first", &[], OnDead::Wait).unwrap();
    for number in 0..=MANY {
        let id = format!("purged {number}");
        scene.add(&id, &["first"], OnDead::Wait).unwrap();
    }
    let purged = scene
        .queue
        .purge(Some(State::Blocked), scene.now, &mut scene.out);
    assert_eq!(purged, MANY as u64 + 1);
    assert!(scene.queue.jobs.has_purged());
    scene.add("next", &["first"], OnDead::Wait).unwrap();
    assert_eq!(scene.state("next"), Some(State::Blocked));
    assert_eq!(scene.pop().as_deref(), Some("first"));
    scene.ack("first");
    assert_eq!(scene.state("next"), Some(State::Ready));
}

/// A purge of so many leaves their groups to a pass.
#[test]
fn a_large_purge_frees_what_waited_for_groups() {
    let mut scene = Scene::new();
    let groups = ["large", "single", "kept"];
    for number in 0..=MANY {
        let group = groups[usize::from(number == 0)].as_bytes();
        let add = Add {
            group: Some(group),
            ..Add::new(None, b"")
        };
        scene.add_with(&format!("{number}"), add).unwrap();
    }
    let kept = Add {
        group: Some(b"kept"),
        when: When::Delay(50),
        ..Add::new(None, b"")
    };
    scene.add_with("kept", kept).unwrap();
    for group in groups {
        let behind = Add {
            after: Some(For::Group(group.as_bytes())),
            ..Add::new(None, b"")
        };
        scene.add_with(&format!("behind {group}"), behind).unwrap();
    }
    let ready = Some(State::Ready);
    scene.queue.purge(ready, scene.now, &mut scene.out);
    assert!(scene.queue.parts.is_passing());
    // As it is saved before anything follows.
    assert_eq!(scene.queue.copied().jobs.blocked_len(), 3);
    scene.end();
    assert_eq!(scene.state("behind large"), ready);
    assert_eq!(scene.state("behind single"), ready);
    assert_eq!(scene.state("behind kept"), Some(State::Blocked));
}

/// After the longest id, the reason is cut: what waiting clients are told is what is kept.
#[test]
fn a_reason_is_told_as_it_is_kept() {
    let mut scene = Scene::new();
    let long = "l".repeat(1024);
    scene.add(&long, &[], OnDead::Wait).unwrap();
    scene.add("waits", &[&long], OnDead::Die).unwrap();
    scene.pop();
    scene.queue.listen(Box::new(|| vec![b"waits".to_vec()]));
    scene.fail(&long);
    let departures = scene.queue.take_departures().unwrap().noted();
    let end = departures.into_iter().find(|it| it.id == b"waits");
    let told = end.and_then(|it| it.end).and_then(|end| end.value);
    let kept = scene.reason("waits");
    assert_eq!(kept.len(), 1024);
    assert_eq!(told.as_deref(), Some(kept.as_bytes()));
}
