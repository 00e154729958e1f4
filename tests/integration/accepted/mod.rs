//! Data that was accepted from a client is the same on the replica, after a reload, after a start from each kind of
//! file and after a promotion; and then it works like any queue. Dozens of nearly valid payloads that no server has
//! dumped are restored and used.
//!
//! `DQ_SEED=n` runs only that seed, `DQ_ACCEPTED_SECONDS=n` continues with new seeds for so long (`make soak`).

mod forger;
mod stage;

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dq::queue::effect::Effect;
use dq::queue::job::INSTANT_MAX;

use crate::payloads::{dump, forged, restore};
use crate::probe::show;
use crate::scene::{now_ms, pair, Lines, Scene};
use crate::support::{Raw, Reply, Server};
use forger::Forger;
use stage::Stage;

const PAYLOADS: usize = 60;

/// A master, its replica, and the origin of each payload.
struct World {
    master: Server,
    replica: Server,
    forger: Forger,
    /// What each key's payload was made of, for reports of faults.
    made_of: BTreeMap<String, String>,
    last_token: u64,
    sabotaged: Option<Stage>,
    taken: usize,
    refused: usize,
}

impl World {
    fn new(seed: u64, sabotaged: Option<Stage>) -> World {
        let (master, replica) = pair(Server::builder().aof());
        let real = dump(&mut master.raw());
        World {
            master,
            replica,
            forger: Forger::new(seed, real),
            made_of: BTreeMap::new(),
            last_token: 0,
            sabotaged,
            taken: 0,
            refused: 0,
        }
    }

    fn restore_all(&mut self) -> Result<(), String> {
        let mut client = self.master.raw();
        for number in 0..PAYLOADS {
            let key = format!("k{}", number % 20);
            let (payload, made_of) = self.forger.payload();
            match restore(&mut client, key.as_bytes(), &payload) {
                Reply::Simple(_) => {
                    self.taken += 1;
                    self.made_of.insert(key.clone(), made_of);
                    self.work_on(&mut client, &key)?;
                }
                Reply::Error(text) if text.starts_with("ERR ") => self.refused += 1,
                other => return Err(format!("{made_of} -> {}", show(&other))),
            }
        }
        Ok(())
    }

    /// Uses all keys, and one besides that no payload has touched.
    fn work_on_all(&mut self, client: &mut Raw) -> Result<(), String> {
        let keys: Vec<String> = self.made_of.keys().cloned().collect();
        for key in keys.iter().map(String::as_str).chain(["innocent"]) {
            self.work_on(client, key)?;
        }
        client.says("DQ.ADD innocent one x REPLACE", "'one'");
        client.begin("DQ.POP innocent ID one");
        self.note_token(&client.delivery().token)?;
        client.says("DQ.ACK innocent one", "1");
        Ok(())
    }

    /// Sends every command to a queue with unknown contents; nothing becomes due or ends while servers are compared.
    fn work_on(&mut self, client: &mut Raw, key: &str) -> Result<(), String> {
        for line in [
            "DQ.POP @ COUNT 2 TTR 9000000",
            "DQ.NACK @ b FATAL",
            "DQ.NACK @ c DELAY 9000000 PRIORITY 3",
            "DQ.TOUCH @ a TTR 9000000",
            "DQ.KICK @ COUNT 1",
            "DQ.RESCHEDULE @ DELAY 9000000 d",
            "DQ.ADD @ new x REPLACE",
            "DQ.MADD @ 3 new x m1 y m2 z REPLACE KEEP 5",
            "DQ.ADD @ r0 y REPLACE EVERY 36000000",
            "DQ.ADD @ r1 y NEXT DELAY 9000000",
            "DQ.NACK @ r2 FATAL REASON why",
            "DQ.NEXT @ r3 COUNT 3",
            "DQ.ACK @ r1 r3",
            "DQ.ADD @ * x DELAY 9000000 TTL 99000000",
            "DQ.POP @ TTR 9000000",
            "DQ.ACK @ a",
            "DQ.GET @ c",
            "DQ.PEEK @ DEAD COUNT 5",
            "DQ.STATS @",
            "DQ.CFGGET @",
            "COPY @ copy REPLACE",
            "DEL copy",
        ] {
            let line = line.replace('@', key);
            let reply = client.run(&line);
            self.note_tokens(&reply)?;
            let shown = show(&reply);
            let is_full = ["-MAXLEN ", "-MAXBYTES "].map(|code| shown.starts_with(code));
            let sound = !shown.starts_with('-') || is_full.contains(&true);
            let made_of = self.made_of.get(key);
            // Only a pause may be negative.
            let negative = line.starts_with("DQ.CFGGET") && shown.replace("-1 ]", "").contains('-');
            if !sound || negative {
                return Err(format!("{line} -> {shown}, of {made_of:?}"));
            }
        }
        Ok(())
    }

    fn note_tokens(&mut self, reply: &Reply) -> Result<(), String> {
        let Reply::Array(items) = reply else {
            return Ok(());
        };
        let token = match (items.len(), items.get(2)) {
            (5, Some(Reply::Bulk(token))) => token,
            _ => return items.iter().try_for_each(|item| self.note_tokens(item)),
        };
        self.note_token(&String::from_utf8_lossy(token))
    }

    /// Tokens grow over the whole server, through restarts and promotions.
    fn note_token(&mut self, token: &str) -> Result<(), String> {
        let last = self.last_token;
        match token.parse::<u64>() {
            Ok(token) if token > last => self.last_token = token,
            Ok(token) => return Err(format!("token {token} after {last}")),
            // It is the payload of a job in DQ.PEEK.
            Err(_) => {}
        }
        Ok(())
    }

    fn told(&self, what: &str) -> String {
        format!("{what}\nagain: DQ_SEED={}", self.forger.seed)
    }
}

struct Tally {
    taken: usize,
    refused: usize,
}

fn run(seed: u64, sabotaged: Option<Stage>) -> Result<Tally, String> {
    let mut world = World::new(seed, sabotaged);
    let ran = world.restore_all().and_then(|()| world.go_through());
    ran.map_err(|what| world.told(&what))?;
    Ok(Tally {
        taken: world.taken,
        refused: world.refused,
    })
}

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn what_is_accepted_stays() {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let fresh = since.map_or(1, |since| since.as_secs());
    let first = from_env("DQ_SEED").unwrap_or(fresh);
    println!("again: DQ_SEED={first}");
    let (start, mut seed) = (Instant::now(), first);
    let time = Duration::from_secs(from_env("DQ_ACCEPTED_SECONDS").unwrap_or(0));
    loop {
        let tally = run(seed, None).unwrap_or_else(|what| panic!("{what}"));
        let (taken, refused) = (tally.taken, tally.refused);
        println!("seed {seed}: {taken} taken, {refused} refused");
        assert!(taken > PAYLOADS / 20 && refused > PAYLOADS / 10);
        seed += 1;
        if start.elapsed() >= time {
            break;
        }
    }
}

/// Data that the master would ignore, but replica and file would apply, is refused.
#[test]
fn what_no_clock_drew_is_refused_as_a_whole() {
    let (mut server, replica) = pair(Server::builder().aof());
    let mut client = server.raw();
    let forgery = |(ms, seq, token)| {
        [
            Effect::Minted { ms, seq, token },
            Effect::Configured(Default::default()),
        ]
    };
    for numbers in [
        (0, 0, (1 << 62) - 1),
        (0, 0, 1 << 62),
        (0, 0, u64::MAX),
        (INSTANT_MAX, 0, 0),
        (u64::MAX, 0, 0),
        (0, u64::MAX, 0),
    ] {
        let payload = forged(&mut client, &forgery(numbers));
        let reply = show(&restore(&mut client, b"q", &payload));
        assert!(reply.starts_with("-ERR "), "{numbers:?} -> {reply}");
        client.says("EXISTS q", "0");
    }
    // Data of a clock that is a year ahead is accepted, wherever it appears.
    let year_ahead = now_ms() + 31_536_000_000;
    let ahead = forgery((year_ahead, 7, year_ahead << 20));
    let payload = forged(&mut client, &ahead);
    assert_eq!(show(&restore(&mut client, b"q", &payload)), "+OK");
    server.assert_followed_by(&[&replica]);
    server.kill();
    server.restart();
    replica.wait_for_link();
    replica.promote();
    for (server, name) in [(&server, "the master"), (&replica, "the promoted replica")] {
        let mut client = server.raw();
        client.says("DQ.ADD other a x", "'a'");
        client.begin("DQ.POP other");
        let token = client.delivery().token;
        let token: u64 = token.parse().expect("a token");
        let drawn = year_ahead << 20..(year_ahead << 20) + 9;
        assert!(drawn.contains(&token), "{name} counts on from {token}");
    }
}

/// One job too many is noticed at each stage.
#[test]
fn a_job_too_many_is_noticed() {
    for stage in Stage::ALL {
        let found = run(1, Some(stage)).err().unwrap_or_default();
        let is_it = found.starts_with(&format!("{stage:?}: ")) && found.contains("sabotage");
        assert!(is_it, "{stage:?} was not noticed: {found}");
    }
}
