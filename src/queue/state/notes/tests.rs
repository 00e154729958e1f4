use super::*;
use crate::queue::add::{Add, Condition, Recur};
use crate::queue::attr::{Attr, Attrs};
use crate::queue::claim::{Claim, Nack, NackKind};
use crate::queue::clock::{Mint, Now, When};
use crate::queue::codec::decode;
use crate::queue::deliver::Pop;
use crate::queue::error::QueueError;
use crate::queue::job::{State, STEPS_MAX};
use crate::queue::note::{Notes, PROGRESS_MAX};
use crate::queue::recurring::rule::{Pattern, Rule};
use crate::queue::state::defrag::tests::digest;
use crate::queue::tagged::{push, CRITICAL, IN_DONE, UNKNOWN_BYTES_MAX, UNKNOWN_MAX};
use crate::queue::HashSeed;
use crate::storage::relocate::tests::Everything;
use std::collections::BTreeMap;

fn seed() -> HashSeed {
    HashSeed::new([1, 2, 3, 4])
}

fn step<'a>(name: &'a [u8], value: &'a [u8]) -> Note<'a> {
    Note::Step { name, value }
}

fn unknown(tag: u32, value: &[u8]) -> Note<'_> {
    Note::Unknown { tag, value }
}

fn noted<'a>(id: &'a [u8], note: Note<'a>) -> Effect<'a> {
    Effect::Noted { id, note }
}

/// Written, and read by another queue.
fn restored(queue: &Queue) -> Queue {
    let mut copy = Queue::new(&seed());
    copy.begin_restore();
    queue.snapshot(&mut |chunk| {
        decode(chunk).for_each(|effect| copy.apply(&effect.unwrap()).unwrap());
    });
    copy.end_restore().unwrap();
    copy
}

/// What one job has, naively.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    progress: Option<Vec<u8>>,
    steps: Vec<(Vec<u8>, Vec<u8>)>,
    unknown: BTreeMap<u32, Vec<u8>>,
}

impl Known {
    fn of(notes: Notes<'_>) -> Self {
        Known {
            progress: notes.progress().map(Into::into),
            steps: (notes.steps())
                .map(|(name, value)| (name.to_vec(), value.to_vec()))
                .collect(),
            unknown: (notes.iter())
                .filter_map(|note| match note {
                    Note::Unknown { tag, value } => Some((tag, value.to_vec())),
                    _ => None,
                })
                .collect(),
        }
    }

    /// What leaves its place loses what lasts as long, and what is kicked its run's.
    fn moved(&mut self, is_kick: bool) {
        self.unknown
            .retain(|tag, _| tag & 3 > 1 || (tag & 3 == 1 && !is_kick));
        if is_kick {
            self.progress = None;
        }
    }

    fn bytes(&self) -> usize {
        let steps = self.steps.iter();
        steps.map(|(name, value)| name.len() + value.len()).sum()
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) % end
    }
}

/// A queue, and what its jobs should have.
struct Twins {
    queue: Queue,
    known: BTreeMap<Vec<u8>, Known>,
    random: Random,
    now: Now,
    mint: Mint,
    out: Effects,
}

impl Twins {
    fn id(&mut self) -> Vec<u8> {
        format!("job-{}", self.random.below(150)).into_bytes()
    }

    fn act(&mut self) {
        let id = self.id();
        let now = self.now;
        match self.random.below(100) {
            0..30 => self.add(&id),
            30..70 => self.note(&id),
            70..76 => {
                let pop = Pop {
                    count: 1,
                    id: Some(&id),
                    ..Pop::default()
                };
                let Twins {
                    queue, mint, out, ..
                } = self;
                if queue.pop(&pop, now, mint, out, |_| ()) > 0 {
                    self.known.get_mut(&id).unwrap().moved(false);
                }
            }
            76..80 => {
                if self
                    .queue
                    .ack(&id, Claim::Current, None, now, &mut self.out)
                {
                    self.known.remove(&id);
                }
            }
            80..86 => self.die(&id),
            86..90 => {
                if self.queue.kick(&id, now, &mut self.out) {
                    self.known.get_mut(&id).unwrap().moved(true);
                }
            }
            90..96 => {
                if self.queue.delete(&id, false, now, &mut self.out) {
                    self.known.remove(&id);
                }
            }
            96 => self.purge(),
            97 => self.queue = restored(&self.queue),
            98 => self.queue = self.queue.copied(),
            _ => {
                self.queue.work_off(20);
                self.queue.relocate(0, &mut Everything::new(usize::MAX));
            }
        }
    }

    fn add(&mut self, id: &[u8]) {
        let payload = vec![b'p'; self.random.below(300) as usize];
        let add = Add {
            condition: Condition::Replace,
            when: When::Delay(self.random.below(3)),
            ..Add::new(Some(id), &payload)
        };
        let Twins {
            queue, mint, out, ..
        } = self;
        queue.add(&add, self.now, mint, out).unwrap();
        self.known.insert(id.to_vec(), Known::default());
    }

    fn note(&mut self, id: &[u8]) {
        let value = vec![b'v'; [0, 1, 20, 200, 3000][self.random.below(5) as usize]];
        let name = format!("step-{}", self.random.below(12)).into_bytes();
        let kind = self.random.below(5);
        let tag = self.random.below(4) as u32 * 3 * 16 + 0x100 + self.random.below(3) as u32;
        let note = match kind {
            0 => Note::Progress {
                text: &value[..value.len().min(PROGRESS_MAX)],
            },
            1 => unknown(tag, &value[..value.len().min(70)]),
            _ => step(&name, &value),
        };
        let applied = self.queue.apply(&noted(id, note));
        let Some(known) = self.known.get_mut(id) else {
            return assert!(applied.is_err());
        };
        applied.unwrap();
        match kind {
            0 => {
                known.progress =
                    Known::of(self.queue.jobs.notes(self.queue.jobs.expect(id).unwrap())).progress
            }
            1 => {
                let value = value[..value.len().min(70)].to_vec();
                known.unknown.insert(tag, value);
            }
            _ => match known.steps.iter_mut().find(|(other, _)| *other == name) {
                Some(step) => step.1 = value,
                None => known.steps.push((name, value)),
            },
        }
    }

    fn die(&mut self, id: &[u8]) {
        let nack = Nack {
            id,
            claim: Claim::Current,
            delay_ms: None,
            priority: None,
            kind: NackKind::Fatal,
            reason: None,
            awaits: None,
            default_backoff: &[],
        };
        let id = id.to_vec();
        if let Some(State::Dead) = self.queue.nack(&nack, self.now, &mut self.out).unwrap() {
            self.known.get_mut(&id).unwrap().moved(false);
        }
    }

    fn purge(&mut self) {
        let state = State::ALL[self.random.below(4) as usize];
        let ids: Vec<Vec<u8>> = self.known.keys().cloned().collect();
        for id in ids {
            if self.queue.at(self.now).get(&id).unwrap().state == state {
                self.known.remove(&id);
            }
        }
        self.queue.purge(Some(state), self.now, &mut self.out);
    }

    fn check(&mut self) {
        self.queue.check_invariants().unwrap();
        let mut bytes = 0;
        for (id, known) in &self.known {
            let job = self.queue.at(self.now).get(id).unwrap();
            assert_eq!(Known::of(job.notes), *known);
            bytes += id.len() + job.payload.len() + known.bytes();
        }
        if !self.queue.jobs.has_purged() {
            assert_eq!(self.queue.bytes(), bytes as u64);
        }
        let before = digest(&self.queue);
        assert!(digest(&restored(&self.queue)) == before);
        assert!(digest(&self.queue.copied()) == before);
        if let Some(asleep) = self.queue.asleep() {
            assert!(digest(&asleep.awake(&seed()).unwrap()) == before);
            let (figures, _) = asleep.figures(self.now);
            assert_eq!(figures.bytes, self.queue.bytes());
        }
    }
}

#[test]
fn agree_with_a_map_under_random_traffic() {
    for seeded in 1..=12u64 {
        let mut twins = Twins {
            queue: Queue::new(&seed()),
            known: BTreeMap::new(),
            random: Random(seeded.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            now: Now::from_ms(1_000_000),
            mint: Mint::new(),
            out: Effects::default(),
        };
        for round in 0..2000 {
            twins.act();
            twins.out.clear();
            if round % 50 == 0 {
                twins.now = Now::from_ms(twins.now.ms() + 1);
                twins.check();
            }
        }
        twins.check();
    }
}

#[test]
fn scattered_notes_are_gathered_and_all_are_freed() {
    let (now, mut mint, mut out) = (Now::from_ms(1_000_000), Mint::new(), Effects::default());
    let mut queue = Queue::new(&seed());
    for number in 0..8_000u64 {
        let id = number.to_string();
        let add = Add::new(Some(id.as_bytes()), b"payload");
        queue.add(&add, now, &mut mint, &mut out).unwrap();
        let lens = [[0, 90], [180, 270], [360, 90], [1100, 20], [700, 400]];
        for (name, len) in [&b"one"[..], b"two"]
            .into_iter()
            .zip(lens[number as usize % 5])
        {
            let value = vec![b'v'; len];
            let effect = noted(id.as_bytes(), step(name, &value));
            queue.apply(&effect).unwrap();
        }
    }
    let full = queue.memory_bytes();
    for number in 0..8_000u64 {
        if !(number * 7919 % 8_000).is_multiple_of(20) {
            queue.delete(number.to_string().as_bytes(), false, now, &mut out);
        }
    }
    assert!(queue.has_leftovers());
    let (before, scattered) = (digest(&queue), queue.memory_bytes());
    while queue.has_leftovers() {
        queue.work_off(50);
        queue.check_invariants().unwrap();
    }
    assert!(digest(&queue) == before);
    let gathered = queue.memory_bytes();
    assert!(
        gathered * 3 < scattered * 2,
        "{full}, {scattered}, {gathered}"
    );
    let mut garbage = crate::queue::state::parts::Garbage::from(queue);
    let steps = (0..10_000).take_while(|_| garbage.free_some(10)).count();
    assert!((50..10_000).contains(&steps), "{steps}");
}

fn rule() -> Recur<'static> {
    Recur {
        rule: Rule {
            pattern: Pattern::Every { ms: 5_000 },
            until: 0,
            times: 0,
            grace_ms: 0,
            jitter_ms: 0,
            ttl_ms: 0,
        },
        is_timed: false,
    }
}

/// An occurrence takes its notes along when it stays as a dead job; each has the KEEP that the latest ADD said.
#[test]
fn occurrences_end_with_their_notes() {
    let (mut now, mut mint, mut out) = (Now::from_ms(1_000_000), Mint::new(), Effects::default());
    let mut queue = Queue::new(&seed());
    let add = Add {
        condition: Condition::Replace,
        recur: Some(rule()),
        said: Attrs::NONE.with_number(Attr::Keep, 7),
        ..Add::new(Some(b"id"), b"payload")
    };
    queue.add(&add, now, &mut mint, &mut out).unwrap();
    let progress = Note::Progress { text: b"half" };
    for note in [step(b"one", b"1"), progress] {
        queue.apply(&noted(b"id", note)).unwrap();
    }
    let shown = move |queue: &Queue, id: &[u8]| {
        let job = queue.at(now).get(id).unwrap();
        (job.terms.rest.keep_ms(), Known::of(job.notes))
    };
    let all = Known {
        progress: Some(b"half".into()),
        steps: vec![(b"one".into(), b"1".into())],
        ..Known::default()
    };
    assert_eq!(shown(&queue, b"id"), (Some(7), all.clone()));
    let without = Add {
        said: Attrs::NONE,
        ..add.clone()
    };
    queue.add(&without, now, &mut mint, &mut out).unwrap();
    assert_eq!(shown(&queue, b"id"), (None, all.clone()));
    queue.add(&add, now, &mut mint, &mut out).unwrap();
    now = Now::from_ms(1_005_000);
    let pop = Pop {
        count: 1,
        ..Pop::default()
    };
    assert_eq!(queue.pop(&pop, now, &mut mint, &mut out, |_| ()), 1);
    let nack = Nack {
        id: b"id",
        claim: Claim::Current,
        delay_ms: None,
        priority: None,
        kind: NackKind::Fatal,
        reason: None,
        awaits: None,
        default_backoff: &[],
    };
    queue.nack(&nack, now, &mut out).unwrap();
    assert_eq!(shown(&queue, b"id@1005000"), (Some(7), all));
    assert_eq!(shown(&queue, b"id"), (Some(7), Known::default()));
    queue.check_invariants().unwrap();
    assert!(digest(&restored(&queue)) == digest(&queue));
}

/// A successor has a KEEP of its own, and goes or comes with it.
#[test]
fn successors_are_noted_apart() {
    let (now, mut mint, mut out) = (Now::from_ms(1_000_000), Mint::new(), Effects::default());
    let mut queue = Queue::new(&seed());
    let add = Add {
        said: Attrs::NONE.with_number(Attr::Keep, 7),
        ..Add::new(Some(b"id"), b"payload")
    };
    queue.add(&add, now, &mut mint, &mut out).unwrap();
    let pop = Pop {
        count: 1,
        ..Pop::default()
    };
    queue.pop(&pop, now, &mut mint, &mut out, |_| ());
    let next = Add {
        condition: Condition::Next,
        said: Attrs::NONE.with_number(Attr::Keep, 8),
        ..add
    };
    queue.add(&next, now, &mut mint, &mut out).unwrap();
    assert_eq!(
        queue.at(now).get(b"id").unwrap().terms.rest.keep_ms(),
        Some(7)
    );
    let mut copy = restored(&queue);
    assert!(digest(&copy) == digest(&queue));
    for queue in [&mut queue, &mut copy] {
        assert!(queue.ack(b"id", Claim::Current, None, now, &mut out));
        assert_eq!(
            queue.at(now).get(b"id").unwrap().terms.rest.keep_ms(),
            Some(8)
        );
        queue.check_invariants().unwrap();
    }
}

#[test]
fn what_is_forged_is_refused() {
    let (now, mut mint, mut out) = (Now::from_ms(1_000_000), Mint::new(), Effects::default());
    let mut queue = Queue::new(&seed());
    let add = Add::new(Some(b"id"), b"payload");
    queue.add(&add, now, &mut mint, &mut out).unwrap();
    queue.apply(&noted(b"id", step(b"there", b""))).unwrap();
    let before = digest(&queue);
    let long = [b'x'; 1025];
    let forged = [
        noted(b"nobody", step(b"n", b"")),
        noted(b"", step(b"n", b"")),
        noted(&long, step(b"n", b"")),
        noted(b"id", step(b"", b"")),
        noted(b"id", step(&long[..257], b"")),
        noted(b"id", Note::Progress { text: &long }),
        noted(b"id", unknown(0x102 | CRITICAL, b"")),
        noted(b"id", unknown(0x103, b"an attribute's life")),
        noted(b"id", unknown(u32::MAX, b"")),
        noted(b"id", unknown(0x102, &long)),
        noted(b"id", Note::Awaits { name: b"" }),
        noted(b"id", Note::Awaits { name: b"there" }),
    ];
    for effect in &forged {
        assert!(queue.apply(effect).is_err(), "{effect:?}");
    }
    // Encoded otherwise: a step that is cut, that ends before its value does, without a name, and 2^32 of one.
    for bytes in [
        &b"\x01\x0d\x02id\x22\x03\x01n\x05"[..],
        b"\x01\x0d\x02id\x22\x06\x01n\x01v\x00\x00",
        b"\x01\x0d\x02id\x22\x02\x00\x00",
        b"\x01\x0d\x02id\x22\x00",
        b"\x01\x0d\x02id\x22\xff\xff\xff\xff\x0f\x01n\x00",
        b"\x01\x0d\x02id\xff\xff\xff\xff\x7f\x00",
    ] {
        let mut effects = decode(bytes);
        assert!(effects.any(|effect| effect.and_then(|it| queue.apply(&it)).is_err()));
    }
    assert!(digest(&queue) == before);
    for number in 1..STEPS_MAX {
        let name = number.to_string();
        queue
            .apply(&noted(b"id", step(name.as_bytes(), b"")))
            .unwrap();
    }
    assert!(queue.apply(&noted(b"id", step(b"more", b""))).is_err());
    queue.apply(&noted(b"id", step(b"1", b"again"))).unwrap();
    queue.check_invariants().unwrap();
    // Rows behind notes; notes before the rows of their job.
    let mut chunks = Vec::new();
    queue.snapshot(&mut |chunk| chunks.push(chunk.to_vec()));
    let mut copy = Queue::new(&seed());
    copy.begin_restore();
    let all: Vec<_> = chunks.iter().flat_map(|chunk| decode(chunk)).collect();
    let fate: Result<Vec<()>, _> = all
        .into_iter()
        .rev()
        .map(|it| copy.apply(&it.unwrap()))
        .collect();
    assert!(fate.is_err());
    let rows = decode(&chunks[0]).map(Result::unwrap);
    for effect in rows.filter(|effect| matches!(effect, Effect::Rows { .. })) {
        assert!(queue.apply(&effect).is_err());
    }
    assert!(digest(&queue) != before);
}

/// Beside the bytes of name and value.
#[test]
fn steps_take_little_memory() {
    let (now, mut mint, mut out) = (Now::from_ms(1_000_000), Mint::new(), Effects::default());
    for (jobs, steps) in [(20_000u64, 1u64), (5_000, 4), (1_000, 40)] {
        let mut queue = Queue::new(&seed());
        for number in 0..jobs {
            let id = number.to_string();
            let add = Add::new(Some(id.as_bytes()), b"payload");
            queue.add(&add, now, &mut mint, &mut out).unwrap();
        }
        let (before, content) = (queue.memory_bytes(), queue.bytes());
        for number in 0..jobs * steps {
            let id = (number % jobs).to_string();
            let name = format!("step-{}", number / jobs);
            let value = vec![b'v'; 56 + (number % 16) as usize];
            let effect = noted(id.as_bytes(), step(name.as_bytes(), &value));
            queue.apply(&effect).unwrap();
        }
        let beside = queue.memory_bytes() - before - (queue.bytes() - content) as usize;
        let each = beside as f64 / (jobs * steps) as f64;
        println!("{steps} steps a job: {each:.1} bytes each beside name and value");
        assert!(each <= 26.0, "{each}");
    }
}

/// What a newer version has said of a job goes on by what its tag says.
#[test]
fn what_is_not_known_is_carried_on() {
    let (now, mut mint, mut out) = (Now::from_ms(1_000_000), Mint::new(), Effects::default());
    let mut queue = Queue::new(&seed());
    let add = Add {
        said: Attrs::NONE.with_number(Attr::Keep, 50_000),
        recur: Some(rule()),
        ..Add::new(Some(b"id"), b"payload")
    };
    queue.add(&add, now, &mut mint, &mut out).unwrap();
    let plain = Add { recur: None, ..add };
    let plain = Add {
        id: Some(b"done"),
        ..plain
    };
    queue.add(&plain, now, &mut mint, &mut out).unwrap();
    for id in [&b"id"[..], b"done"] {
        for tag in [0x100, 0x101, 0x102, 0x111 | IN_DONE, 0x112 | IN_DONE] {
            queue.apply(&noted(id, unknown(tag, b"x"))).unwrap();
        }
    }
    let tags = |queue: &Queue, id: &[u8], now| -> Vec<u32> {
        let job = queue.at(now).get(id).unwrap();
        job.notes.iter().map(|note| note.tag()).collect()
    };
    assert!(digest(&restored(&queue)) == digest(&queue));
    let now = Now::from_ms(1_005_000);
    let pop = Pop {
        count: 2,
        ..Pop::default()
    };
    queue.pop(&pop, now, &mut mint, &mut out, |_| ());
    for id in [&b"id"[..], b"done"] {
        assert_eq!(tags(&queue, id, now), [0x101, 0x102, 0x115, 0x116]);
    }
    for id in [&b"id"[..], b"done"] {
        assert!(queue.ack(id, Claim::Current, None, now, &mut out));
    }
    let occurrence = b"id@1005000";
    for id in [&b"done"[..], occurrence] {
        assert_eq!(tags(&queue, id, now), [0x115, 0x116]);
    }
    assert_eq!(tags(&queue, b"id", now), []);
    assert!(digest(&restored(&queue)) == digest(&queue));
    assert!(queue.kick(b"done", now, &mut out));
    assert_eq!(tags(&queue, b"done", now), [0x116]);
    queue.check_invariants().unwrap();
}

#[test]
fn what_is_not_known_has_bounds() {
    let (now, mut mint, mut out) = (Now::from_ms(1_000_000), Mint::new(), Effects::default());
    let mut queue = Queue::new(&seed());
    let add = Add::new(Some(b"id"), b"payload");
    queue.add(&add, now, &mut mint, &mut out).unwrap();
    let tag = |number: usize| 0x102 + 16 * number as u32;
    for number in 0..UNKNOWN_MAX {
        queue
            .apply(&noted(b"id", unknown(tag(number), b"x")))
            .unwrap();
    }
    let more = unknown(tag(UNKNOWN_MAX), b"");
    assert!(queue.apply(&noted(b"id", more)).is_err());
    let long = [b'x'; UNKNOWN_BYTES_MAX];
    let most = &long[..UNKNOWN_BYTES_MAX - UNKNOWN_MAX + 1];
    queue.apply(&noted(b"id", unknown(tag(3), most))).unwrap();
    queue.apply(&noted(b"id", unknown(tag(4), b""))).unwrap();
    assert!(queue.apply(&noted(b"id", unknown(tag(4), b"xx"))).is_err());
    queue.check_invariants().unwrap();
    // In the string of a done job.
    let string = |all: &[(u32, &[u8])]| {
        let mut string = Vec::new();
        all.iter()
            .for_each(|(tag, value)| push(*tag, value, &mut string));
        string
    };
    let progress = Note::Progress { text: b"" }.tag();
    let (first, second) = (tag(0) | IN_DONE, tag(1) | IN_DONE);
    let fits = string(&[(progress, b"half"), (first, b"x"), (second, b"")]);
    assert_eq!(Notes::of(&fits).check_done(), Ok(()));
    let critical = string(&[(first | CRITICAL, b"x")]);
    assert_eq!(Notes::of(&critical).check_done(), Err(QueueError::Newer));
    let many: Vec<(u32, &[u8])> = (0..=UNKNOWN_MAX)
        .map(|at| (tag(at) | IN_DONE, &b""[..]))
        .collect();
    for forged in [
        string(&[(second, b"x"), (first, b"x")]),
        string(&[(first, b"x"), (first, b"x")]),
        string(&[(tag(0), b"not of a done job")]),
        string(&[(first | 3, b"an attribute's life")]),
        string(&[(Note::Awaits { name: b"" }.tag(), b"n")]),
        string(&[(step(b"n", b"").tag(), b"\x01n\x00")]),
        string(&[(progress, &[b'p'; 1025])]),
        string(&[(first, &long), (second, b"x")]),
        string(&many),
        fits[..fits.len() - 1].to_vec(),
        b"\xff\xff\xff\xff\x7f\x00".to_vec(),
        [&fits[..], b"\x86\x02\xff\xff\xff\xff\x0fx"].concat(),
    ] {
        assert!(Notes::of(&forged).check_done().is_err(), "{forged:?}");
    }
}

/// A step is found and written without looking at the others, however many there are.
#[test]
fn many_long_steps_lie_beside() {
    let (now, mut mint, mut out) = (Now::from_ms(1_000_000), Mint::new(), Effects::default());
    let mut queue = Queue::new(&seed());
    let add = Add::new(Some(b"id"), b"payload");
    queue.add(&add, now, &mut mint, &mut out).unwrap();
    let names: Vec<String> = (0..STEPS_MAX).map(|number| number.to_string()).collect();
    for name in &names {
        let value = [name.as_bytes(), &[b'v'; 600]].concat();
        let effect = noted(b"id", step(name.as_bytes(), &value));
        queue.apply(&effect).unwrap();
    }
    queue.apply(&noted(b"id", step(b"500", b"anew"))).unwrap();
    queue
        .apply(&noted(
            b"id",
            Note::Progress {
                text: &[b'p'; 1024],
            },
        ))
        .unwrap();
    queue.check_invariants().unwrap();
    let notes = queue.at(now).get(b"id").unwrap().notes;
    assert_eq!(
        (notes.steps_len(), notes.beside_len()),
        (STEPS_MAX, STEPS_MAX)
    );
    assert!(notes
        .steps()
        .map(|(name, _)| name)
        .eq(names.iter().map(|it| it.as_bytes())));
    let handle = queue.jobs.expect(b"id").unwrap();
    assert_eq!(queue.jobs.step(handle, b"500"), Some(&b"anew"[..]));
    assert_eq!(queue.jobs.step(handle, b"1000"), None);
    assert!(Notes::of(&notes.steps_as_string())
        .steps()
        .eq(notes.steps()));
    assert!(digest(&restored(&queue)) == digest(&queue));
    assert!(queue.delete(b"id", false, now, &mut out));
    assert_eq!(queue.bytes(), 0);
    queue.check_invariants().unwrap();
}
