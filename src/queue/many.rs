//! Many deliveries named by one command. The outcome is as if they were named one after the other, but the memory of
//! several is prefetched at once, and their leases change places together.

use super::claim::{Claim, Nack};
use super::clock::Now;
use super::effects::Effects;
use super::error::QueueError;
use super::job::State;
use super::state::jobs::Moving;
use super::state::store::Id;
use super::Queue;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Deliveries whose memory is prefetched at once. The first must still be in the cache when its turn comes.
const TOGETHER: usize = 32;
/// Leases that change their places together, at most.
const MOVED_TOGETHER: usize = if cfg!(debug_assertions) { 5 } else { 1024 };

impl Queue {
    /// [`Queue::touch`] for each; `report` gets the new deadlines, in order.
    pub fn touch_many<'i>(
        &mut self,
        deliveries: impl Iterator<Item = (&'i [u8], Claim)>,
        ttr_ms: Option<u64>,
        now: Now,
        out: &mut Effects,
        mut report: impl FnMut(Option<u64>),
    ) {
        let leases = Vec::with_capacity(deliveries.size_hint().0.min(MOVED_TOGETHER));
        let mut touching = Touching {
            queue: self,
            leases,
        };
        each_named(&mut touching, deliveries, |touching, id, claim| {
            let Touching { queue, leases } = touching;
            let Some((handle, lease)) = queue.touched(id, claim, ttr_ms, now, out) else {
                return report(None);
            };
            if let Some(lease_ms) = lease.changed_to {
                let to = (lease.deadline, lease_ms);
                leases.extend(queue.commit_touched(handle, to, now, out));
            }
            if leases.len() == MOVED_TOGETHER {
                queue.move_leases(leases);
            }
            report(Some(lease.deadline));
        });
    }

    /// [`Queue::nack`] for each, as `nack` says except for id and claim. An error comes before anything is done.
    pub fn nack_many<'i>(
        &mut self,
        deliveries: impl Iterator<Item = (&'i [u8], Claim)>,
        nack: &Nack<'_>,
        now: Now,
        out: &mut Effects,
    ) -> Result<Vec<Option<State>>, QueueError> {
        let asked = nack.asked(now)?;
        let mut states = Vec::with_capacity(deliveries.size_hint().0);
        each_named(self, deliveries, |queue, id, claim| {
            let nack = Nack { claim, ..*nack };
            states.push(queue.nack_named(id, &nack, asked, now, out));
        });
        Ok(states)
    }
}

/// Leases that have changed and are not at their new places yet. They are moved there when this is dropped, also if a
/// broken invariant stops the rest.
struct Touching<'q> {
    queue: &'q mut Queue,
    leases: Vec<Moving>,
}

impl Drop for Touching<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return self.queue.move_leases(&mut self.leases);
        }
        // It may panic again, which, during a panic, would abort the server.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            self.queue.move_leases(&mut self.leases)
        }));
    }
}

impl AsMut<Queue> for Touching<'_> {
    fn as_mut(&mut self) -> &mut Queue {
        self.queue
    }
}

impl AsMut<Queue> for Queue {
    fn as_mut(&mut self) -> &mut Queue {
        self
    }
}

fn each_named<'i, Q: AsMut<Queue>>(
    holder: &mut Q,
    mut deliveries: impl Iterator<Item = (&'i [u8], Claim)>,
    mut each: impl FnMut(&mut Q, Id<'i>, Claim),
) {
    let mut named = Vec::with_capacity(TOGETHER);
    loop {
        let queue: &Queue = holder.as_mut();
        let hashed = |(id, claim)| (queue.jobs().hashed(id), claim);
        named.clear();
        named.extend(deliveries.by_ref().take(TOGETHER).map(hashed));
        if named.is_empty() {
            return;
        }
        queue.jobs().prefetch_named(named.iter().map(|&(id, _)| id));
        for &(id, claim) in &named {
            each(holder, id, claim);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::add::Add;
    use crate::queue::claim::{NackKind, Touch};
    use crate::queue::clock::Mint;
    use crate::queue::codec::decode;
    use crate::queue::deliver::{LeaseLength, Pop};
    use crate::queue::HashSeed;

    struct Twin {
        queue: Queue,
        out: Effects,
    }

    /// Jobs with leases of several lengths, some of which have expired at 150; a few have a TTL.
    fn reserved(ids: &[Vec<u8>]) -> (Twin, Vec<Claim>) {
        let mut queue = Queue::new(&HashSeed::new([1, 2, 3, 4]));
        let (mut out, mut mint, now) = (Effects::default(), Mint::default(), Now::from_ms(100));
        let mut claims = Vec::new();
        for (n, id) in ids.iter().enumerate() {
            let add = Add {
                max_attempts: Some(n as u32 % 3),
                ttl_ms: (n % 11 == 0).then_some(20),
                ..Add::new(Some(id), b"x")
            };
            queue.add(&add, now, &mut mint, &mut out).unwrap();
            let pop = Pop {
                count: 1,
                id: Some(id),
                lease: LeaseLength::Asked(30 + n as u64 % 7 * 10),
                ..Pop::default()
            };
            let claim = |token| Claim::Token(token + u64::from(n % 9 == 0));
            let deliver = |job: super::super::deliver::Delivery<'_>| {
                claims.push(job.lease.map_or(Claim::Nothing, |lease| claim(lease.token)));
            };
            queue.pop(&pop, now, &mut mint, &mut out, deliver);
        }
        (Twin { queue, out }, claims)
    }

    fn digest(queue: &Queue) -> Vec<u8> {
        let mut all = Vec::new();
        queue.digest(&mut |bytes| all.extend_from_slice(bytes));
        all
    }

    /// Some twice, some unknown, in no order.
    fn named(ids: &[Vec<u8>], claims: &[Claim]) -> Vec<(Vec<u8>, Claim)> {
        let at = |n: usize| n * 67 % ids.len();
        let one = |n: usize| match n % 13 {
            0 => (b"nobody".to_vec(), Claim::Current),
            1 => (ids[at(n - 1)].clone(), claims[at(n - 1)]),
            _ => (ids[at(n)].clone(), claims[at(n)]),
        };
        (0..ids.len()).map(one).collect()
    }

    fn twins() -> ([Twin; 2], Vec<(Vec<u8>, Claim)>) {
        let ids: Vec<Vec<u8>> = (0..200).map(|n| format!("job {n}").into_bytes()).collect();
        let (one, claims) = reserved(&ids);
        let (many, _) = reserved(&ids);
        ([one, many], named(&ids, &claims))
    }

    fn assert_equal(one: &Twin, many: &Twin) {
        many.queue.check_invariants().unwrap();
        assert!(digest(&one.queue) == digest(&many.queue));
        let mut fold = Queue::new(&HashSeed::new([1, 2, 3, 4]));
        for effect in decode(many.out.bytes()) {
            fold.apply(&effect.unwrap()).unwrap();
        }
        assert!(digest(&fold) == digest(&many.queue), "as a replica has it");
    }

    #[test]
    fn touched_as_one_by_one() {
        for ttr_ms in [None, Some(40), Some(1000)] {
            let ([mut one, mut many], named) = twins();
            let now = Now::from_ms(150);
            let asked = || named.iter().map(|(id, claim)| (&id[..], *claim));
            let touch = Touch {
                ttr_ms,
                ..Touch::default()
            };
            let each = |(id, claim)| one.queue.touch(id, claim, touch, now, &mut one.out);
            let singly: Vec<_> = asked().map(each).collect();
            let mut reported = Vec::new();
            let hear = |deadline| reported.push(deadline);
            many.queue
                .touch_many(asked(), ttr_ms, now, &mut many.out, hear);
            assert_eq!(reported, singly);
            assert!(reported.iter().flatten().count() > 50);
            assert_equal(&one, &many);
        }
    }

    #[test]
    fn given_back_as_one_by_one() {
        for kind in [NackKind::Fail, NackKind::Silent, NackKind::Fatal] {
            let ([mut one, mut many], named) = twins();
            let now = Now::from_ms(150);
            let nack = |id, claim| Nack {
                id,
                claim,
                delay_ms: None,
                priority: None,
                kind,
                reason: None,
                awaits: None,
                default_backoff: &[],
            };
            let asked = || named.iter().map(|(id, claim)| (&id[..], *claim));
            let mut each = |(id, claim)| one.queue.nack(&nack(id, claim), now, &mut one.out);
            let singly: Vec<_> = asked().map(|it| each(it).unwrap()).collect();
            let all = nack(b"", Claim::Current);
            let replies = many.queue.nack_many(asked(), &all, now, &mut many.out);
            assert_eq!(replies.unwrap(), singly);
            assert_equal(&one, &many);
        }
    }
}
