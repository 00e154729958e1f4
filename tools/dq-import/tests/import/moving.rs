//! An application that moves from Redisson's delayed queue to dq while it works.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use redis::{from_redis_value, Value};

use crate::cmd;
use crate::support::{wait_until, PATIENCE};
use crate::world::{count, library, now_ms, program, World, QUEUE};

const MINUTE_MS: &str = "60000";
const TRAFFIC: usize = 300;

struct Application {
    process: Child,
    orders: ChildStdin,
    said: Arc<Mutex<Vec<String>>>,
}

impl Drop for Application {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Application {
    fn start(world: &World) -> Option<Application> {
        let (Some(java), Some(folder)) = (program("java"), library("dq-java", "classes")) else {
            return None;
        };
        let mut process = Command::new(java)
            .arg("-cp")
            .arg(format!(
                "{0}/classes:{0}/redisson/classes:{0}/redisson/libraries/*",
                folder.display()
            ))
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../dq-import/tests/real/redisson/Move.java"
            ))
            .arg(world.server.port().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("java runs");
        let orders = process.stdin.take().expect("a pipe");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        let said = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&said);
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                all.lock().expect("no panic").push(line);
            }
        });
        Some(Application {
            process,
            orders,
            said,
        })
    }

    fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("it listens");
    }

    /// What follows these words, in all lines so far.
    fn said(&self, words: &str) -> Vec<String> {
        let said = self.said.lock().expect("no panic");
        let behind = said.iter().filter_map(|line| line.strip_prefix(words));
        behind.map(str::to_owned).collect()
    }

    fn wait_for(&self, words: &str, number: usize) {
        wait_until(words, PATIENCE, || self.said(words).len() >= number);
    }
}

#[test]
fn an_application_moves_while_it_works() {
    let mut world = World::new(&["redisson", "orders", "--id-json", "id"]);
    let Some(mut application) = Application::start(&world) else {
        return;
    };
    application.wait_for("offered old ", TRAFFIC);
    // Most jobs are imported while old producers continue; what they add meanwhile is for the next run.
    let early = world.run(&["--due-after", MINUTE_MS]);
    assert_ne!(early.code, 2, "{}", early.text);
    application.order("switch");
    application.wait_for("offered new ", TRAFFIC);
    let rest = world
        .run(&["--due-after", MINUTE_MS, "--delete-source"])
        .ok();
    let what = format!("Redisson has nothing left, after this run:\n{}", rest.text);
    wait_until(&what, PATIENCE, || {
        remind_redisson(&mut world);
        world.zcard("redisson_delay_queue_timeout:{orders}") == 0
    });
    application.order("stop");
    application.wait_for("stopped", 1);

    let offered: Vec<String> = [
        application.said("offered old "),
        application.said("offered new "),
    ]
    .concat();
    deliver_all(&mut world);
    let taken = || [application.said("took old "), application.said("took new ")].concat();
    wait_until("all are taken", PATIENCE, || taken().len() >= offered.len());
    assert_eq!(count(cmd!(world.client, "DQ.LEN", QUEUE)), 0);
    let mut times: HashMap<String, usize> = HashMap::new();
    for element in taken() {
        *times.entry(element).or_default() += 1;
    }
    for element in &offered {
        assert_eq!(times.remove(element), Some(1), "{element}");
    }
    assert!(times.is_empty(), "{times:?}");
}

/// Notifies Redisson as each offer does. On a busy machine its client misses some notifications, and then moves what is
/// due only after the next one.
fn remind_redisson(world: &mut World) {
    let channel = "redisson_delay_queue_channel:{orders}";
    cmd!(world.client, "PUBLISH", channel, now_ms());
}

/// Delivers all jobs as if an hour had passed.
fn deliver_all(world: &mut World) {
    let peeked: Vec<(String, Value, Value, Value, Value)> = from_redis_value(cmd!(
        world.client,
        "DQ.PEEK",
        QUEUE,
        "DELAYED",
        "COUNT",
        1_000_000
    ))
    .expect("DQ.PEEK answers");
    for (id, ..) in peeked {
        cmd!(world.client, "DQ.RESCHEDULE", QUEUE, "DELAY", 0, id);
    }
}
