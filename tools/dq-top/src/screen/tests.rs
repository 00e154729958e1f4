//! What is drawn, checked on a terminal in memory.

use std::time::{Duration, Instant};

use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use ratatui::Terminal;

use super::draw;
use super::theme::Theme;
use crate::app::App;
use dq_watch::model::board::Order;
use dq_watch::model::overall::ServerInfo;
use dq_watch::model::stats::Stats;
use dq_watch::model::QueueKey;
use dq_watch::read::detail::{
    After, Attempt, Cut, Ended, Found, Job, Part, PeekedJob, Rule, Settings, State, Step, When,
};
use dq_watch::read::said::{Said, Value};
use dq_watch::read::{Heard, News, Report};
use dq_watch::text::why::{Reason, Why};

pub const NODE: &str = "127.0.0.1:6379";
const EVIL: &[u8] = b"evil\x1b[2J\0\xff\xe2\x80\xae\xc2\x9b \xf0\x9f\x98\x80 name";
pub const NOW_MS: i64 = 1_795_159_827_000;

pub fn hear(app: &mut App, news: News) {
    let node = NODE.to_owned();
    app.hear(Report { node, news });
}

fn press(app: &mut App, code: KeyCode) {
    app.key(KeyEvent::new(code, KeyModifiers::NONE));
}

fn stats(delivered: u64) -> Stats {
    let mut stats = Stats {
        jobs: [1200, 34, 5, 6, 7, 8],
        next_due: Some(NOW_MS + 90_000),
        oldest_ready_ms: Some(12_000),
        waiting_clients: 7,
        paused: -1,
        rate_used: 7,
        lateness_count: delivered,
        lateness_max_us: 10,
        lateness: [10, 20, 50, 100]
            .map(|bound| (Some(bound), delivered))
            .into(),
        ..Stats::default()
    };
    stats.totals = [delivered; 9];
    stats
}

/// Two readings, five seconds apart, of a server with two queues.
fn app(size: (u16, u16)) -> App {
    let mut app = App::new(NODE, Order::default(), Duration::from_secs(1), false);
    app.size = size;
    let start = Instant::now();
    for (delivered, seconds) in [(100, 0), (200, 5)] {
        let at = start + Duration::from_secs(seconds);
        let text = format!(
            "redis_version:7.0.15\r\nrole:master\r\nserver_time_usec:{NOW_MS}000\r\nuptime_in_seconds:93784\r\n\
             used_memory:12345678\r\ninstantaneous_ops_per_sec:1234\r\ndq_queues:2\r\ndq_jobs_delayed:1200\r\n\
             dq_added_total:{delivered}\r\ndq_timer_late_us_max:1500\r\ndq_timer_fires_total:9\r\n"
        );
        hear(
            &mut app,
            News::Info {
                info: Box::new(ServerInfo::parse(&text)),
                at,
            },
        );
        let keys = [QueueKey::new(0, "mails"), QueueKey::new(0, EVIL)];
        let read = keys.map(|key| (key, Heard::Figures(Box::new(stats(delivered)))));
        hear(
            &mut app,
            News::Queues {
                read: read.into(),
                at,
            },
        );
    }
    hear(
        &mut app,
        News::Scanned {
            found: Vec::new(),
            complete: true,
        },
    );
    app
}

fn why(is_of_job: bool) -> Why {
    Why {
        is_of_job,
        reasons: vec![Reason {
            code: String::from_utf8_lossy(EVIL).into_owned(),
            number: u64::MAX,
            until_ms: Some(i64::MAX),
        }],
        ..Why::default()
    }
}

/// All that a job can have.
fn full(id: &[u8], state: &str) -> Job {
    let ended = Ended {
        id: EVIL.to_vec(),
        outcome: Some("done".to_owned()),
        value: None,
    };
    let attempt = Attempt {
        attempts: 7,
        started_ms: NOW_MS,
        ended_ms: 0,
        how: String::from_utf8_lossy(EVIL).into_owned(),
        reason: Some(EVIL.repeat(100)),
    };
    let step = Step {
        name: EVIL.to_vec(),
        value: Cut::of(EVIL, 9),
    };
    Job {
        id: id.to_vec(),
        payload: Cut::of(&[0xc3; 300], 64),
        state: state.to_owned(),
        why: Some(why(true)),
        priority: i64::from(i32::MIN),
        due_ms: Some(NOW_MS + 5_000),
        deadline_ms: Some(1 << 42),
        ttr_ms: 1 << 42,
        attempts: u64::from(u32::MAX),
        max_attempts: u64::from(u32::MAX),
        backoff_ms: vec![1 << 40; 1024],
        expires_ms: Some(1 << 42),
        token: Some("1882361448423751680".to_owned()),
        failed_ms: Some(NOW_MS - 1),
        reason: Some(EVIL.repeat(100)),
        history: vec![attempt; 100],
        client: Some(EVIL.to_vec()),
        group: Some(EVIL.to_vec()),
        successor: Some(Cut::of(EVIL, 100)),
        rule: Some(Rule {
            when: When::Cron {
                expression: String::from_utf8_lossy(EVIL).into_owned(),
                zone: "Europe/Berlin".to_owned(),
            },
            until_ms: Some(i64::MAX),
            times: Some(3),
            grace_ms: Some(1),
            jitter_ms: Some(u64::MAX),
            occurrence_ms: NOW_MS,
            runs: 2,
            next_ms: vec![NOW_MS + 60_000; 5],
        }),
        started_ms: Some(NOW_MS - 5_200),
        finished_ms: Some(NOW_MS - 1_000),
        result: Some(Cut::of(EVIL, 100)),
        progress: Some(b"\x1b 50 %".to_vec()),
        awaits: Some(EVIL.to_vec()),
        after: Some(After::Jobs {
            ids: vec![EVIL.to_vec(); 1000],
            on_dead: "wait".to_owned(),
        }),
        results: vec![ended; 1000],
        steps: vec![step; 1000],
        said: vec![Said {
            name: "keep",
            value: Value::Millis(u64::MAX),
        }],
    }
}

/// Answers the question of the open view.
fn answer(app: &mut App) {
    let Some(detail) = app
        .queue_view()
        .and_then(|view| view.detail(app.job_rows()))
    else {
        return;
    };
    let payload = [EVIL, b"\n", &[0xc3; 300]].concat();
    let found = match &detail.part {
        Part::Settings => Found::Settings(Box::new(Settings {
            ttr_ms: 60_000,
            rate: (10, 1000),
            groupmax: 5,
            grouprate: (100, 60_000),
            groupfifo: true,
            donelen: 1000,
            donettl_ms: 3_600_000,
            why: Some(why(false)),
            ..Settings::default()
        })),
        Part::Job(id) => Found::Job(Box::new(full(id, "delayed"))),
        Part::Jobs {
            state, count, read, ..
        } => {
            let at_ms =
                |number: usize| (*state != State::Blocked).then_some(NOW_MS + number as i64);
            let job = |number: usize| PeekedJob {
                id: [EVIL, number.to_string().as_bytes()].concat(),
                payload: Cut::of(&payload, 50),
                at_ms: at_ms(number),
                attempts: u64::from(u32::MAX),
                priority: i64::from(i32::MIN),
            };
            let jobs: Vec<PeekedJob> = (0..*count).map(job).collect();
            let of = |it: &PeekedJob| (it.id.clone(), full(&it.id, state.word()));
            match read {
                true => Found::Read(jobs.clone(), jobs.iter().map(of).collect()),
                false => Found::Jobs(jobs),
            }
        }
    };
    hear(app, News::Detail { detail, found });
}

pub fn drawn(app: &mut App, size: (u16, u16), color: bool) -> Buffer {
    app.size = size;
    app.settle();
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).expect("memory");
    terminal
        .draw(|frame| draw(frame, app, Theme { color }))
        .expect("drawn");
    terminal.backend().buffer().clone()
}

pub fn lines(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    let line = |cells: &[ratatui::buffer::Cell]| {
        cells.iter().map(|cell| cell.symbol()).collect::<String>()
    };
    buffer
        .content
        .chunks(width)
        .map(|cells| line(cells).trim_end().to_owned())
        .collect()
}

/// Whether a terminal would interpret something in it.
fn is_dangerous(buffer: &Buffer) -> bool {
    let bad = |letter: char| letter.is_control() || letter == '\u{202e}';
    buffer
        .content
        .iter()
        .any(|cell| cell.symbol().chars().any(bad))
}

/// The views, each with the keys that open it.
fn views() -> Vec<(&'static str, Vec<KeyCode>)> {
    use KeyCode::{Char, Down, Enter, Right};
    vec![
        ("table", vec![]),
        ("sorted", vec![Right, Right, Char('r')]),
        ("filter", vec![Char('/'), Char('m')]),
        ("help", vec![Char('?')]),
        ("pause", vec![Char('p')]),
        ("purge", vec![Char('P'), Char('x')]),
        ("overview", vec![Enter]),
        ("evil overview", vec![Down, Enter]),
        ("delayed", vec![Enter, Char('2')]),
        ("dead", vec![Enter, Char('5'), Down]),
        ("kick", vec![Enter, Char('5'), Char('k')]),
        ("blocked", vec![Enter, Char('6')]),
        ("set free", vec![Enter, Char('6'), Char('k')]),
        ("done", vec![Enter, Char('7')]),
        ("run again", vec![Enter, Char('7'), Char('k')]),
        ("job", vec![Enter, Char('2'), Enter]),
        ("job in hex", vec![Enter, Char('2'), Enter, Char('x'), Down]),
        ("delete", vec![Enter, Char('2'), Enter, Char('d')]),
        ("workers", vec![Enter, Char('8'), Down]),
        ("give back", vec![Enter, Char('8'), Char('g')]),
    ]
}

fn keys_to(name: &str) -> Vec<KeyCode> {
    let view = views().into_iter().find(|view| view.0 == name);
    view.expect("a view").1
}

fn open(keys: &[KeyCode], size: (u16, u16)) -> App {
    let mut app = app(size);
    for &key in keys {
        answer(&mut app);
        press(&mut app, key);
    }
    answer(&mut app);
    app
}

#[test]
fn the_table_at_80_by_24() {
    let mut app = app((80, 24));
    let lines = lines(&drawn(&mut app, (80, 24), true));
    assert!(
        lines[0].starts_with(" dq top  127.0.0.1:6379  Redis 7.0.15 master"),
        "{}",
        lines[0]
    );
    assert!(
        lines[0].ends_with("up 1d2h  mem 12.3MB  1234 ops/s"),
        "{}",
        lines[0]
    );
    assert_eq!(
        lines[1],
        " queues 2   delayed 1200   ready 0   reserved 0   dead 0   waiting 0"
    );
    assert_eq!(
        lines[2],
        " per s: added 20   delivered 0   acked 0   nacked 0   timed out 0   died 0"
    );
    assert_eq!(
        lines[4],
        " QUEUE                  DELAYED  READY  RESVD   DEAD DLVR/s LATE99 OLDEST  WAIT"
    );
    let mails = lines
        .iter()
        .find(|line| line.contains("mails"))
        .expect("a row");
    let words: Vec<&str> = mails.split_whitespace().collect();
    assert_eq!(
        words,
        ["mails", "1200", "34", "5", "6", "20", "10µs", "12s", "7"]
    );
    assert_eq!(
        lines[23].trim_end(),
        " Enter open ←→ sort r reverse / filter p pause K kick P purge ? help q quit"
    );
}

#[test]
fn columns_are_under_their_titles_at_every_width() {
    for width in 60..220 {
        let mut app = app((width, 24));
        let lines = lines(&drawn(&mut app, (width, 24), true));
        let ends = |line: &str| -> Vec<usize> {
            use unicode_width::UnicodeWidthStr;
            let cut = |at: usize| line[..at].width();
            let ends = line
                .match_indices(' ')
                .filter(|(at, _)| *at > 0 && !line[..*at].ends_with(' '));
            ends.map(|(at, _)| cut(at)).chain([line.width()]).collect()
        };
        let titles = ends(&lines[4]);
        let mails = lines
            .iter()
            .find(|line| line.contains("mails"))
            .expect("a row");
        for end in &ends(mails)[1..] {
            assert!(titles.contains(end), "{width}:\n{}\n{mails}", lines[4]);
        }
    }
}

#[test]
fn every_view_can_be_drawn_at_every_size_and_nothing_gets_through() {
    for (name, keys) in views() {
        let mut app = open(&keys, (80, 24));
        for size in [
            (1, 1),
            (39, 9),
            (40, 10),
            (60, 12),
            (80, 24),
            (120, 40),
            (200, 50),
            (400, 100),
        ] {
            for color in [true, false] {
                let buffer = drawn(&mut app, size, color);
                assert!(!is_dangerous(&buffer), "{name} at {size:?}");
            }
            answer(&mut app);
        }
    }
}

#[test]
fn the_check_sees_what_is_dangerous() {
    let mut buffer = drawn(&mut app((80, 24)), (80, 24), true);
    assert!(!is_dangerous(&buffer));
    buffer.content[99].set_symbol("\u{1b}");
    assert!(is_dangerous(&buffer));
}

#[test]
fn without_colour_there_is_none() {
    let colours = |buffer: &Buffer| {
        let coloured =
            |cell: &&ratatui::buffer::Cell| cell.fg != Color::Reset || cell.bg != Color::Reset;
        buffer.content.iter().filter(coloured).count()
    };
    for (name, keys) in views() {
        let mut app = open(&keys, (120, 40));
        assert_eq!(colours(&drawn(&mut app, (120, 40), false)), 0, "{name}");
        assert!(colours(&drawn(&mut app, (120, 40), true)) > 0, "{name}");
    }
}

#[test]
fn a_queue_and_a_job_at_80_by_24() {
    let has_in = |height: u16, keys: &[KeyCode], texts: &[&str]| {
        let size = (80, height);
        let screen = lines(&drawn(&mut open(keys, size), size, true)).join("\n");
        for text in texts {
            assert!(screen.contains(text), "{text}:\n{screen}");
        }
    };
    let has = |keys: &[KeyCode], texts: &[&str]| has_in(24, keys, texts);
    // All that a job can have takes more lines.
    let has_all = |keys: &[KeyCode], texts: &[&str]| has_in(32, keys, texts);
    let keys = keys_to;
    let down: Vec<KeyCode> = keys("evil overview");
    has(
        &down,
        &[
            "mails",
            "paused until resumed",
            "ttr         1m",
            "10 in 1.0s",
            "rate used   7 of 10",
            "late max",
            "groupmax    5",
            "grouprate   100 in 1m",
            "groupfifo   on",
            "donelen     1000",
            "donettl     1h",
            "LATENESS of 200",
        ],
    );
    has(
        &keys("evil overview")[1..],
        &[r"evil\x1b[2J\x00\xff\u{202e}\u{9b} "],
    );
    has(&keys("dead"), &["DIED", "page 1"]);
    has(
        &keys("kick"),
        &["Kick a job", r#"The dead job "evil"#, "y  do it"],
    );
    has_all(
        &keys("job"),
        &[
            "state delayed",
            "due in 5.0s",
            "token 1882361448423751680",
            "the first 64B of them",
        ],
    );
    has(&keys("blocked"), &["blocked 7", "DUE", " -  "]);
    has(&keys("done"), &["FINISHED", "done 8"]);
    has(
        &keys("set free"),
        &[
            "The blocked job",
            "becomes ready now, whatever it waits for.",
        ],
    );
    has(
        &keys("run again"),
        &["The done job", "no attempts used, without its result."],
    );
    has_all(&keys("job"), &["ran for 4.2s", "finished 1.0s ago"]);
    has_all(
        &keys("job in hex"),
        &["PAYLOAD as hex", "00000010  f0 9f 98 80 20 6e"],
    );
}

/// The colours of a line's characters.
fn colours_of(buffer: &Buffer, line: u16) -> Vec<Color> {
    let cells = (0..buffer.area.width).filter_map(|x| buffer.cell((x, line)));
    let mut colours: Vec<Color> = cells
        .filter(|cell| cell.symbol() != " ")
        .map(|cell| cell.fg)
        .collect();
    colours.dedup();
    colours
}

#[test]
fn what_is_wrong_stands_in_the_middle_where_there_is_nothing_else() {
    let why =
        "the server 127.0.0.1:6379 takes no such user or password, which has to be told in full";
    let mut app = App::new(NODE, Order::default(), Duration::from_secs(1), false);
    hear(&mut app, News::Down(why.to_owned()));
    for (width, height) in [(80, 24), (60, 16), (200, 50)] {
        let buffer = drawn(&mut app, (width, height), true);
        let lines = lines(&buffer);
        let place = |word: &str| lines.iter().position(|line| line.contains(word));
        let (first, last) = (place("No connection to"), place("full."));
        let (first, last) = (first.expect("told"), last.expect("all of it"));
        let height = usize::from(height);
        assert!(first > 4 && last < height - 2, "{lines:#?}");
        assert!((first + last).abs_diff(height) < 8, "{lines:#?}");
        assert!(lines[first].starts_with("    "), "{lines:#?}");
        assert_eq!(lines[height - 2], "", "and once only");
        assert_eq!(colours_of(&buffer, first as u16), [Color::Red]);
    }
}

#[test]
fn figures_of_a_server_that_is_away_are_grey() {
    let all = views();
    for (name, keys) in all
        .iter()
        .filter(|view| ["table", "overview", "delayed"].contains(&view.0))
    {
        let mut app = open(keys, (100, 30));
        let fresh = drawn(&mut app, (100, 30), true);
        assert!(
            (1..28).any(|line| colours_of(&fresh, line).contains(&Color::Yellow)),
            "{name}"
        );
        hear(&mut app, News::Down("Connection refused".to_owned()));
        let stale = drawn(&mut app, (100, 30), true);
        for line in 1..28 {
            let colours = colours_of(&stale, line);
            assert!(
                colours.iter().all(|colour| *colour == Color::DarkGray),
                "{name} {line}: {colours:?}"
            );
        }
        let shown = lines(&stale);
        assert!(shown[0].ends_with("no connection"), "{}", shown[0]);
        assert!(shown[28].contains("Connection refused"), "{}", shown[28]);
    }
}

#[test]
fn each_figure_has_a_name_of_its_own() {
    let shown = lines(&drawn(&mut app((120, 24)), (120, 24), true));
    for name in ["late mean", "late max", "timer/s", "timer late max"] {
        assert!(shown[3].contains(name), "{}", shown[3]);
    }
    assert!(!shown[3].contains("worst"));
}

#[test]
fn many_jobs_that_one_waits_for_are_told_by_a_few() {
    let keys = &keys_to("job");
    let screen = lines(&drawn(&mut open(keys, (2000, 40)), (2000, 40), true)).join("\n");
    for told in [
        "waits for evil",
        "and 992 more (on dead: wait)",
        "ended evil",
        "RESULT as text",
    ] {
        assert!(screen.contains(told), "{told}:\n{screen}");
    }
}

#[test]
fn counts_or_keys_of_the_tabs_go_where_the_screen_is_narrow() {
    let keys = &keys_to("done");
    for (width, tabs) in [
        (120, "  1 overview   2 delayed 1200   3 ready 34   4 reserved 5   5 dead 6   6 blocked 7   7 done 8"),
        (80, "  overview   delayed 1200   ready 34   reserved 5   dead 6   blocked 7   done 8"),
        (70, "  1 overview   2 delayed   3 ready   4 reserved   5 dead   6 blocked"),
    ] {
        let shown = lines(&drawn(&mut open(keys, (width, 24)), (width, 24), true))[2].clone();
        assert!(shown.starts_with(tabs), "{shown}");
    }
}

#[test]
fn at_40_columns_the_dead_are_there_and_why() {
    let rows = lines(&drawn(&mut app((40, 24)), (40, 24), true)).join("\n");
    assert!(rows.contains("DEAD") && !rows.contains("RESVD"), "{rows}");
    let keys = keys_to("dead");
    for (width, title) in [(40, "WHY"), (200, "REASON, PAYLOAD")] {
        let mut app = open(&keys, (width, 24));
        answer(&mut app);
        let screen = lines(&drawn(&mut app, (width, 24), true));
        assert!(screen[3].contains(title), "{}", screen[3]);
        let view = app.queue_view().expect("a queue");
        assert!(!view.read.is_empty());
    }
}

#[test]
fn what_is_wrong_is_told_with_care() {
    let mut app = app((80, 24));
    let told = |app: &mut App| lines(&drawn(app, (80, 24), true))[22].clone();
    hear(&mut app, News::Trouble("NOPERM \x1b[2J no SCAN".to_owned()));
    assert_eq!(told(&mut app), r" NOPERM \x1b[2J no SCAN");
    hear(&mut app, News::Down("Connection refused".to_owned()));
    assert!(told(&mut app).contains("No connection to 127.0.0.1:6379: Connection refused"));
    hear(&mut app, News::Trouble(String::new()));
    assert_eq!(told(&mut app), "");
}
