//! Random operations and a random clock: few ids and short times, so that due times, leases, TTLs,
//! dedupe windows and rate windows meet in the same few milliseconds.

use crate::model::LAST;
use crate::op::{
    AddOp, AfterOp, Id, NackOp, NewOp, Op, PopOp, Reply, RuleOp, Said, StepOp, TouchOp, Value,
};
use crate::rng::Rng;
use dq::queue::add::Condition;
use dq::queue::after::OnDead;
use dq::queue::attr::{Attr, Kind};
use dq::queue::claim::NackKind;
use dq::queue::clock::When;
use dq::queue::job::State;
use dq::queue::settings::{GroupSettings, Rate, SettingsChange};

#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub name: &'static str,
    pub ids: u64,
    /// How many priorities: 1 is only 0, u64::MAX is all of 32 bits.
    pub priorities: u64,
    /// Most times are shorter than so many ms.
    pub span_ms: u64,
    /// About one CFGSET or PAUSE in so many operations; 0 is none.
    pub settings_every: u64,
    /// One DEL, PURGE or other removal of many jobs in so many operations.
    pub purge_every: u64,
    pub start_ms: u64,
    /// One step backward of the clock in so many operations; 0 is never.
    pub backward_every: u64,
    /// Whether the model is compared.
    pub modelled: bool,
    /// Operations between two comparisons of everything.
    pub compare_every: u64,
    /// Of 100 jobs, those with a recurrence rule.
    pub rules: u64,
    /// How many groups; as many jobs have none as are in each. 0 is no groups.
    pub groups: u64,
    /// Of 100 operations, those that add jobs.
    pub adds: u64,
    /// One step or signal in so many operations, and as many NACKs that await a signal; 0 is none.
    pub steps_every: u64,
    /// Of 100 jobs, those that are after others.
    pub afters: u64,
    /// One job in so many has a COST, and one TOUCH in so many; 0 is none.
    pub costs_every: u64,
}

/// Deliveries and ids that clients remember.
#[derive(Default)]
pub struct Recent {
    deliveries: Vec<(Id, u64)>,
    next: usize,
    /// The job that died last of a NACK.
    dead: Option<Id>,
    /// The job that was delivered last, and the one that got a successor last.
    delivered: Option<Id>,
    followed: Option<Id>,
}

impl Recent {
    const KEPT: usize = 24;

    pub fn note(&mut self, op: &Op, reply: &Reply) {
        match reply {
            Reply::State(State::Dead) => {
                if let Op::Nack(nack) = op {
                    self.dead = Some(nack.id.clone());
                }
            }
            Reply::Added(id) if matches!(op, Op::Add(add) if add.condition == Condition::Next) => {
                self.followed = Some(id.clone());
                self.keep(id.clone(), 0);
            }
            Reply::Added(id) => self.keep(id.clone(), 0),
            Reply::AddedMany(ids) => ids.iter().flatten().for_each(|id| self.keep(id.clone(), 0)),
            Reply::Jobs(jobs) => {
                self.delivered = jobs.last().map(|job| job.id.clone());
                for job in jobs {
                    self.keep(job.id.clone(), job.lease.map_or(0, |lease| lease.0));
                }
            }
            _ => {}
        }
    }

    fn keep(&mut self, id: Id, token: u64) {
        if self.deliveries.len() < Self::KEPT {
            self.deliveries.push((id, token));
        } else {
            self.deliveries[self.next % Self::KEPT] = (id, token);
            self.next += 1;
        }
    }
}

pub struct Generator {
    pub rng: Rng,
    shape: Shape,
    pub now_us: u64,
    pub recent: Recent,
}

impl Generator {
    pub fn new(rng: Rng, shape: Shape) -> Self {
        Generator {
            rng,
            shape,
            now_us: shape.start_ms * 1000,
            recent: Recent::default(),
        }
    }

    /// Whether the clock is to step back now, to be followed by [`Generator::step_back`].
    pub fn wants_back(&mut self) -> bool {
        self.shape.backward_every != 0 && self.rng.one_in(self.shape.backward_every)
    }

    pub fn step_back(&mut self) {
        let span = self.shape.span_ms * 1000;
        let far = if self.rng.one_in(4) { 40 } else { 2 };
        let back = self.rng.below(span * far + 1);
        self.now_us = self.now_us.saturating_sub(back);
    }

    pub fn step_clock(&mut self) {
        let span_us = self.shape.span_ms * 1000;
        let step = match self.rng.below(100) {
            0..55 => 0,
            55..70 => self.rng.within(1, 400),
            70..82 => self.rng.within(1, 1500),
            82..90 => 1000 - self.now_us % 1000,
            90..97 => self.rng.below(span_us / 2 + 1),
            97..99 => self.rng.below(span_us * 3 + 1),
            _ if self.rng.one_in(4) => self.rng.below(200_000_000),
            _ => self.rng.below(span_us * 20 + 1),
        };
        self.now_us = (self.now_us + step).min(LAST * 1000);
    }

    pub fn operation(&mut self) -> Op {
        let shape = self.shape;
        if shape.settings_every != 0 && self.rng.one_in(shape.settings_every) {
            return self.settings();
        }
        if self.rng.one_in(shape.purge_every) {
            let state = self.rng.maybe(2, |rng| *rng.pick(&State::ALL));
            return Op::Purge(state);
        }
        if shape.steps_every != 0 && self.rng.one_in(shape.steps_every) {
            return self.step_or_signal();
        }
        let adds = shape.adds;
        match self.rng.below(100) {
            roll if roll < adds && self.rng.one_in(8) => self.add_many(),
            roll if roll < adds => self.add(),
            roll => match (roll - adds) * 100 / (100 - adds) {
                0..33 => self.pop(),
                33..48 => {
                    let (id, token) = self.claim();
                    let result = self.result(&token);
                    Op::Ack { id, token, result }
                }
                48..62 => self.nack(),
                62..68 => {
                    let (id, token) = self.claim();
                    let ttr = self
                        .rng
                        .maybe(2, |_| ())
                        .map(|()| self.span().clamp(1, LAST));
                    let progress = self.reason();
                    let cost = self.cost();
                    Op::Touch(TouchOp {
                        id,
                        token,
                        ttr,
                        progress,
                        cost,
                    })
                }
                68..75 => self.reschedule(),
                75..79 => Op::Kick(self.id()),
                79..82 => Op::KickOldest(self.rng.within(1, 3)),
                82..90 => Op::Del {
                    id: self.id(),
                    unreserved: self.rng.one_in(2),
                },
                _ => Op::Expire(*self.rng.pick(&[0, 1, 1, 2, 3, 1000])),
            },
        }
    }

    fn id(&mut self) -> Id {
        let recent = self.recent.deliveries.len() as u64;
        match self.rng.below(100) {
            0..20 if recent > 0 => self.rng.pick(&self.recent.deliveries).0.clone(),
            20..21 => vec![self.rng.pick(&[0u8, 0xff, b'*']).to_owned()],
            21..22 => b"\0bin\xff\xfe\r\n".to_vec(),
            22..23 => vec![b'L'; 1024 - self.rng.below(2) as usize],
            23 if self.rng.one_in(10) => vec![b'x'; 1025 * self.rng.below(2) as usize],
            24 if self.rng.one_in(2) => {
                let ms = self.now_us / 1000 + self.rng.below(2);
                format!("{ms}-{}", self.rng.below(2)).into_bytes()
            }
            _ => format!("{}", self.rng.below(self.shape.ids)).into_bytes(),
        }
    }

    /// A duration: mostly short, sometimes zero, rarely absurd.
    fn span(&mut self) -> u64 {
        match self.rng.below(1000) {
            0..150 => 0,
            150..180 => 1,
            180..984 => self.rng.within(1, self.shape.span_ms),
            984..993 => self.rng.within(1, self.shape.span_ms * 100),
            993..996 => LAST.saturating_sub(self.now_us / 1000) + self.rng.below(3),
            996..998 => self.rng.within(LAST - 2, LAST + 1),
            998 => u64::MAX - self.rng.below(2),
            _ => LAST / 2,
        }
    }

    /// An instant around now.
    fn instant(&mut self) -> u64 {
        if self.rng.one_in(100) {
            return *self.rng.pick(&[0, 1, LAST, LAST + 1, u64::MAX]);
        }
        let from = (self.now_us / 1000).saturating_sub(self.shape.span_ms);
        from + self.rng.below(self.shape.span_ms * 2)
    }

    fn when(&mut self) -> When {
        if self.rng.one_in(3) {
            When::At(self.instant())
        } else {
            When::Delay(self.span())
        }
    }

    fn priority(&mut self) -> i32 {
        match self.shape.priorities {
            1 => 0,
            u64::MAX => self.rng.next() as i32,
            few if self.rng.one_in(2) => self.rng.below(few) as i32 - few as i32 / 2,
            _ => *self.rng.pick(&[0, 0, 0, i32::MIN, i32::MAX]),
        }
    }

    fn ladder(&mut self) -> Vec<u64> {
        if self.rng.one_in(300) {
            let len = self.rng.within(1024, 1025);
            return (1..=len).collect();
        }
        let zero = self.rng.one_in(100);
        let least = u64::from(!zero);
        let len = self.rng.below(4);
        (0..len).map(|_| self.span().max(least)).collect()
    }

    /// As the clock says it, not a choice: histories that were kept stay what they are.
    fn server_backoff(&self) -> Vec<u64> {
        let ms = self.now_us / 1000;
        match ms % 4 {
            0 => Vec::new(),
            1 => vec![1 + ms % 500],
            _ => vec![3, 20, 1 + ms % 5000],
        }
    }

    fn server_ttr(&mut self) -> u64 {
        if self.rng.one_in(4) {
            7
        } else {
            60_000
        }
    }

    fn attempts(&mut self) -> u32 {
        *self.rng.pick(&[0, 1, 1, 2, 2, 3, u32::MAX])
    }

    fn add(&mut self) -> Op {
        let conditions = [
            Condition::Existing,
            Condition::Replace,
            Condition::Next,
            Condition::Next,
        ];
        let plain = self.rng.one_in(2);
        let payload_len = if self.rng.one_in(200) {
            3000
        } else {
            self.rng.below(12)
        };
        let byte = self.rng.next() as u8;
        let ttr = match self.rng.below(100) {
            0 => Some(self.span()),
            1..80 => Some(self.span().clamp(1, LAST)),
            _ => None,
        };
        let mut add = AddOp {
            id: if self.rng.one_in(40) {
                None
            } else {
                Some(self.id())
            },
            payload: vec![byte; payload_len as usize],
            condition: if plain {
                Condition::New
            } else {
                *self.rng.pick(&conditions)
            },
            when: self.rng.maybe(2, |_| ()).map(|()| self.when()),
            priority: if self.rng.one_in(2) {
                0
            } else {
                self.priority()
            },
            ttr,
            server_ttr: self.server_ttr(),
            attempts: self.rng.maybe(2, |_| ()).map(|()| self.attempts()),
            backoff: self.rng.maybe(3, |_| ()).map(|()| self.ladder()),
            ttl: self.rng.maybe(5, |_| ()).map(|()| self.span().max(1)),
            rule: None,
            group: self.group(),
            said: self.said(),
            after: None,
        };
        if self.shape.afters > 0 && self.rng.below(100) < self.shape.afters {
            add.after = Some(self.after());
            if add.condition == Condition::Next {
                add.condition = Condition::Replace;
            }
            return Op::Add(add);
        }
        if self.shape.afters > 0 && add.condition == Condition::Next && self.rng.one_in(2) {
            add.id = self.recent.delivered.take().or(add.id);
        }
        if self.shape.steps_every != 0 {
            let keep = self.rng.maybe(4, |_| ()).map(|()| self.span().min(LAST));
            add.said = add.said.keeping(keep);
        }
        if self.shape.rules > 0 && self.rng.below(100) < self.shape.rules {
            add.rule = Some(self.rule());
            add.ttl = add.ttl.map(|ttl| ttl.min(LAST));
        }
        Op::Add(add)
    }

    /// A cost; of what else the table has, some value within its bounds: as the clock says it, not a choice, so that
    /// histories stay what they are when the table grows.
    fn said(&mut self) -> Said {
        let said = Said::costing(self.cost().unwrap_or(1));
        let ms = self.now_us / 1000;
        let others = Said::all().filter(|attr| ![Attr::Keep, Attr::Cost].contains(attr));
        others.fold(said, |said, attr| match attr.row().kind {
            Kind::Text(most) if ms.is_multiple_of(4) => {
                said.with(attr, Value::Text(vec![b't'; 1 + ms as usize % most]))
            }
            Kind::Number { least, most, .. } if ms.is_multiple_of(4) => {
                let value = least as u64 + ms % (most - least + 1) as u64;
                said.with(attr, Value::Number(value))
            }
            _ => said,
        })
    }

    fn add_many(&mut self) -> Op {
        let Op::Add(mut add) = self.add() else {
            unreachable!()
        };
        let conditions = [Condition::New, Condition::Existing, Condition::Replace];
        add = AddOp {
            id: None,
            payload: Vec::new(),
            rule: None,
            after: None,
            condition: *self.rng.pick(&conditions),
            ..add
        };
        let len = if self.rng.one_in(50) {
            40
        } else {
            self.rng.within(1, 5)
        };
        let job = |_| NewOp {
            id: (!self.rng.one_in(20)).then(|| self.id()),
            payload: vec![b'm'; self.rng.below(12) as usize],
        };
        let jobs = (0..len).map(job).collect();
        Op::AddMany(add, jobs)
    }

    /// There are few ids, so most of those named exist.
    fn after(&mut self) -> AfterOp {
        if self.shape.groups > 0 && self.rng.one_in(5) {
            let name = format!("g{}", self.rng.within(1, self.shape.groups));
            return AfterOp::Group(match self.rng.below(60) {
                0 => vec![b'g'; *self.rng.pick(&[0, 256, 257])],
                _ => name.into_bytes(),
            });
        }
        let on_dead = *self.rng.pick(&OnDead::ALL);
        let count = *self.rng.pick(&[1, 1, 1, 2, 3]);
        let ids = (0..count).map(|_| format!("{}", self.rng.below(self.shape.ids)).into_bytes());
        let mut ids = Vec::from_iter(ids);
        if let Some(dead) = self.recent.dead.clone().filter(|_| self.rng.one_in(4)) {
            ids[0] = dead;
        }
        AfterOp::Jobs(ids, on_dead)
    }

    fn group(&mut self) -> Option<Vec<u8>> {
        let groups = self.shape.groups;
        if groups == 0 {
            return None;
        }
        match self.rng.below(groups + 1) {
            0 if self.rng.one_in(100) => Some(vec![b'g'; 257 * self.rng.below(2) as usize]),
            0 => None,
            number => Some(format!("g{number}").into_bytes()),
        }
    }

    /// Few kinds of rules, so that they are often the same.
    fn rule(&mut self) -> RuleOp {
        let crons = [
            ("* * * * * *", 1000),
            ("*/2 * * * * *", 2000),
            ("* * * * *", 60_000),
        ];
        let (text, ms) = match self.rng.below(6) {
            0..3 => (None, 1000 * self.rng.within(1, 2)),
            3 => (None, self.rng.within(1000, 3000)),
            _ => {
                let (text, ms) = *self.rng.pick(&crons);
                (Some(text), ms)
            }
        };
        let span = self.shape.span_ms;
        RuleOp {
            text,
            ms,
            until: self.rng.below(3) / 2
                * (self.now_us / 1000 + self.rng.below(span * 8)).min(LAST),
            times: self.rng.below(3) / 2 * self.rng.within(1, 5),
            grace: self.rng.below(2) * self.span().min(LAST),
            jitter: self.rng.below(3) / 2 * self.rng.below(1200),
        }
    }

    fn pop(&mut self) -> Op {
        let id = self.rng.maybe(5, |_| ()).map(|()| self.id());
        let count = match id {
            None if self.rng.one_in(4) => *self.rng.pick(&[2, 3, 10, u64::MAX]),
            _ => 1,
        };
        let (mut ttr, mut lease) = (None, None);
        if self.rng.one_in(4) {
            let span = Some(self.span().clamp(1, LAST));
            *(if self.rng.one_in(3) {
                &mut lease
            } else {
                &mut ttr
            }) = span;
        }
        Op::Pop(PopOp {
            count,
            id,
            ttr,
            lease,
            server_ttr: self.server_ttr(),
            noack: self.rng.one_in(7),
            with_terms: self.rng.one_in(4),
            with_steps: self.shape.steps_every != 0 && self.rng.one_in(2),
        })
    }

    /// An id, and perhaps a token: one of that job, of another one, or one that never existed.
    fn claim(&mut self) -> (Id, Option<Vec<u8>>) {
        let digits = |token: u64| token.to_string().into_bytes();
        if self.recent.deliveries.is_empty() || self.rng.one_in(5) {
            return (self.id(), None);
        }
        let (id, token) = self.rng.pick(&self.recent.deliveries).clone();
        let token = match self.rng.below(20) {
            0 => Some(self.rng.pick(&self.recent.deliveries).1),
            1 => Some(token + 1),
            2 => {
                let texts: [&[u8]; 6] = [b"", b"0", b"-1", b"x", b"\xff", b"99999999999999999999"];
                return (id, Some(self.rng.pick(&texts).to_vec()));
            }
            3 => return (id, Some(format!("0{token}").into_bytes())),
            4..9 => None,
            _ => Some(token),
        };
        (id, token.map(digits))
    }

    /// A result only with a token.
    fn result(&mut self, token: &Option<Vec<u8>>) -> Option<Vec<u8>> {
        let len = self.rng.below(16) * self.rng.below(3);
        let byte = self.rng.next() as u8;
        token.as_ref()?;
        self.rng.maybe(2, |_| vec![byte; len as usize])
    }

    fn nack(&mut self) -> Op {
        let (id, token) = self.claim();
        let kinds = [
            NackKind::Fail,
            NackKind::Fail,
            NackKind::Silent,
            NackKind::Fatal,
        ];
        if self.shape.afters > 0 && self.rng.one_in(3) {
            let followed = self.recent.followed.take();
            let (id, token) = followed.map_or((id, token), |id| (id, None));
            return Op::Nack(NackOp {
                id,
                token,
                delay: None,
                priority: None,
                kind: NackKind::Silent,
                server_backoff: Vec::new(),
                reason: self.reason(),
                after: Some(self.after()),
                awaits: None,
            });
        }
        let awaits = (self.shape.steps_every != 0 && self.rng.one_in(2)).then(|| self.name());
        if awaits.is_some() {
            return Op::Nack(NackOp {
                id,
                token,
                delay: self.rng.maybe(3, |_| ()).map(|()| self.span()),
                priority: self.rng.maybe(6, |_| ()).map(|()| self.priority()),
                kind: NackKind::Silent,
                server_backoff: Vec::new(),
                reason: None,
                awaits,
                after: None,
            });
        }
        Op::Nack(NackOp {
            id,
            token,
            delay: self.rng.maybe(3, |_| ()).map(|()| self.span()),
            priority: self.rng.maybe(4, |_| ()).map(|()| self.priority()),
            kind: *self.rng.pick(&kinds),
            server_backoff: self.server_backoff(),
            reason: self.reason(),
            awaits: None,
            after: None,
        })
    }

    /// A name from few, so that names meet; rarely an empty one or one that is too long.
    fn name(&mut self) -> Vec<u8> {
        match self.rng.below(60) {
            0 => vec![b'n'; *self.rng.pick(&[0, 256, 257])],
            roll => vec![b'a' + (roll % 3) as u8],
        }
    }

    fn step_value(&mut self) -> Vec<u8> {
        let len = if self.rng.one_in(40) {
            self.rng.within(900, 3000)
        } else {
            self.rng.below(9)
        };
        vec![self.rng.next() as u8; len as usize]
    }

    fn step_or_signal(&mut self) -> Op {
        if self.rng.one_in(2) {
            return Op::Signal {
                id: self.id(),
                name: self.name(),
                value: self.step_value(),
            };
        }
        let (id, token) = self.claim();
        let token = match (token, self.recent.deliveries.last()) {
            (Some(token), _) => token,
            (None, Some((_, token))) => token.to_string().into_bytes(),
            (None, None) => b"1".to_vec(),
        };
        let many = match self.rng.below(200) {
            0 => 600,
            1..40 => self.rng.within(2, 4),
            _ => 1,
        };
        let first = 500 * self.rng.below(3);
        let mut pair = |number: u64| match many {
            600 => (format!("{}", number + first).into_bytes(), Vec::new()),
            _ => (self.name(), self.step_value()),
        };
        let pairs = (0..many).map(&mut pair).collect();
        Op::Step(StepOp { id, token, pairs })
    }

    fn reschedule(&mut self) -> Op {
        let priority = self.rng.maybe(3, |_| ()).map(|()| self.priority());
        let both = priority.is_none() || self.rng.one_in(2);
        Op::Reschedule {
            id: self.id(),
            when: both.then(|| self.when()),
            priority,
        }
    }

    /// No reason, an empty one, the one of lease ends, some text, one that is too long.
    fn reason(&mut self) -> Option<Vec<u8>> {
        let texts: [&[u8]; 5] = [b"", b"lease ended", b"no route", b"\0\xff", &[b'r'; 1025]];
        self.rng.maybe(3, |rng| rng.pick(&texts).to_vec())
    }

    fn settings(&mut self) -> Op {
        match self.rng.below(10) {
            0 => return Op::Pause(self.rng.maybe(4, |_| ()).map(|()| self.span().max(1))),
            1 => return Op::Pause(Some(self.span().max(1))),
            2..5 => return Op::Resume,
            _ => {}
        }
        if self.shape.groups > 0 && self.rng.one_in(4) {
            return self.group_settings();
        }
        let mut change = SettingsChange::default();
        let most = if self.shape.ids > 100 { 20_000 } else { 8 };
        let kinds = if self.shape.groups > 0 { 19 } else { 13 };
        match self.rng.below(kinds) {
            9 => change.done_len = Some(self.limit(5)),
            10 => change.done_ttl_ms = Some(self.span().min(LAST) * self.rng.below(4).min(1)),
            11 => change.done_bytes = Some(self.limit(most * 6)),
            12 => change.history = Some(self.limit(4)),
            13..15 => change.group_max = Some(self.limit(2)),
            15..17 => change.group_rate = Some(self.rate()),
            17..19 => change.group_fifo = Some(self.rng.one_in(2)),
            0 => change.ttr_ms = Some(self.span().min(LAST)),
            1 => change.max_attempts = Some(self.attempts()),
            // Two steps stand for DEFAULT.
            2 => change.backoff_ms = Some(Some(self.ladder()).filter(|it| it.len() != 2)),
            3 => change.max_len = Some(self.limit(most)),
            4 => change.dead_len = Some(self.limit(4)),
            5 => change.dedupe_ms = Some(self.span().min(LAST) * self.rng.below(3).min(1)),
            6 => change.max_reserved = Some(self.limit(if most > 8 { 300 } else { 3 })),
            7 => change.rate = Some(self.rate()),
            8 => change.max_bytes = Some(self.limit(most * 8)),
            _ => {}
        }
        Op::Configure(change)
    }

    fn group_settings(&mut self) -> Op {
        let name = self.group().unwrap_or_else(|| b"empty".to_vec());
        let mut change = GroupSettings::default();
        match self.rng.below(17) {
            0 => return Op::Group(name, None),
            8 => {
                return Op::PauseGroup(name, self.rng.maybe(4, |_| ()).map(|()| self.span().max(1)))
            }
            9..11 => return Op::PauseGroup(name, Some(self.span().max(1))),
            11..14 => return Op::ResumeGroup(name),
            14..17 => change.weight = Some(self.rng.within(1, 5) as u32),
            1..4 => change.max_reserved = Some(self.limit(2)),
            4..6 => change.rate = Some(self.rate()),
            _ => change.max_len = Some(self.limit(4)),
        }
        Op::Group(name, Some(change))
    }

    fn limit(&mut self, most: u64) -> u64 {
        if self.rng.one_in(3) {
            0
        } else {
            self.rng.within(1, most)
        }
    }

    fn cost(&mut self) -> Option<u32> {
        if self.shape.costs_every == 0 || !self.rng.one_in(self.shape.costs_every) {
            return None;
        }
        Some(*self.rng.pick(&[1, 2, 2, 3, 3, 5, 8, 1_000_000]))
    }

    fn rate(&mut self) -> Option<Rate> {
        if self.rng.one_in(2) {
            return None;
        }
        let most = if self.shape.costs_every > 0 { 12 } else { 4 };
        Some(Rate {
            count: self.rng.within(1, most) as u32,
            window_ms: self.span().clamp(1, LAST),
        })
    }
}
