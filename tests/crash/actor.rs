//! A client that does everything that clients do, from a seed, and records what it asked and what was answered.

use std::collections::HashMap;

use redis::{cmd, Cmd, Value};

use crate::clock::Clock;
use crate::cmd;
use crate::history::{
    Ack, Add, Bounds, Claim, Delivery, Due, Entry, Own, Pop, Stamp, Turns, What, OWNER,
};
use crate::link::{ask, corpses, deliveries, number, own_of, text, Said};
use crate::rng::Rng;
use crate::support::{wait_until, Client, PATIENCE};

/// One plain queue, one with limits, one for at-most-once, one whose ids repeat, one that is purged and has MAXRESERVED
/// and GROUPMAX, one with MAXLEN and DEDUPE, two with groups of which the second has GROUPFIFO, and one with RATE. In
/// most of them one group has settings of its own.
pub const QUEUES: [&str; 9] = [
    "plain", "limits", "taken", "shared", "purged", "bounded", "fair", "fifo", "metered",
];

pub fn bounds() -> HashMap<String, Bounds> {
    let bounded = Bounds {
        max_len: 6,
        dedupe_ms: 100,
        own: Own {
            max_len: 3,
            ..Own::default()
        },
        ..Bounds::default()
    };
    let purged = Bounds {
        max_reserved: 5,
        group_max: 2,
        own: Own {
            max: 1,
            ..Own::default()
        },
        ..Bounds::default()
    };
    let metered = Bounds {
        rate: (20, 15),
        own: Own {
            rate: (8, 25),
            ..Own::default()
        },
        ..Bounds::default()
    };
    let weight = Own {
        weight: 3,
        ..Own::default()
    };
    let with = |turns| Bounds {
        turns,
        ..Bounds::default()
    };
    let all = [
        ("bounded", bounded),
        ("purged", purged),
        ("metered", metered),
        (
            "fair",
            Bounds {
                own: weight,
                ..with(Turns::Fair)
            },
        ),
        ("fifo", with(Turns::Fifo)),
    ];
    all.map(|(queue, bounds)| (queue.to_owned(), bounds)).into()
}

/// Sets the bounds of queues, which stay the same during the traffic.
#[track_caller]
pub fn set_bounds(client: &mut Client) {
    for (queue, bounds) in bounds() {
        let (max_len, dedupe_ms) = (bounds.max_len, bounds.dedupe_ms);
        let (is_fifo, rate) = (u64::from(bounds.turns == Turns::Fifo), bounds.rate);
        cmd!(
            client,
            "DQ.CFGSET",
            &queue,
            "MAXLEN",
            max_len,
            "DEDUPE",
            dedupe_ms,
            "MAXRESERVED",
            bounds.max_reserved,
            "GROUPMAX",
            bounds.group_max,
            "GROUPFIFO",
            is_fifo,
            "RATE",
            rate.0,
            rate.1
        );
        client.call(&own_command(&queue, bounds.own));
    }
}

/// GROUPSET of what the group has of its own.
pub fn own_command(queue: &str, own: Own) -> Cmd {
    let mut command = cmd("DQ.GROUPSET");
    command.arg(queue).arg(OWNER);
    let said = [
        ("WEIGHT", own.weight),
        ("MAX", own.max),
        ("MAXLEN", own.max_len),
    ];
    for (word, value) in said.into_iter().filter(|&(_, value)| value != 0) {
        command.arg(word).arg(value);
    }
    match own {
        Own { rate, .. } if rate.0 != 0 => command.arg("RATE").arg(rate.0).arg(rate.1),
        own if own == Own::default() => command.arg("CLEAR"),
        _ => &mut command,
    };
    command
}

/// A job that was delivered to the actor and is not finished.
#[derive(Clone)]
pub struct Held {
    pub queue: String,
    pub claim: Claim,
}

pub struct Actor {
    pub number: usize,
    pub rng: Rng,
    pub clock: Clock,
    /// Whether it sometimes waits until a replica has confirmed an ADD.
    pub waits: bool,
    pub held: Vec<Held>,
    /// (queue, id) of the latest jobs that it added.
    pub known: Vec<(String, String)>,
    pub entries: Vec<Entry>,
    pub life: usize,
    pub serials: u64,
    pub units: u64,
    /// The first entry of this connection.
    connected: usize,
}

/// The connection can no longer be used.
pub struct Gone;

/// A command that was sent, and its reply.
pub struct Asked {
    pub sent: Stamp,
    pub ended: Stamp,
    /// None: the reply is unknown.
    pub reply: Option<Value>,
}

impl Actor {
    pub fn new(number: usize, seed: u64, clock: Clock) -> Actor {
        Actor {
            number,
            rng: Rng::new(seed.wrapping_mul(1000) + number as u64),
            clock,
            waits: false,
            held: Vec::new(),
            known: Vec::new(),
            entries: Vec::new(),
            life: 0,
            serials: 0,
            units: 0,
            connected: 0,
        }
    }

    /// Sends commands until the connection fails, or `goes_on` says no.
    pub fn play(&mut self, client: &mut Client, life: usize, goes_on: impl Fn() -> bool) {
        self.life = life;
        self.connected = self.entries.len();
        while goes_on() {
            if self.step(client).is_err() {
                break;
            }
        }
    }

    /// Sends a command. `Err`: it was not carried out, and the connection cannot be used any more.
    pub fn ask(&mut self, client: &mut Client, command: &Cmd) -> Result<Asked, Gone> {
        let sent = self.clock.stamp();
        let said = ask(client, command);
        let ended = self.clock.stamp();
        let reply = match said {
            Said::Reply(value) => Some(value),
            Said::Nothing => None,
            Said::Refused => return Err(Gone),
        };
        Ok(Asked { sent, ended, reply })
    }

    pub fn record(&mut self, queue: &str, asked: &Asked, what: What) -> Result<(), Gone> {
        self.record_in(None, queue, asked, what);
        asked.reply.as_ref().map(|_| ()).ok_or(Gone)
    }

    pub fn record_in(&mut self, unit: Option<u64>, queue: &str, asked: &Asked, what: What) {
        self.entries.push(Entry {
            client: self.number,
            life: self.life,
            sent: asked.sent,
            ended: asked.ended,
            unit,
            confirmed: false,
            queue: queue.to_owned(),
            what,
        });
    }

    /// If WAIT says that a replica has it, marks what this connection wrote up to its last write as confirmed.
    pub fn confirm(&mut self, client: &mut Client) -> Result<(), Gone> {
        let asked = self.ask(client, cmd("WAIT").arg(1).arg(500))?;
        let reply = asked.reply.ok_or(Gone)?;
        if number(&reply) >= 1 {
            for entry in &mut self.entries[self.connected..] {
                entry.confirmed = true;
            }
        }
        Ok(())
    }

    pub fn new_add(&mut self, queue: &str) -> Add {
        self.serials += 1;
        let serial = ((self.number as u64 + 1) << 32) | self.serials;
        let shared = queue == "shared";
        let bounded = queue == "bounded";
        let id = match (shared, bounded) {
            (true, _) => format!("s{}", self.rng.below(16)),
            (_, true) => format!("b{}", self.rng.below(24)),
            _ => format!("j{serial}"),
        };
        let rng = &mut self.rng;
        let now_ms = self.clock.stamp().wall_ms();
        let due = match rng.below(5) {
            0 | 1 => Due::In(0),
            2 => Due::In(rng.below(300)),
            _ => Due::At(now_ms - 50 + rng.below(350)),
        };
        Add {
            priority: rng.maybe(3, |rng| rng.below(5) as i32 - 2).unwrap_or(0),
            max_attempts: rng.maybe(4, |rng| 1 + rng.below(4) as u32).unwrap_or(0),
            ttl_ms: rng.maybe(12, |rng| 30 + rng.below(400)),
            backoff: rng.maybe(4, |_| vec![10, 40]).unwrap_or_default(),
            group: a_group(queue, rng),
            cost: a_cost(queue, rng),
            only: !shared && !bounded,
            nx: !shared || rng.one_in(3),
            ..Add::of(serial, id, due)
        }
    }

    pub fn keep(&mut self, deliveries: &[Delivery]) {
        const MOST: usize = 40;
        for delivery in deliveries {
            let Some(lease) = delivery.lease else {
                continue;
            };
            self.held.push(Held {
                queue: delivery.queue.clone(),
                claim: Claim {
                    id: delivery.id.clone(),
                    token: Some(lease.token),
                },
            });
        }
        // Jobs that it forgets come back when their leases expire.
        let surplus = self.held.len().saturating_sub(MOST);
        self.held.drain(..surplus);
    }

    pub fn know(&mut self, queue: &str, id: &str) {
        const MOST: usize = 30;
        self.known.push((queue.to_owned(), id.to_owned()));
        let surplus = self.known.len().saturating_sub(MOST);
        self.known.drain(..surplus);
    }
}

/// The end of a run: everything left is delivered and acknowledged, and the dead jobs are listed.
impl Actor {
    #[track_caller]
    pub fn drain(&mut self, client: &mut Client, life: usize) {
        self.life = life;
        let bounds = bounds();
        for queue in QUEUES {
            let stay = bounds.get(queue).copied().unwrap_or_default();
            for line in ["DQ.RESUME", "DQ.CFGSET"] {
                client.call(cmd(line).arg(queue));
            }
            if queue == "limits" {
                for group in ["g1", "g2"] {
                    client.call(cmd("DQ.GROUPSET").arg(queue).arg(group).arg("CLEAR"));
                }
            }
            let limits = format!(
                "RATE {} {} GROUPRATE 0 0 MAXRESERVED {} GROUPMAX {}",
                stay.rate.0, stay.rate.1, stay.max_reserved, stay.group_max
            );
            let limits: Vec<&str> = limits.split(' ').collect();
            client.call(cmd("DQ.CFGSET").arg(queue).arg(&limits));
            wait_until(format!("{queue} is empty"), PATIENCE, || {
                self.take_all(client, queue);
                client.call(cmd("DQ.LEN").arg(queue)) == Value::Int(0)
            });
            let command = ["DQ.PEEK", queue, "DEAD", "COUNT", "10000"];
            let asked = self.surely(client, cmd(command[0]).arg(&command[1..]));
            let dead = corpses(asked.reply.as_ref().expect("an answer"));
            self.record_in(None, queue, &asked, What::Dead(dead));
        }
        for group in (0..self.number).map(group_of) {
            let asked = self.surely(client, cmd("DQ.GROUPGET").arg("limits").arg(&group));
            let own = own_of(asked.reply.as_ref().expect("an answer"));
            self.record_in(None, "limits", &asked, What::Own(group, own));
        }
    }

    fn take_all(&mut self, client: &mut Client, queue: &str) {
        loop {
            let command = [queue, "COUNT", "50", "TTR", "600000"];
            let asked = self.surely(client, cmd("DQ.POP").arg(&command));
            let jobs = deliveries(asked.reply.as_ref().expect("an answer"), Some(queue));
            let claims: Vec<Claim> = jobs
                .iter()
                .map(|job| Claim {
                    id: job.id.clone(),
                    token: job.lease.map(|lease| lease.token),
                })
                .collect();
            let pop = Pop {
                queues: vec![queue.to_owned()],
                count: 50,
                noack: false,
                by_id: false,
                answer: Some(jobs),
            };
            self.record_in(None, queue, &asked, What::Pop(pop));
            if claims.is_empty() {
                return;
            }
            let asked = self.surely(client, &ack_command(queue, &claims));
            let gone = number(asked.reply.as_ref().expect("an answer"));
            assert_eq!(gone, claims.len() as u64, "ACKs of the drain");
            let ack = Ack {
                claims,
                answer: Some(gone),
            };
            self.record_in(None, queue, &asked, What::Ack(ack));
        }
    }

    #[track_caller]
    fn surely(&mut self, client: &mut Client, command: &Cmd) -> Asked {
        match self.ask(client, command) {
            Ok(asked) if asked.reply.is_some() => asked,
            _ => panic!(
                "no answer: {:?}",
                text(&Value::BulkString(command.get_packed_command()))
            ),
        }
    }
}

/// The group whose settings only this actor changes.
pub fn group_of(number: usize) -> String {
    format!("own{number}")
}

/// A group; jobs without one count as one group more.
fn a_group(queue: &str, rng: &mut Rng) -> Option<String> {
    let groups = match queue {
        "fair" | "fifo" => 4,
        "limits" | "purged" => rng.below(2) * 2,
        "bounded" | "metered" => rng.below(2),
        _ => 0,
    };
    let number = rng.below(groups + 1);
    (number > 0).then(|| format!("g{number}"))
}

/// A cost, sometimes more than the window of "metered" allows.
fn a_cost(queue: &str, rng: &mut Rng) -> u32 {
    match queue {
        "limits" | "metered" => rng.maybe(2, |rng| 1 + rng.below(24) as u32).unwrap_or(1),
        _ => 1,
    }
}

/// Uses the form with tokens if every claim has one, otherwise the one without.
pub fn ack_command(queue: &str, claims: &[Claim]) -> Cmd {
    let mut command = cmd("DQ.ACK");
    command.arg(queue);
    let with_tokens = claims.iter().all(|claim| claim.token.is_some());
    if with_tokens {
        command.arg("WITHTOKENS");
    }
    for claim in claims {
        command.arg(&claim.id);
        if let (true, Some(token)) = (with_tokens, claim.token) {
            command.arg(token);
        }
    }
    command
}
