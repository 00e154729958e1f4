//! What a worker decides, step by step: no server, no clock, no threads.

use super::fetch::{Fetches, Lease, Rng};
use super::outcome::Outcome;
use super::*;
use redis::{Cmd, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

const WAITING: Line = Line {
    link: 0,
    name: Name::Waiting,
};
const SECOND: Duration = Duration::from_secs(1);

fn bulk(text: &str) -> Value {
    Value::BulkString(text.as_bytes().to_vec())
}

fn error(text: &str) -> Value {
    let parsed = redis::parse_redis_value(format!("-{text}\r\n").as_bytes());
    parsed.expect("an error of the server")
}

/// A row of a fetch: a job with its TTR in ms, and the wait of its backoff.
fn row(id: &str, ttr: i64, attempts: i64, wait: Option<i64>) -> Value {
    let terms = vec![
        Value::Int(ttr),
        Value::Int(attempts),
        wait.map_or(Value::Nil, Value::Int),
    ];
    Value::Array(vec![
        bulk(id),
        bulk("{}"),
        bulk("77"),
        Value::Int(1),
        Value::Int(1000),
        Value::Int(500),
        Value::Array(vec![]),
        Value::Array(vec![]),
        Value::Array(terms),
    ])
}

fn found(rows: Vec<Value>) -> Value {
    Value::Array(vec![bulk("q"), Value::Array(rows)])
}

fn jobs(ids: &[&str]) -> Value {
    found(ids.iter().map(|id| row(id, 60_000, 0, None)).collect())
}

fn words(command: &Cmd) -> String {
    let word = |arg| match arg {
        redis::Arg::Simple(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    command.args_iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A worker of one queue, and the deliveries that it has.
struct World {
    core: Core,
    now: Instant,
    sent: Vec<(Name, Turn, Vec<String>)>,
    started: Vec<Serial>,
    told: Vec<(Serial, CancelReason)>,
    lost: Vec<String>,
    died: Vec<String>,
    said: Vec<Said>,
    finished: Option<Result<(), String>>,
}

fn settings(shape: Shape) -> Settings {
    Settings {
        shapes: vec![shape],
        concurrency: 2,
        prefetch: 0,
        lease: None,
        drain: 10 * SECOND,
        wait: 5 * SECOND,
        idle: 60 * SECOND,
        is_drained: false,
    }
}

impl World {
    fn new(settings: Settings) -> Self {
        let now = Instant::now();
        let member = Member {
            key: b"q".as_slice().into(),
            weight: 1.0,
        };
        let places = vec![("here".into(), vec![member])];
        let core = Core::new(1, settings, places, false, Arc::default(), now);
        let mut made = World {
            core,
            now,
            sent: vec![],
            started: vec![],
            told: vec![],
            lost: vec![],
            died: vec![],
            said: vec![],
            finished: None,
        };
        made.advance(Duration::ZERO);
        made
    }

    fn usual() -> Self {
        World::new(settings(Shape::default()))
    }

    /// The program was awake all that time.
    fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        loop {
            self.core.advance(self.now);
            self.act();
            match self.core.wakes_at(self.now) {
                Some(at) if at <= end => {
                    assert!(
                        at > self.now || self.now == end || at == self.now,
                        "it goes on"
                    );
                    self.now = at.max(self.now + Duration::from_micros(1)).min(end);
                    if at == end && self.now == end {
                        self.core.advance(self.now);
                        return self.act();
                    }
                }
                _ => break,
            }
        }
        self.now = end;
        self.core.advance(end);
        self.act();
    }

    fn act(&mut self) {
        while let Some(action) = self.core.next_action() {
            match action {
                Action::Send {
                    line,
                    turn,
                    commands,
                    last,
                    ..
                } => {
                    let all: Vec<String> = commands.iter().chain(&last).map(words).collect();
                    if all.is_empty() {
                        let opened = Event::Opened(line, turn, None, "here".into());
                        self.core.on(opened, self.now);
                        self.core.advance(self.now);
                    }
                    self.sent.push((line.name, turn, all));
                }
                Action::Start { jobs, .. } => {
                    self.started.extend(jobs.iter().map(|(serial, ..)| *serial))
                }
                Action::Tell(serial, why) => self.told.push((serial, why)),
                Action::Lost(_, of) => self.lost.push(String::from_utf8_lossy(&of.job.id).into()),
                Action::Died(_, of) => self.died.push(String::from_utf8_lossy(&of.job.id).into()),
                Action::Say(said) => self.said.push(said),
                Action::Finish(result) => {
                    self.finished = Some(result.map_err(|error| error.to_string()))
                }
                Action::Close(_) | Action::Last(..) | Action::LoseOther(_) => {}
            }
        }
    }

    fn on(&mut self, event: Event) {
        self.core.on(event, self.now);
        self.advance(Duration::ZERO);
    }

    /// What was sent on a connection since the last call, and the connection's turn.
    fn take(&mut self, name: Name) -> Vec<String> {
        let (mine, rest) = std::mem::take(&mut self.sent)
            .into_iter()
            .partition(|(of, _, _)| *of == name);
        self.sent = rest;
        let mine: Vec<(Name, Turn, Vec<String>)> = mine;
        mine.into_iter().flat_map(|(_, _, all)| all).collect()
    }

    fn reply(&mut self, name: Name, values: Vec<Value>) {
        let turn = self.core.links[0].state(name).turn;
        self.on(Event::Replies(Line { link: 0, name }, turn, values));
    }

    /// The connection that waits is client 7 of that server.
    fn opened(&mut self, server: &str) {
        let (line, turn) = (WAITING, self.core.links[0].waiting.turn);
        self.on(Event::Opened(line, turn, Some(7), server.into()));
    }

    fn deliver(&mut self, ids: &[&str]) {
        self.reply(Name::Waiting, vec![jobs(ids)]);
    }

    fn ends(&mut self, serial: Serial, end: End) {
        self.on(Event::Ended(vec![vec![(serial, end)]]));
    }
}

const BPOP: &str = "DQ.BPOP q 5 COUNT 2 WITHDUE WITHRESULTS WITHSTEPS WITHTERMS";

#[test]
fn an_end_and_the_next_fetch_are_one_write() {
    let mut world = World::usual();
    assert_eq!(world.take(Name::Waiting), [BPOP]);
    world.deliver(&["a", "b"]);
    assert_eq!(world.started, [1, 2]);
    assert!(world.take(Name::Waiting).is_empty(), "no room");
    world.ends(1, End::Done(None));
    let one = BPOP.replace("COUNT 2", "COUNT 1");
    assert_eq!(
        world.take(Name::Waiting),
        ["DQ.ACK q WITHTOKENS IDS 1 a 77".to_owned(), one]
    );
    // While the fetch waits, the other job's end is sent by itself, a millisecond later.
    world.ends(2, End::Done(Some(b"7".to_vec())));
    assert!(world.take(Name::Control).is_empty());
    world.advance(Duration::from_millis(1));
    assert_eq!(world.take(Name::Control), ["DQ.ACK q RESULTS IDS 1 b 77 7"]);
}

/// Two jobs are done; returns what the fetch after them took along.
fn two_are_done(world: &mut World) -> Vec<String> {
    world.deliver(&["a", "b"]);
    world.take(Name::Waiting);
    let done = |serial| vec![(serial, End::Done(None))];
    world.on(Event::Ended(vec![done(1), done(2)]));
    world.take(Name::Waiting)
}

#[test]
fn jobs_that_are_done_share_one_ack_and_one_of_them_may_be_lost() {
    let mut world = World::usual();
    let sent = two_are_done(&mut world);
    assert_eq!(sent, ["DQ.ACK q WITHTOKENS IDS 2 a 77 b 77", BPOP]);
    let answers = [1, 0].map(Value::Int).to_vec();
    world.reply(Name::Waiting, vec![Value::Array(answers)]);
    assert_eq!(world.lost, ["b"]);
    assert!(world.core.held.is_empty());
}

#[test]
fn what_an_error_refuses_for_a_while_is_sent_again_for_all() {
    let mut world = World::usual();
    two_are_done(&mut world);
    world.reply(Name::Waiting, vec![error("BUSY a script runs")]);
    world.advance(10 * SECOND);
    for _ in 0..2 {
        let sent = world.take(Name::Control).concat();
        let ones = sent.matches(" 77").count();
        world.reply(Name::Control, vec![Value::Array(vec![Value::Int(1); ones])]);
        world.advance(SECOND);
    }
    assert!(world.lost.is_empty() && world.core.held.is_empty());
}

#[test]
fn a_shared_ack_whose_answer_was_lost_loses_no_job() {
    let mut world = World::usual();
    two_are_done(&mut world);
    world.on(Event::Broken(WAITING, 0, "cut".into(), Sent::Cut));
    world.advance(Duration::from_millis(1));
    let sent = world.take(Name::Control).concat();
    assert!(
        sent.contains("DQ.ACK q WITHTOKENS IDS 2 a 77 b 77"),
        "{sent}"
    );
    let answers = Value::Array([0, 0].map(Value::Int).to_vec());
    let touched = sent
        .matches("DQ.TOUCH")
        .map(|_| Value::Array(vec![Value::Int(1); 2]));
    world.reply(Name::Control, touched.chain([answers]).collect());
    assert!(world.lost.is_empty() && world.core.held.is_empty());
}

#[test]
fn each_end_has_its_command() {
    let failed = |wait| End::Failed {
        reason: "no".into(),
        wait,
    };
    let ladder = vec![3 * SECOND, 9 * SECOND];
    let shape = Shape {
        backoff: ladder,
        ..Shape::default()
    };
    let short = Shape {
        attempts: 1,
        ..Shape::default()
    };
    let plain = Shape::default();
    let snoozed = End::Snoozed {
        reason: None,
        wait: SECOND,
    };
    for (shape, wait, end, command) in [
        (
            &plain,
            None,
            End::Done(None),
            "DQ.ACK q WITHTOKENS IDS 1 j 77",
        ),
        (
            &plain,
            None,
            failed(None),
            "DQ.NACK q j TOKEN 77 FAIL REASON no",
        ),
        (
            &plain,
            Some(5),
            failed(None),
            "DQ.NACK q j TOKEN 77 FAIL REASON no",
        ),
        (
            &shape,
            None,
            failed(None),
            "DQ.NACK q j TOKEN 77 FAIL DELAY 3000 REASON no",
        ),
        (
            &shape,
            Some(5),
            failed(Some(SECOND)),
            "DQ.NACK q j TOKEN 77 FAIL DELAY 1000 REASON no",
        ),
        (
            &plain,
            None,
            failed(Some(Duration::ZERO)),
            "DQ.NACK q j TOKEN 77 FAIL DELAY 100 REASON no",
        ),
        (
            &short,
            None,
            failed(None),
            "DQ.NACK q j TOKEN 77 FATAL REASON no",
        ),
        (
            &plain,
            None,
            snoozed,
            "DQ.NACK q j TOKEN 77 SILENT DELAY 1000",
        ),
        (
            &plain,
            None,
            End::GaveUp { reason: "x".into() },
            "DQ.NACK q j TOKEN 77 FATAL REASON x",
        ),
        (&plain, None, End::GivenBack, "DQ.NACK q j TOKEN 77 SILENT"),
    ] {
        let key: Arc<[u8]> = b"q".as_slice().into();
        let delivered = Delivered::read(&key, row("j", 60_000, 0, wait)).expect("a job");
        let outcome = Outcome::ended(1, &Arc::new(delivered), shape, end);
        let mut commands = Vec::new();
        outcome.write(&mut commands);
        assert_eq!(words(&commands[0]), command);
    }
}

#[test]
fn what_the_server_refuses_is_left_out() {
    let mut world = World::usual();
    world.deliver(&["a"]);
    let end = End::Snoozed {
        reason: None,
        wait: Duration::MAX,
    };
    world.take(Name::Waiting);
    world.ends(1, end);
    world.advance(Duration::from_millis(1));
    let refusal = || error("ERR value is not an integer or out of range");
    let mut asked = world.take(Name::Control);
    asked.extend(world.take(Name::Waiting));
    assert!(
        asked[0].starts_with("DQ.NACK q a TOKEN 77 SILENT DELAY "),
        "{asked:?}"
    );
    let name = if asked.len() > 1 {
        Name::Waiting
    } else {
        Name::Control
    };
    world.reply(name, vec![refusal()]);
    assert!(matches!(&world.said[..], [Said::Refused { .. }]));
    world.advance(Duration::from_millis(1));
    let mut asked = world.take(Name::Control);
    asked.extend(world.take(Name::Waiting));
    let failed = "DQ.NACK q a TOKEN 77 FAIL REASON snoozed with a delay that the server refuses";
    assert_eq!(asked[0], failed);
}

#[test]
fn an_ack_whose_answer_was_lost_is_no_loss() {
    let mut world = World::usual();
    world.deliver(&["a", "b"]);
    world.ends(1, End::Done(None));
    world.take(Name::Waiting);
    let waiting = Line {
        link: 0,
        name: Name::Waiting,
    };
    let turn = world.core.links[0].waiting.turn;
    world.on(Event::Broken(waiting, turn, "cut".into(), Sent::Cut));
    world.advance(Duration::from_millis(1));
    let asked = world.take(Name::Control);
    assert!(
        asked[0].starts_with("DQ.TOUCH q IDS 2 a 77 b 77"),
        "a heartbeat first: {asked:?}"
    );
    let touched = Value::Array(vec![Value::Nil, Value::Int(9)]);
    world.reply(Name::Control, vec![touched, Value::Int(0)]);
    assert!(world.lost.is_empty() && world.told.is_empty());
    // The first reply would say that the job is lost.
    world.ends(2, End::Done(None));
    world.advance(SECOND);
    let mut asked = world.take(Name::Control);
    let name = if asked.is_empty() {
        Name::Waiting
    } else {
        Name::Control
    };
    asked.extend(world.take(Name::Waiting));
    assert!(
        asked
            .iter()
            .any(|each| each == "DQ.ACK q WITHTOKENS IDS 1 b 77"),
        "{asked:?}"
    );
    world.reply(name, vec![Value::Int(0)]);
    assert_eq!(world.lost, ["b"]);
}

#[test]
fn a_lost_job_is_told_and_its_end_dropped() {
    let mut world = World::usual();
    world.deliver(&["a"]);
    world.take(Name::Waiting);
    world.advance(20 * SECOND);
    assert!(world
        .take(Name::Control)
        .contains(&"DQ.TOUCH q IDS 1 a 77".to_owned()));
    world.reply(Name::Control, vec![Value::Array(vec![Value::Nil])]);
    assert_eq!(
        (world.told.as_slice(), world.lost.as_slice()),
        (
            [(1, CancelReason::Lost)].as_slice(),
            ["a".to_owned()].as_slice()
        )
    );
    world.ends(1, End::Done(None));
    world.advance(SECOND);
    let asked = [world.take(Name::Control), world.take(Name::Waiting)].concat();
    assert!(!asked.iter().any(|each| each.contains("ACK")), "{asked:?}");
}

#[test]
fn a_job_that_is_lost_before_it_began_is_not_begun() {
    let mut world = World::new(Settings {
        concurrency: 1,
        prefetch: 1,
        ..settings(Shape::default())
    });
    world.deliver(&["a", "b"]);
    world.advance(20 * SECOND);
    world.take(Name::Waiting);
    world.reply(
        Name::Control,
        vec![Value::Array(vec![Value::Int(9), Value::Nil])],
    );
    assert_eq!(world.lost, ["b"]);
    let one = BPOP.replace("COUNT 2", "COUNT 1");
    assert_eq!(world.take(Name::Waiting), [one], "there is room again");
    world.ends(1, End::Done(None));
    assert_eq!(world.started, [1]);
}

#[test]
fn a_lease_is_over_by_ones_own_clock() {
    let mut world = World::usual();
    world.reply(Name::Waiting, vec![found(vec![row("a", 3000, 0, None)])]);
    world.advance(Duration::from_millis(2999));
    assert!(world.told.is_empty());
    world.advance(Duration::from_millis(1));
    assert_eq!(world.told, [(1, CancelReason::Lost)]);
}

#[test]
fn what_came_while_the_program_stood_still_is_asked_for_first() {
    let mut world = World::usual();
    world.take(Name::Control);
    world.now += 3600 * SECOND;
    world.deliver(&["a"]);
    assert!(world.started.is_empty());
    assert_eq!(world.take(Name::Control), ["DQ.TOUCH q IDS 1 a 77"]);
    world.reply(Name::Control, vec![Value::Array(vec![Value::Int(9)])]);
    assert_eq!(world.started, [1]);
}

#[test]
fn the_ear_listens_for_what_is_old() {
    let mut world = World::usual();
    world.deliver(&["a", "b"]);
    world.ends(1, End::Done(None));
    world.advance(super::listener::OLD);
    let heard = world.take(Name::Listener(0));
    assert_eq!(heard, ["DQ.BTOUCH q 20 IDS 1 b 77"]);
    world.reply(Name::Listener(0), vec![Value::Array(vec![Value::Nil])]);
    assert_eq!(world.told, [(2, CancelReason::Lost)]);
}

#[test]
fn a_handler_has_its_time() {
    let shape = Shape {
        timeout: Some(2 * SECOND),
        ..Shape::default()
    };
    let mut world = World::new(settings(shape));
    world.deliver(&["a"]);
    world.advance(2 * SECOND);
    assert_eq!(world.told, [(1, CancelReason::Timeout)]);
    world.advance(Duration::from_millis(1));
    let asked = [world.take(Name::Control), world.take(Name::Waiting)].concat();
    assert!(
        asked
            .iter()
            .any(|each| each.ends_with("REASON timeout after 2 s")),
        "{asked:?}"
    );
}

#[test]
fn progress_goes_once_a_second_and_with_the_end() {
    let mut world = World::usual();
    world.deliver(&["a"]);
    for text in ["0.1", "0.2", "0.3"] {
        world.on(Event::Progress(1, text.into()));
    }
    assert_eq!(
        world.take(Name::Control),
        ["DQ.TOUCH q a TOKEN 77 PROGRESS 0.1"]
    );
    world.reply(Name::Control, vec![Value::Int(9)]);
    world.advance(Duration::from_millis(500));
    world.ends(1, End::Done(None));
    world.advance(Duration::from_millis(1));
    let asked = [world.take(Name::Control), world.take(Name::Waiting)].concat();
    let at = asked
        .iter()
        .position(|each| each.ends_with("PROGRESS 0.3"))
        .expect("the last one");
    assert_eq!(asked[at + 1], "DQ.ACK q WITHTOKENS IDS 1 a 77");
}

#[test]
fn a_stop_gives_back_what_is_left_in_one_command() {
    let mut world = World::usual();
    world.deliver(&["a", "b"]);
    world.on(Event::Stop);
    world.advance(9 * SECOND);
    assert!(world.told.is_empty());
    world.advance(SECOND);
    assert_eq!(
        world.told,
        [(1, CancelReason::Stopping), (2, CancelReason::Stopping)]
    );
    world.ends(
        2,
        End::Failed {
            reason: "told".into(),
            wait: None,
        },
    );
    world.take(Name::Control);
    world.reply(Name::Control, vec![bulk("ready")]);
    world.advance(SECOND / 2);
    assert_eq!(world.take(Name::Control), ["DQ.NACK q IDS 1 a 77 SILENT"]);
    world.reply(Name::Control, vec![Value::Array(vec![bulk("ready")])]);
    world.advance(SECOND);
    assert_eq!(world.finished, Some(Ok(())));
}

#[test]
fn what_waiting_does_not_mend_ends_it() {
    let mut world = World::usual();
    world.reply(Name::Waiting, vec![error("ERR unknown command 'DQ.BPOP'")]);
    world.advance(2 * SECOND);
    let text = world
        .finished
        .expect("it has ended")
        .expect_err("with an error");
    assert!(text.contains("loadmodule"), "{text}");
    let mut world = World::usual();
    world.reply(Name::Waiting, vec![error("LOADING the server is loading")]);
    world.take(Name::Waiting);
    world.advance(2 * SECOND);
    assert!(world.finished.is_none() && world.take(Name::Waiting)[0].starts_with("DQ.BPOP"));
}

#[test]
fn an_answer_says_that_a_job_is_dead() {
    let mut world = World::usual();
    world.deliver(&["a", "b"]);
    let given_up = || End::GaveUp {
        reason: "no".into(),
    };
    let ends = |world: &mut World, serial, answer| {
        world.ends(serial, given_up());
        world.advance(Duration::from_millis(1));
        let name = match world.core.links[0].control.asked.is_empty() {
            true => Name::Waiting,
            false => Name::Control,
        };
        world.reply(name, vec![answer]);
    };
    ends(&mut world, 1, bulk("ready"));
    assert!(world.died.is_empty());
    ends(&mut world, 2, bulk("dead"));
    assert_eq!(world.died, ["b"]);
    world.deliver(&["c"]);
    world.ends(3, given_up());
    world.advance(Duration::from_millis(1));
    let control = Line {
        link: 0,
        name: Name::Control,
    };
    let turn = world.core.links[0].control.turn;
    world.on(Event::Broken(control, turn, "cut".into(), Sent::Cut));
    world.advance(SECOND);
    let touched = Value::Array(vec![Value::Nil]);
    world.reply(Name::Control, vec![touched, Value::Nil]);
    assert_eq!(world.died, ["b", "c"], "the answer was lost");
}

#[test]
fn only_what_the_server_cuts_is_not_sent_a_third_time() {
    let mut world = World::usual();
    world.deliver(&["a"]);
    world.ends(1, End::Done(Some(vec![b'x'; 2 << 20])));
    world.advance(SECOND);
    for (sent, next) in [
        (Sent::Cut, "DQ.ACK"),
        (Sent::Closed, "DQ.ACK"),
        (Sent::Cut, "DQ.NACK"),
    ] {
        for name in [Name::Waiting, Name::Control] {
            let turn = world.core.links[0].state(name).turn;
            world.on(Event::Broken(
                Line { link: 0, name },
                turn,
                "cut".into(),
                sent,
            ));
        }
        world.take(Name::Waiting);
        world.take(Name::Control);
        world.advance(6 * SECOND);
        let asked = [world.take(Name::Control), world.take(Name::Waiting)].concat();
        assert!(
            asked.iter().any(|each| each.starts_with(next)),
            "{next}: {:?}",
            asked
                .iter()
                .map(|each| &each[..each.len().min(60)])
                .collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_word_of_an_old_connection_does_not_count() {
    let mut world = World::usual();
    let waiting = Line {
        link: 0,
        name: Name::Waiting,
    };
    world.on(Event::Broken(waiting, 0, "cut".into(), Sent::Cut));
    world.on(Event::Replies(waiting, 0, vec![jobs(&["a"])]));
    assert!(world.started.is_empty());
}

#[test]
fn a_command_that_ends_connections_fails_with_its_size() {
    let mut world = World::usual();
    world.deliver(&["a"]);
    let mut add = redis::cmd("DQ.ADD");
    add.arg("q").arg("child").arg(vec![b'x'; 2 << 20]);
    world.on(Event::Suspended(1, Suspension(vec![add], vec![])));
    world.ends(1, End::Suspended);
    world.advance(SECOND);
    for _ in 0..2 {
        for name in [Name::Waiting, Name::Control] {
            let turn = world.core.links[0].state(name).turn;
            let line = Line { link: 0, name };
            world.on(Event::Broken(line, turn, "broken pipe".into(), Sent::Cut));
        }
        world.take(Name::Waiting);
        world.take(Name::Control);
        world.advance(6 * SECOND);
    }
    let asked = [world.take(Name::Control), world.take(Name::Waiting)].concat();
    let why = "REASON 2097198 bytes cannot be sent: they cut the connection twice (broken pipe)";
    assert!(asked.iter().any(|each| each.contains(why)), "{asked:?}");
}

/// A row of a delivery by a number.
fn attempt(id: &str, number: i64, limit: i64) -> Value {
    let Value::Array(mut fields) = row(id, 60_000, limit, None) else {
        unreachable!("a row is an array")
    };
    fields[3] = Value::Int(number);
    Value::Array(fields)
}

const GET: &str = "DQ.GET q k PREFIX 0";

#[test]
fn a_delivery_over_the_limit_does_not_run() {
    let three = Shape {
        attempts: 3,
        ..Shape::default()
    };
    for (shape, limit) in [(Shape::default(), 3), (three.clone(), 0), (three, 9)] {
        let mut world = World::new(settings(shape));
        world.reply(Name::Waiting, vec![found(vec![attempt("k", 4, limit)])]);
        world.advance(Duration::from_millis(1));
        let asked = [world.take(Name::Control), world.take(Name::Waiting)].concat();
        let dead = "DQ.NACK q k TOKEN 77 FATAL REASON attempts used up; its workers were lost";
        assert!(asked.iter().any(|each| each == dead), "{asked:?}");
        assert!(world.started.is_empty());
    }
}

fn lease_ended() -> Value {
    Value::Array(vec![bulk("reason"), bulk("lease ended")])
}

fn given_back(id: &str) -> [String; 1] {
    [format!("DQ.NACK q IDS 1 {id} 77 SILENT")]
}

fn ready() -> Vec<Value> {
    vec![Value::Array(vec![bulk("ready")])]
}

#[test]
fn what_may_have_killed_its_worker_runs_alone() {
    let mut world = World::usual();
    world.opened("here");
    let rows = vec![attempt("k", 3, 3), row("a", 60_000, 0, None)];
    world.reply(Name::Waiting, vec![found(rows)]);
    world.take(Name::Waiting);
    assert_eq!(world.take(Name::Control), [GET]);
    world.reply(Name::Control, vec![lease_ended()]);
    assert_eq!(world.take(Name::Control), given_back("k"));
    assert!(world.started.is_empty(), "a could take k along");
    world.reply(Name::Control, ready());
    assert_eq!(world.started, [2]);
    assert!(world.take(Name::Waiting).is_empty(), "nothing beside it");
    world.ends(2, End::Done(None));
    let fetch = world.take(Name::Waiting);
    assert!(fetch[1].contains(" COUNT 1 "), "{fetch:?}");
    world.reply(
        Name::Waiting,
        vec![
            Value::Array(vec![Value::Int(1)]),
            found(vec![attempt("k", 3, 3)]),
        ],
    );
    assert_eq!(world.take(Name::Control), [GET]);
    world.reply(Name::Control, vec![lease_ended()]);
    assert_eq!(world.started, [2, 3]);
    assert!(world.take(Name::Waiting).is_empty(), "nothing beside it");
    world.ends(3, End::Done(None));
    let fetch = world.take(Name::Waiting);
    assert!(fetch[1].contains(" COUNT 2 "), "{fetch:?}");
}

#[test]
fn of_two_one_is_back_before_the_other_runs_alone() {
    let mut world = World::usual();
    world.opened("here");
    let rows = vec![attempt("k", 3, 3), attempt("b", 3, 3)];
    world.reply(Name::Waiting, vec![found(rows)]);
    world.take(Name::Control);
    world.reply(Name::Control, vec![lease_ended(), lease_ended()]);
    assert_eq!(world.take(Name::Control), given_back("k"));
    assert!(world.started.is_empty(), "k would be lost along with b");
    world.reply(Name::Control, ready());
    assert_eq!(world.started, [2]);
}

#[test]
fn a_handler_that_takes_long_does_not_keep_others_idle() {
    let mut world = World::usual();
    world.opened("here");
    let drain = world.core.settings.drain;
    world.reply(Name::Waiting, vec![found(vec![row("a", 60_000, 0, None)])]);
    world.take(Name::Waiting);
    for wait in [None, Some(())] {
        world.reply(Name::Waiting, vec![found(vec![attempt("k", 3, 3)])]);
        world.take(Name::Control);
        world.reply(Name::Control, vec![lease_ended()]);
        if wait.is_some() {
            world.advance(Duration::from_millis(1));
            let asked = [world.take(Name::Control), world.take(Name::Waiting)].concat();
            let delayed = "DQ.NACK q k TOKEN 77 SILENT DELAY ";
            assert!(
                asked.iter().any(|each| each.starts_with(delayed)),
                "{asked:?}"
            );
            continue;
        }
        assert_eq!(world.take(Name::Control), given_back("k"));
        world.reply(Name::Control, ready());
        assert!(world.take(Name::Waiting).is_empty(), "nothing is fetched");
        world.advance(drain);
        assert_eq!(world.take(Name::Waiting).len(), 1);
    }
    assert_eq!(world.started, [1]);
}

#[test]
fn what_failed_by_itself_runs_among_others() {
    for reply in [
        Value::Array(vec![bulk("reason"), bulk("Boom: no")]),
        error("NOPERM this user has no permissions to run the 'dq.get' command"),
    ] {
        let mut world = World::usual();
        world.reply(Name::Waiting, vec![found(vec![attempt("k", 3, 3)])]);
        assert_eq!(world.take(Name::Control), [GET]);
        world.reply(Name::Control, vec![reply]);
        assert_eq!(world.started, [1]);
        assert!(world.core.alone.is_none());
    }
}

#[test]
fn a_stop_ends_the_fetch_by_unblock_on_its_own_server() {
    let mut world = World::usual();
    world.opened("here");
    world.on(Event::Stop);
    for _ in 0..3 {
        assert_eq!(world.take(Name::Control), ["DQ.UNBLOCK 7"]);
        world.reply(Name::Control, vec![Value::Int(0)]);
        world.advance(Duration::from_millis(49));
        assert!(world.take(Name::Control).is_empty());
        world.advance(Duration::from_millis(1));
    }
    world.reply(Name::Waiting, vec![Value::Nil]);
    world.advance(Duration::ZERO);
    assert_eq!(world.finished, Some(Ok(())));

    // After a failover, the number is another client's.
    let mut world = World::usual();
    world.opened("elsewhere");
    world.on(Event::Stop);
    assert!(world.take(Name::Control).is_empty());
    assert_eq!(world.core.links[0].waiting.turn, 1, "it was closed");
}

#[test]
fn a_kind_that_nobody_knows_is_tried_by_later_workers() {
    let shape = Shape {
        kind: Some("x".into()),
        ..Shape::default()
    };
    let unknown = |kind: &str, number: i64| {
        let mut world = World::new(settings(shape.clone()));
        let Value::Array(mut fields) = attempt("k", number, 0) else {
            unreachable!("a row is an array")
        };
        fields[1] = bulk(&format!(r#"{{"dq":1,"kind":"{kind}","data":null}}"#));
        world.reply(Name::Waiting, vec![found(vec![Value::Array(fields)])]);
        world.advance(Duration::from_millis(1));
        [world.take(Name::Control), world.take(Name::Waiting)].concat()
    };
    for (number, rest) in [
        (2, "FAIL DELAY 120000 REASON unknown kind \"y\""),
        (13, "FAIL DELAY 780000 REASON unknown kind \"y\""),
        (14, "FATAL REASON unknown kind \"y\""),
    ] {
        let asked = unknown("y", number);
        let nack = format!("DQ.NACK q k TOKEN 77 {rest}");
        assert!(asked.contains(&nack), "{asked:?}");
        let counts = asked.contains(&"DQ.STEP q k 77 dq:unknown 1".to_owned());
        assert_eq!(counts, rest.starts_with("FAIL"), "{asked:?}");
    }
    let cut = format!(
        "DQ.NACK q k TOKEN 77 FATAL REASON unknown kind \"{}\"",
        "y".repeat(100)
    );
    assert!(unknown(&"y".repeat(2000), 14).contains(&cut));
}

#[test]
fn workers_that_do_not_know_a_kind_use_up_no_attempt_of_its_handler() {
    let limit = |kept: &str, number, own| {
        let Value::Array(mut fields) = attempt("k", number, own) else {
            unreachable!("a row is an array")
        };
        fields[7] = Value::Array(vec![bulk("dq:unknown"), bulk(kept)]);
        let key: Arc<[u8]> = b"q".as_slice().into();
        let of = Delivered::read(&key, Value::Array(fields)).unwrap();
        [super::limit(&of, 3), super::limit(&of, 0)]
    };
    assert_eq!(limit("5", 6, 0), [8, 0]);
    assert_eq!(limit("5", 6, 7), [7, 7], "the job's own limit counts them");
    assert_eq!(limit("5", 2, 0), [4, 0], "as after a KICK");
    for kept in ["", "-1", "x", "99999999999"] {
        assert_eq!(limit(kept, 6, 0), [3, 0]);
    }
}

#[test]
fn a_result_that_ends_connections_is_not_sent_a_third_time() {
    let mut world = World::usual();
    world.deliver(&["a"]);
    let of = world.core.held[&1].of.clone();
    let done = End::Done(Some(vec![b'x'; (1 << 20) + 1]));
    let mut outcome = Outcome::ended(1, &of, &Shape::default(), done);
    assert_eq!(
        (outcome.broke(), outcome.broke()),
        (None, Some((1 << 20) + 1))
    );
    assert!(outcome.refused("the connection ended"));
    let mut sent = Vec::new();
    outcome.write(&mut sent);
    let reason = "DQ.NACK q a TOKEN 77 FATAL REASON result cannot be stored: 1048577 bytes";
    assert_eq!(words(&sent[0]), reason);
}

#[test]
fn a_fetch_that_gave_way_goes_on_with_its_wait_for_a_batch() {
    let fill = Fill {
        jobs: 50,
        wait: 2 * SECOND,
    };
    let mut fetches = Fetches::new(Vec::new(), false, Some(fill));
    let begin = Instant::now();
    let mut said = |count, after, ends: Option<(bool, Duration)>| {
        let at = begin + after;
        let call = fetches.command(count, 5 * SECOND, Lease::Own, &mut Rng(1), at);
        if let Some((is_any, lasted)) = ends {
            fetches.fetched(is_any, at + lasted);
        }
        words(&call)
            .split(" WITH")
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let gave_way = Some((false, SECOND / 4));
    assert_eq!(
        said(100, Duration::ZERO, None),
        "DQ.BPOP 5 COUNT 100 FILL 50 2000"
    );
    assert_eq!(said(40, SECOND, None), "DQ.BPOP 5 COUNT 40 FILL 40 2000");
    assert_eq!(said(1, SECOND, None), "DQ.BPOP 5 COUNT 1");
    said(100, 10 * SECOND, gave_way);
    said(100, 11 * SECOND, gave_way);
    let half = 11 * SECOND + SECOND / 2;
    assert_eq!(said(100, half, gave_way), "DQ.BPOP 5 COUNT 100 FILL 50 500");
    let late = said(100, 20 * SECOND, Some((true, SECOND)));
    assert_eq!(late, "DQ.BPOP 5 COUNT 100 FILL 50 1");
    said(100, 30 * SECOND, Some((false, 5 * SECOND)));
    assert_eq!(
        said(100, 35 * SECOND, None),
        "DQ.BPOP 5 COUNT 100 FILL 50 2000"
    );
}

#[test]
fn a_fill_is_within_its_batch() {
    for (jobs, wait) in [(1, SECOND), (11, SECOND), (5, Duration::ZERO)] {
        let mut wrong = settings(Shape {
            batch: 10,
            fill: Some(Fill { jobs, wait }),
            ..Shape::default()
        });
        assert!(wrong.bound().is_err());
    }
}
