//! Keys and reports, without servers and terminal.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{App, Out};
use dq_watch::model::board::Order;
use dq_watch::model::overall::ServerInfo;
use dq_watch::model::stats::{Jobs, Stats};
use dq_watch::model::QueueKey;
use dq_watch::read::acts::Act;
use dq_watch::read::cluster::Topology;
use dq_watch::read::detail::{Cut, Detail, Found, Page, Part, PeekedJob, State};
use dq_watch::read::{Heard, News, Report, Request};

const NODE: &str = "127.0.0.1:7000";

fn app() -> App {
    App::new(NODE, Order::default(), Duration::from_secs(1), false)
}

fn hear(app: &mut App, node: &str, news: News) {
    let node = node.to_owned();
    app.hear(Report { node, news });
}

fn queues(names: &[&str], jobs: Jobs) -> News {
    let stats = Stats {
        jobs,
        ..Stats::default()
    };
    let heard = |name: &&str| {
        (
            QueueKey::new(0, *name),
            Heard::Figures(Box::new(stats.clone())),
        )
    };
    News::Queues {
        read: names.iter().map(heard).collect(),
        at: Instant::now(),
    }
}

fn press(app: &mut App, keys: &[KeyCode]) {
    for &code in keys {
        app.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
}

fn type_in(app: &mut App, text: &str) {
    press(app, &text.chars().map(KeyCode::Char).collect::<Vec<_>>());
}

/// The actions that are to be sent, and to which node.
fn acts(app: &mut App) -> Vec<(String, Act)> {
    let act = |out| match out {
        Out::To(node, Request::Act { act, .. }) => Some((node, act)),
        _ => None,
    };
    app.servers.outbox.drain(..).filter_map(act).collect()
}

#[test]
fn nothing_is_sent_before_a_yes() {
    let mut app = app();
    hear(&mut app, NODE, queues(&["q"], [0, 0, 0, 3, 0, 0]));
    type_in(&mut app, "K");
    assert!(app.prompt.is_some() && acts(&mut app).is_empty());
    press(&mut app, &[KeyCode::Enter]);
    assert!(
        app.prompt.is_none() && acts(&mut app).is_empty(),
        "Enter is no yes"
    );
    type_in(&mut app, "Ky");
    assert_eq!(
        acts(&mut app),
        [(NODE.to_owned(), Act::KickDead { count: 3 })]
    );
    type_in(&mut app, "Py");
    press(&mut app, &[KeyCode::Enter]);
    assert!(acts(&mut app).is_empty(), "y is not the word");
    type_in(&mut app, "Ppurge");
    assert!(acts(&mut app).is_empty(), "not before Enter");
    press(&mut app, &[KeyCode::Enter]);
    assert_eq!(
        acts(&mut app),
        [(NODE.to_owned(), Act::Purge { state: None })]
    );
}

#[test]
fn nothing_is_removed_before_it_is_known_who_dies_of_it() {
    let mut app = app();
    hear(&mut app, NODE, queues(&["q"], [0, 0, 0, 3, 7, 0]));
    press(&mut app, &[KeyCode::Enter]);
    type_in(&mut app, "5P");
    let wanted = app.servers.outbox.drain(..).find_map(|out| match out {
        Out::To(_, Request::Dying { wanted, .. }) => Some(wanted),
        _ => None,
    });
    let wanted = wanted.expect("it is asked for");
    type_in(&mut app, "purge");
    press(&mut app, &[KeyCode::Enter]);
    assert!(app.prompt.is_some() && acts(&mut app).is_empty());
    let answer = |wanted| News::Dying {
        wanted,
        dying: Ok((6, vec![b"a\n".to_vec()])),
    };
    // What was asked for another prompt is no answer to this one.
    hear(&mut app, NODE, answer(std::sync::Weak::new()));
    press(&mut app, &[KeyCode::Enter]);
    assert!(acts(&mut app).is_empty());
    hear(&mut app, NODE, answer(wanted.clone()));
    let lines = app.prompt.as_ref().map(|prompt| prompt.lines.join(" "));
    let lines = lines.expect("a prompt");
    assert!(lines.contains(r#"6 blocked jobs die of it:   "a\n"   and 5 more"#));
    press(&mut app, &[KeyCode::Enter]);
    assert_eq!(acts(&mut app).len(), 1);
    assert_eq!(wanted.strong_count(), 0, "nobody waits for it any more");
}

#[test]
fn an_act_is_about_what_was_asked_whatever_moves_meanwhile() {
    let mut app = app();
    hear(&mut app, NODE, queues(&["b"], [0, 0, 0, 3, 0, 0]));
    type_in(&mut app, "K");
    hear(&mut app, NODE, queues(&["a"], [0, 0, 0, 9, 0, 0]));
    type_in(&mut app, "y");
    let sent = app.servers.outbox.iter().find_map(|out| match out {
        Out::To(_, Request::Act { key, .. }) => Some(key.name.clone()),
        _ => None,
    });
    assert_eq!(sent, Some(b"b".to_vec()));
}

#[test]
fn until_one_is_selected_the_first_is_so_trouble_is_in_sight() {
    let mut app = app();
    app.size = (80, 12);
    hear(&mut app, NODE, queues(&["mails"], [0; 6]));
    let names: Vec<String> = (0..50).map(|number| format!("a{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    hear(&mut app, NODE, queues(&names, [0, 0, 0, 1, 0, 0]));
    assert_eq!(app.selected, Some(QueueKey::new(0, "a00")));
    assert_eq!(app.top, 0);
    press(&mut app, &[KeyCode::Down, KeyCode::Up]);
    hear(&mut app, NODE, queues(&["a"], [0, 0, 0, 1, 0, 0]));
    assert_eq!(app.selected, Some(QueueKey::new(0, "a")));
}

#[test]
fn the_selection_stays_with_its_queue_and_in_sight() {
    let mut app = app();
    app.size = (80, 12); // five rows
    let names: Vec<String> = (0..50).map(|number| format!("q{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    hear(&mut app, NODE, queues(&names, [0; 6]));
    press(
        &mut app,
        &[KeyCode::PageDown, KeyCode::PageDown, KeyCode::Down],
    );
    assert_eq!(app.selected, Some(QueueKey::new(0, "q11")));
    assert!(
        app.top <= 11 && 11 < app.top + app.table_rows(),
        "{}",
        app.top
    );
    hear(&mut app, NODE, queues(&["a", "b", "c"], [0; 6]));
    assert_eq!(
        app.selected,
        Some(QueueKey::new(0, "q11")),
        "others came before it"
    );
    assert!(app.top <= 14 && 14 < app.top + app.table_rows());
    press(&mut app, &[KeyCode::End]);
    assert_eq!(app.selected, Some(QueueKey::new(0, "q49")));
    hear(
        &mut app,
        NODE,
        News::Queues {
            read: vec![(QueueKey::new(0, "q49"), Heard::Forgotten)],
            at: Instant::now(),
        },
    );
    assert!(app.selected.is_some(), "another takes its place");
}

#[test]
fn nodes_are_told_what_is_in_sight_and_only_when_it_changes() {
    let mut app = app();
    hear(&mut app, NODE, queues(&["a", "b"], [0; 6]));
    let watched = |app: &mut App| -> Vec<_> {
        let watch = |out| match out {
            Out::To(_, Request::Watch(watch)) => Some(watch),
            _ => None,
        };
        app.servers.outbox.drain(..).filter_map(watch).collect()
    };
    assert_eq!(watched(&mut app).last().expect("told").visible.len(), 2);
    hear(&mut app, NODE, queues(&["a", "b"], [0; 6]));
    assert!(watched(&mut app).is_empty());
    press(&mut app, &[KeyCode::Enter]);
    let watch = watched(&mut app).pop().expect("told");
    assert_eq!(watch.visible, [QueueKey::new(0, "a")]);
    assert_eq!(watch.detail.map(|detail| detail.part), Some(Part::Settings));
}

#[test]
fn an_answer_to_an_older_question_is_not_shown() {
    let mut app = app();
    hear(&mut app, NODE, queues(&["a"], [9, 0, 0, 0, 0, 0]));
    press(&mut app, &[KeyCode::Enter, KeyCode::Char('2')]);
    let count = app.job_rows();
    let answer = |state: State, id: &str| News::Detail {
        detail: Detail {
            key: QueueKey::new(0, "a"),
            part: Part::Jobs {
                state,
                page: Page::default(),
                count,
                read: false,
            },
        },
        found: Found::Jobs(vec![PeekedJob {
            id: id.into(),
            payload: Cut::of(b"", 0),
            at_ms: Some(0),
            attempts: 0,
            priority: 0,
        }]),
    };
    let shown = |app: &App| {
        app.queue_view()
            .and_then(|view| view.job_id())
            .map(<[u8]>::to_vec)
    };
    hear(&mut app, NODE, answer(State::Dead, "wrong"));
    assert_eq!(shown(&app), None);
    hear(&mut app, NODE, answer(State::Delayed, "right"));
    assert_eq!(shown(&app), Some(b"right".to_vec()));
}

#[test]
fn an_act_is_sent_on_once_to_where_the_queue_went() {
    let mut app = app();
    let other = "127.0.0.1:7001";
    let topology = |me: &str| {
        News::Topology(Topology {
            me: me.to_owned(),
            i_am_master: true,
            masters: vec![NODE.to_owned(), other.to_owned()],
        })
    };
    hear(&mut app, NODE, topology(NODE));
    assert!(app
        .servers
        .outbox
        .iter()
        .any(|out| matches!(out, Out::Start(address) if address == other)));
    hear(&mut app, NODE, queues(&["q"], [0; 6]));
    let moved = |to: &str| News::Acted {
        key: QueueKey::new(0, "q"),
        act: Act::Resume,
        said: Err(format!("MOVED 1 {to}")),
        moved: Some(to.to_owned()),
    };
    hear(&mut app, NODE, moved(other));
    assert_eq!(acts(&mut app), [(other.to_owned(), Act::Resume)]);
    hear(&mut app, other, moved(NODE));
    assert!(acts(&mut app).is_empty(), "not to and fro");
    assert!(app
        .current_message()
        .is_some_and(|message| message.text.contains("MOVED")));
}

#[test]
fn a_master_that_is_lost_and_no_longer_listed_is_let_go() {
    let mut app = app();
    let other = "127.0.0.1:7001";
    let topology = |masters: &[&str]| {
        News::Topology(Topology {
            me: NODE.to_owned(),
            i_am_master: true,
            masters: masters.iter().map(|&it| it.to_owned()).collect(),
        })
    };
    hear(&mut app, NODE, topology(&[NODE, other]));
    hear(&mut app, other, queues(&["q"], [0; 6]));
    hear(&mut app, other, News::Down("gone".to_owned()));
    hear(&mut app, NODE, topology(&[NODE, other]));
    assert_eq!(app.servers.board.len(), 1, "it is listed still");
    hear(&mut app, NODE, topology(&[NODE]));
    assert_eq!((app.servers.board.len(), app.servers.nodes.len()), (0, 1));
    assert!(app
        .servers
        .outbox
        .iter()
        .any(|out| matches!(out, Out::Stop(name) if name == other)));
}

#[test]
fn a_replica_of_a_cluster_counts_nothing() {
    let mut app = app();
    let info = ServerInfo::parse("redis_version:7.0.15\r\ndq_queues:5\r\n");
    let at = Instant::now();
    hear(
        &mut app,
        NODE,
        News::Info {
            info: Box::new(info),
            at,
        },
    );
    assert_eq!(app.servers.overall().dq.queues, 5);
    for (i_am_master, queues) in [(false, 0), (true, 5)] {
        let topology = Topology {
            me: NODE.to_owned(),
            i_am_master,
            masters: Vec::new(),
        };
        hear(&mut app, NODE, News::Topology(topology));
        assert_eq!(app.servers.overall().dq.queues, queues);
    }
}
