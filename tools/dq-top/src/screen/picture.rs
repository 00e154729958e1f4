//! The picture in the README: the queues of a shop, as the monitor draws them.

use std::time::{Duration, Instant};

use super::tests::{drawn, hear, lines, NODE, NOW_MS};
use crate::app::App;
use dq_watch::model::board::Order;
use dq_watch::model::overall::ServerInfo;
use dq_watch::model::stats::{Jobs, Stats};
use dq_watch::model::QueueKey;
use dq_watch::read::{Heard, News};

/// Queues of a shop, with a reading each second, an hour in the future, so that no time passes for them meanwhile.
fn shop() -> App {
    let mut app = App::new(NODE, Order::default(), Duration::from_secs(1), false);
    let start = Instant::now() + Duration::from_secs(3600);
    // Name, jobs by state, deliveries a second, lateness, age of the oldest ready, next due time, waiting, paused.
    type Queue = (&'static str, Jobs, u64, u64, Option<u64>, i64, u64, i64);
    let queues: [Queue; 6] = [
        (
            "invoices",
            [1_204, 0, 3, 2, 0, 1_000],
            3,
            50,
            None,
            1_800,
            4,
            0,
        ),
        (
            "mails",
            [48_310, 12, 40, 0, 0, 0],
            310,
            20,
            Some(40),
            12,
            0,
            0,
        ),
        (
            "newsletter",
            [250_000, 9_120, 0, 0, 0, 0],
            0,
            0,
            Some(93_000),
            0,
            0,
            -1,
        ),
        (
            "order-timeouts",
            [1_481_522, 0, 16, 0, 0, 0],
            125,
            10,
            None,
            7,
            24,
            0,
        ),
        ("reports", [14, 0, 1, 0, 9, 57], 0, 0, None, 2_940_000, 2, 0),
        ("webhooks", [904, 0, 55, 0, 0, 0], 96, 10, None, 240, 9, 0),
    ];
    for second in 0..24 {
        let at = start + Duration::from_secs(second);
        let wave = |rate: u64| {
            (0..=second)
                .map(|it| rate + rate * (it * it % 7) / 9)
                .sum::<u64>()
        };
        let mut sums = Jobs::default();
        let mut read = Vec::new();
        for (name, jobs, rate, late, oldest, next, waiting, paused) in queues {
            let done = wave(rate);
            let mut stats = Stats {
                jobs,
                next_due: Some(NOW_MS + next),
                oldest_ready_ms: oldest,
                waiting_clients: waiting,
                paused,
                lateness_count: done,
                lateness_max_us: late,
                lateness: vec![(Some(late), done), (None, done)],
                ..Stats::default()
            };
            stats.totals[..3].fill(done);
            sums.iter_mut()
                .zip(jobs)
                .for_each(|(sum, jobs)| *sum += jobs);
            read.push((QueueKey::new(0, name), Heard::Figures(Box::new(stats))));
        }
        let done = wave(534);
        let text = format!(
            "valkey_version:8.1.1\r\nrole:master\r\nserver_time_usec:{NOW_MS}000\r\nuptime_in_seconds:193784\r\n\
             used_memory:281345678\r\ninstantaneous_ops_per_sec:2140\r\nconnected_clients:52\r\ndq_queues:6\r\n\
             dq_jobs_delayed:{}\r\ndq_jobs_ready:{}\r\ndq_jobs_reserved:{}\r\ndq_jobs_dead:{}\r\n\
             dq_jobs_blocked:{}\r\ndq_jobs_done:{}\r\ndq_waiting_clients:39\r\n\
             dq_added_total:{done}\r\ndq_delivered_total:{done}\r\ndq_acked_total:{done}\r\ndq_lateness_us_count:{done}\r\n\
             dq_lateness_us_sum:{}\r\ndq_timer_fires_total:{done}\r\n\
             dq_lateness_us_max:1840\r\ndq_timer_late_us_max:960\r\n",
            sums[0],
            sums[1],
            sums[2],
            sums[3],
            sums[4],
            sums[5],
            done * 12
        );
        let info = Box::new(ServerInfo::parse(&text));
        hear(&mut app, News::Info { info, at });
        hear(&mut app, News::Queues { read, at });
    }
    let found = Vec::new();
    let complete = true;
    hear(&mut app, News::Scanned { found, complete });
    app
}

/// DQ_TOP_PICTURE=write writes the picture anew.
#[test]
fn the_picture_in_the_readme_is_what_is_drawn() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let text = std::fs::read_to_string(path).expect("the README");
    let (before, rest) = text.split_once("```text\n").expect("a picture");
    let (picture, after) = rest.split_once("```").expect("its end");
    let drawn = lines(&drawn(&mut shop(), (132, 12), true));
    let drawn: String = drawn
        .iter()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    if std::env::var("DQ_TOP_PICTURE").as_deref() == Ok("write") {
        std::fs::write(path, format!("{before}```text\n{drawn}```{after}")).expect("written");
    } else {
        assert_eq!(
            picture, drawn,
            "DQ_TOP_PICTURE=write make test-top draws it anew"
        );
    }
}
