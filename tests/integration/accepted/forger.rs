//! Payloads that no server has dumped: nearly valid ones, with one or two numbers near their bounds.

use dq::queue::attr::{Attr, Attrs, Kind};
use dq::queue::codec::encode;
use dq::queue::effect::{Change, DoneJob, Effect, Forgotten, OfDone, Purge, FOREVER};
use dq::queue::history::History;
use dq::queue::job::{Failure, Life, Place, Terms, INSTANT_MAX, SEQ_MAX, TOKEN_MAX};
use dq::queue::note::Note;
use dq::queue::recurring::rule::{Occurrence, Pattern, Rule};
use dq::queue::settings::{DoneLimits, GroupLimits, Rate, Settings};
use dq::queue::state::NewJob;

use crate::forged::damaged;
use crate::payloads::{encoded, wrapped, written, TERMS};
use crate::scene::{now_ms, Dice};

const IDS: [&[u8]; 6] = [b"a", b"b", b"c", b"d", b"e", &[0xff; 1024]];
const HOURS: u64 = 36_000_000;
/// How far ahead the clock behind a client's payload may be.
const AHEAD_MS: u64 = 1 << 40;

pub struct Forger {
    pub seed: u64,
    dice: Dice,
    now_ms: u64,
    /// A dump, for its head and foot.
    real: Vec<u8>,
}

impl Forger {
    pub fn new(seed: u64, real: Vec<u8>) -> Forger {
        Forger {
            seed,
            dice: Dice::new(seed),
            now_ms: now_ms(),
            real,
        }
    }

    /// A payload, and what it was made of.
    pub fn payload(&mut self) -> (Vec<u8>, String) {
        let effects = self.effects();
        let mut bytes = encoded(&effects);
        let mut made_of = format!("{effects:?}");
        if self.dice.below(2) == 0 {
            let rows = self.rows();
            made_of += &format!(", rows: {rows:?}");
            encode(&written(&rows), &mut bytes);
        }
        for _ in 0..self.dice.below(6).saturating_sub(3) {
            let noted = self.noted();
            made_of += &format!(", {noted:?}");
            encode(&noted, &mut bytes);
        }
        let is_damaged = self.dice.below(5) == 0;
        if is_damaged {
            bytes = damaged(&bytes, &bytes, &mut self.dice);
        }
        made_of += &format!(", damaged: {is_damaged}");
        (wrapped(&self.real, &bytes), made_of)
    }

    fn effects(&mut self) -> Vec<Effect<'static>> {
        let mut effects = vec![Effect::Floors {
            seq: self.order(),
            death: self.order(),
            token: self.token(),
        }];
        if self.dice.below(3) == 0 {
            effects.push(Effect::Configured(self.settings()));
        }
        if self.dice.below(6) == 0 {
            let until = if self.dice.below(2) == 0 {
                FOREVER
            } else {
                self.instant()
            };
            effects.push(Effect::Paused { until });
        }
        for number in 0..self.dice.below(6) {
            let job = self.job(number);
            effects.push(written(&[job]));
        }
        for id in [&b"x"[..], b"y", b"a", &[0xff; 1024]] {
            if self.dice.below(6) == 0 {
                effects.push(Effect::Done(OfDone::Stored(self.done_job(id))));
            }
        }
        for id in &IDS[..self.dice.below(3) as usize] {
            let until = self.instant();
            effects.push(Effect::Remembered { id, until });
        }
        if self.dice.below(2) == 0 {
            effects.push(Effect::Minted {
                ms: self.near_now(),
                seq: self.number(3, &[u64::MAX / 2, u64::MAX / 4, u64::MAX]),
                token: match self.dice.below(6) {
                    0 => (1 << 62) - 1 - self.dice.below(1 << 20),
                    _ => self.token(),
                },
            });
        }
        if self.dice.below(12) == 0 {
            effects.push(self.no_snapshot());
        }
        effects
    }

    /// One of these, rarely; else the usual.
    fn number(&mut self, usual: u64, rare: &[u64]) -> u64 {
        match self.dice.below(24) {
            0 => rare[self.dice.below(rare.len() as u64) as usize],
            _ => usual,
        }
    }

    /// An instant long past or far ahead, so that nothing happens while servers are compared.
    fn instant(&mut self) -> u64 {
        let usual = match self.dice.below(2) {
            0 => self.now_ms - HOURS,
            _ => self.now_ms + HOURS,
        };
        let ends = [
            0,
            1,
            INSTANT_MAX - 1,
            INSTANT_MAX,
            INSTANT_MAX + 1,
            u64::MAX,
        ];
        self.number(usual, &ends)
    }

    fn span(&mut self) -> u64 {
        self.number(HOURS, &[0, 1, INSTANT_MAX, INSTANT_MAX + 1])
    }

    fn near_now(&mut self) -> u64 {
        let latest = self.now_ms + AHEAD_MS;
        let ends = [0, latest - HOURS, latest + HOURS, INSTANT_MAX, u64::MAX];
        self.number(self.now_ms, &ends)
    }

    fn token(&mut self) -> u64 {
        let shifted = self.near_now() << 20 | self.dice.below(1 << 20);
        self.number(
            shifted,
            &[1 << 61, (1 << 62) - 1, 1 << 62, TOKEN_MAX, u64::MAX],
        )
    }

    /// In the orders of adding and of dying.
    fn order(&mut self) -> u64 {
        let usual = self.dice.below(1000) + 1;
        let ends = [
            SEQ_MAX / 2,
            SEQ_MAX / 2 + 1,
            SEQ_MAX - 1,
            SEQ_MAX,
            SEQ_MAX + 1,
        ];
        self.number(usual, &ends)
    }

    fn settings(&mut self) -> Settings {
        let ends = [1, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX];
        Settings {
            ttr_ms: (self.dice.below(2) == 0).then_some(HOURS),
            max_attempts: self.number(3, &[1, u64::from(u32::MAX)]) as u32,
            rest: self.rest(),
            max_len: self.number(0, &ends),
            dead_len: self.number(2, &ends),
            dedupe_ms: self.number(HOURS, &[0, INSTANT_MAX, INSTANT_MAX + 1]),
            max_reserved: self.number(0, &ends),
            max_bytes: self.number(0, &ends),
            group_limits: GroupLimits::default(),
            done_limits: DoneLimits {
                len: self.number(3, &ends),
                ttl_ms: self.number(0, &[HOURS, INSTANT_MAX, INSTANT_MAX + 1]),
                bytes: self.number(0, &ends),
            },
            history: self.number(3, &[0, 100, 101, u64::MAX]),
            unknown: [&[][..], &[40, 1, 7], &[41, 1, 7], &[40, 2, 7], &[200, 4, 0]]
                [self.number(0, &[1, 2, 3, 4]) as usize]
                .to_vec(),
            rate: (self.dice.below(3) == 0).then_some(Rate {
                count: self.number(1000, &[0, 1, 100_000, u64::from(u32::MAX)]) as u32,
                window_ms: self.number(1, &[0, INSTANT_MAX, INSTANT_MAX + 1]),
            }),
        }
    }

    /// Of what the table has, some; its values are near their bounds, or beyond.
    fn rest(&mut self) -> Attrs<'static> {
        let tagged = Attr::ALL.iter().filter(|attr| attr.tag() != 0);
        tagged.fold(Attrs::NONE, |rest, &attr| {
            if self.dice.below(3) != 0 {
                return rest;
            }
            match attr.row().kind {
                Kind::Number { least, most, .. } => {
                    let (least, most) = (least as u64, most as u64);
                    let ends = [0, least, most, most + 1, u64::MAX];
                    rest.with_number(attr, self.number(HOURS.clamp(least, most), &ends))
                }
                Kind::Text(most) => {
                    let len = self.number(7, &[0, 1, most as u64, most as u64 + 1]);
                    rest.with_text(attr, &vec![b't'; len as usize])
                }
                Kind::Ladder => {
                    let steps = self.number(1, &[0, 8, 9, 1024, 1025]);
                    rest.with_backoff(&vec![HOURS; steps as usize])
                }
            }
        })
    }

    fn job(&mut self, number: u64) -> NewJob<'static> {
        let places = [Place::Scheduled, Place::Reserved, Place::Dead];
        let place = places[self.dice.below(3) as usize];
        let life = Life {
            expires: if self.dice.below(3) == 0 {
                self.instant()
            } else {
                0
            },
            token: if place == Place::Reserved {
                self.token()
            } else {
                0
            },
            at: if place == Place::Scheduled {
                0
            } else {
                self.instant()
            },
            lease_ms: self.span(),
            death: if place == Place::Dead {
                self.order()
            } else {
                0
            },
            attempts: self.number(1, &[0, u64::from(u32::MAX)]) as u32,
        };
        let priorities = [0, 0, 0, i32::MIN, i32::MAX];
        let terms = Terms {
            priority: priorities[self.dice.below(5) as usize],
            ttr_ms: self.span(),
            max_attempts: self.number(0, &[1, u64::from(u32::MAX)]) as u32,
            rest: self.rest(),
        };
        NewJob {
            seq: self.order(),
            place,
            life,
            ..NewJob::scheduled(
                IDS[self.number(number, &[0]) as usize],
                b"x",
                (self.instant(), 0),
                Box::leak(Box::new(terms)),
            )
        }
    }

    fn done_job(&mut self, id: &'static [u8]) -> DoneJob<'static> {
        let finished = self.instant();
        let parts: [Option<&[u8]>; 4] = [None, Some(b""), Some(b"part"), Some(&[7; 300])];
        let mut part = || parts[self.dice.below(4) as usize];
        let (result, group) = (part(), part());
        // Of nothing, PROGRESS, an unknown one, both; in another order, twice, critical, of another job, and cut.
        let notes: [&[u8]; 9] = [
            b"",
            b"\x05\x03pro",
            b"\x86\x02\x01x",
            b"\x05\x00\x86\x02\x01x",
            b"\x86\x02\x01x\x05\x00",
            b"\x05\x00\x05\x00",
            b"\x8e\x02\x01x",
            b"\x22\x03\x01n\x00",
            b"\x05\xff\xff\xff\xff\x0f",
        ];
        let which = self.dice.below(4) * self.dice.below(4);
        let notes = notes[which.min(8) as usize];
        DoneJob {
            id,
            payload: b"payload",
            result,
            notes,
            group: group.filter(|name| !name.is_empty() && name.len() < 300),
            terms: Terms {
                rest: self.rest(),
                ..TERMS
            },
            seq: self.order(),
            due: self.instant(),
            attempts: self.number(1, &[0, u64::from(u32::MAX)]) as u32,
            started: self.instant(),
            finished,
            until: match self.dice.below(3) {
                0 => self.instant(),
                1 => 0,
                _ => finished.saturating_add(2 * HOURS),
            },
        }
    }

    /// Jobs that failed, recur, or have a successor.
    fn rows(&mut self) -> Vec<NewJob<'static>> {
        let mut rows = Vec::new();
        for number in 0..1 + self.dice.below(2) {
            let job = NewJob {
                id: [b"r0", b"r1"][number as usize],
                failure: (self.dice.below(2) == 0).then(|| self.failure()),
                recurring: (self.dice.below(2) == 0).then(|| self.rule()),
                ..self.job(number)
            };
            let follows = job.place == Place::Reserved && self.dice.below(2) == 0;
            let follows = self.number(u64::from(follows), &[1]) == 1;
            let follower = NewJob {
                place: Place::Successor,
                seq: job.seq,
                ..NewJob::scheduled(job.id, b"x", (job.due, 0), &TERMS)
            };
            let recurs = job.recurring.is_some() && self.number(0, &[1]) == 0;
            rows.push(job);
            if follows && !recurs {
                rows.push(follower);
            }
        }
        rows
    }

    fn failure(&mut self) -> Failure<'static> {
        let reasons: [Option<&[u8]>; 4] = [None, Some(b""), Some(b"why"), Some(&[b'r'; 1024])];
        let reason = reasons[self.dice.below(4) as usize];
        Failure {
            at: self.instant(),
            reason: match self.number(0, &[1]) {
                0 => reason,
                _ => Some(&[b'r'; 1025]),
            },
        }
    }

    /// A rule without an occurrence while servers are compared, which would change it.
    fn rule(&mut self) -> (Rule<'static>, Occurrence) {
        let crons: [(&[u8], &[u8]); 6] = [
            (b"0 0 1 1 *", b"UTC"),
            (b"0 30 2 L 3 *", b"Europe/Berlin"),
            (b"0 0 1 1 *", b"Mars/Olympus"),
            (b"0 0 30 2 *", b"UTC"),
            (b"61 * * * *", b"UTC"),
            (&[b'*'; 1025], b"UTC"),
        ];
        let ms = self.number(HOURS, &[0, 1, 999, 1000, INSTANT_MAX, u64::MAX]);
        let pattern = match self.dice.below(3) {
            0 => {
                let few = self.number(2, &[6]);
                let (text, zone) = crons[self.dice.below(few) as usize];
                Pattern::Cron {
                    text: text.into(),
                    zone: zone.into(),
                }
            }
            _ => Pattern::Every { ms },
        };
        let bound = if ms < HOURS { 0 } else { HOURS };
        let bounds = [(); 2].map(|()| bound * self.dice.below(2));
        let rule = Rule {
            pattern,
            until: self.number(0, &[1, INSTANT_MAX, INSTANT_MAX + 1]),
            times: self.number(0, &[1, 2, u64::MAX]),
            grace_ms: self.number(bounds[0], &[0, INSTANT_MAX + 1]),
            jitter_ms: self.number(0, &[1, INSTANT_MAX, u64::MAX]),
            ttl_ms: self.number(bounds[1], &[0, INSTANT_MAX + 1]),
        };
        let occurrence = Occurrence {
            at: self.instant(),
            runs: self.order(),
            delivered: self.dice.below(2) == 0,
            offset_s: self.number(3600, &[0, 93_599, 93_600, u64::MAX]) as i32,
        };
        (rule, occurrence)
    }

    /// A note, mostly on a job that exists.
    fn noted(&mut self) -> Effect<'static> {
        const TEXT: &[u8] = &[b't'; 3000];
        let ids: [&[u8]; 7] = [b"a", b"a", b"a", b"a", b"b", b"r0", b"r0"];
        let text = &TEXT[..self.number(9, &[0, 1024, 1025, 3000]) as usize];
        let usual = 1 + self.dice.below(3);
        let name = &TEXT[..self.number(usual, &[0, 256, 257]) as usize];
        Effect::Noted {
            id: ids[self.dice.below(7) as usize],
            note: match self.dice.below(5) {
                0 => Note::Progress { text },
                1 => Note::Awaits { name },
                2 if self.dice.below(2) == 0 => Note::Past {
                    history: History(self.attempts()),
                },
                2 => Note::Unknown {
                    tag: self.number(0x102, &[0x100, 0x106, 0x103, 0x10a, u64::from(u32::MAX)])
                        as u32,
                    value: name,
                },
                _ => Note::Step { name, value: text },
            },
        }
    }

    /// Attempts as they are written, or nearly.
    fn attempts(&mut self) -> &'static [u8] {
        // Token, attempts, end, how, and a reason.
        const ATTEMPT: [u8; 7] = [7, 1, 9, 1, 1, 1, b'r'];
        let mut all = ATTEMPT.repeat(self.number(2, &[0, 1, 100, 101]) as usize);
        if let Some(byte) = all.last_mut() {
            *byte = self.number(u64::from(b'r'), &[0, 0xff]) as u8;
        }
        let cut = self.number(0, &[0, 1, 3]) as usize;
        all.truncate(all.len().saturating_sub(cut));
        all.leak()
    }

    /// An effect that changes queues, but is never part of a snapshot.
    fn no_snapshot(&mut self) -> Effect<'static> {
        let cut = self.instant();
        match self.dice.below(4) {
            0 => Effect::Purged(Purge::State { state: None, cut }),
            1 => Effect::Dropped,
            2 => Effect::Forgot(Forgotten::Until(cut)),
            _ => Effect::Job {
                id: b"a",
                change: Change::Kicked { due: cut },
            },
        }
    }
}
