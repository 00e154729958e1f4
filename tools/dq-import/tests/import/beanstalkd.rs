//! A real beanstalkd.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{poll, wait_for, wait_until, PATIENCE};
use crate::world::{now_ms, program, World};

#[test]
fn a_tube_that_does_not_exist_is_an_error() {
    let Some(beanstalkd) = Beanstalkd::start() else {
        return;
    };
    let world = World::new(&["beanstalkd", "old", "--address", &beanstalkd.address]);
    let run = world.run(&[]);
    assert_eq!(run.code, 2, "{}", run.text);
    run.says("beanstalkd's tube old does not exist");
}

struct Beanstalkd {
    process: Child,
    address: String,
    stream: BufReader<TcpStream>,
}

impl Beanstalkd {
    fn start() -> Option<Beanstalkd> {
        let binary = program("beanstalkd")?;
        // Another process may take the port first; then beanstalkd exits, and the next port is tried.
        wait_for("beanstalkd answers", PATIENCE, || {
            let port = TcpListener::bind("127.0.0.1:0")
                .ok()?
                .local_addr()
                .ok()?
                .port();
            Beanstalkd::on(&binary, port)
        })
        .into()
    }

    fn on(binary: &std::path::Path, port: u16) -> Option<Beanstalkd> {
        let mut process = Command::new(binary)
            .args(["-l", "127.0.0.1", "-p", &port.to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("beanstalkd runs");
        let address = format!("127.0.0.1:{port}");
        let stream = poll(Duration::from_secs(5), || TcpStream::connect(&address).ok());
        let running = matches!(process.try_wait(), Ok(None));
        let Some(stream) = stream.filter(|_| running) else {
            let _ = process.kill();
            let _ = process.wait();
            return None;
        };
        Some(Beanstalkd {
            process,
            address,
            stream: BufReader::new(stream),
        })
    }

    /// The first line of the answer; the rest is read and dropped.
    fn ask(&mut self, command: &str) -> String {
        let text = format!("{command}\r\n");
        self.stream
            .get_mut()
            .write_all(text.as_bytes())
            .expect("beanstalkd listens");
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("an answer");
        if ["OK", "FOUND", "RESERVED"]
            .iter()
            .any(|word| line.starts_with(word))
        {
            let length: usize = line
                .split_whitespace()
                .last()
                .expect("a length")
                .parse()
                .expect("a number");
            let mut body = vec![0; length + 2];
            self.stream.read_exact(&mut body).expect("a body");
        }
        line.trim_end().to_owned()
    }

    fn put(&mut self, pri: u32, delay_s: u64, body: &str) -> u64 {
        let answer = self.ask(&format!("put {pri} {delay_s} 30 {}\r\n{body}", body.len()));
        let id = answer.strip_prefix("INSERTED ").expect("inserted");
        id.parse().expect("an id")
    }

    /// The counts of the tube's jobs by state.
    fn stats(&mut self, tube: &str) -> String {
        let mut client = Beanstalkd::read_all(&self.address, &format!("stats-tube {tube}\r\n"));
        client.retain(|line| line.starts_with("current-jobs-"));
        client.join("\n")
    }

    fn read_all(address: &str, command: &str) -> Vec<String> {
        let mut stream = TcpStream::connect(address).expect("beanstalkd listens");
        stream
            .write_all(format!("{command}quit\r\n").as_bytes())
            .expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Beanstalkd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Makes a tube with jobs in all states, and another tube. Returns the ids to be imported, with their delays.
fn tube(beanstalkd: &mut Beanstalkd) -> Vec<(u64, u64)> {
    beanstalkd.ask("use other");
    beanstalkd.put(0, 3600, "of another tube");
    beanstalkd.ask("use orders");
    let mut jobs = Vec::new();
    for n in 0..300 {
        let delay = 3600 + n % 50;
        let id = beanstalkd.put(1000 + n as u32, delay, &format!("line 1\r\nline {n}"));
        if n % 10 == 9 {
            beanstalkd.ask(&format!("delete {id}"));
        } else {
            jobs.push((id, delay));
        }
    }
    jobs.push((beanstalkd.put(0, 0, "ready"), 0));
    let reserved = beanstalkd.put(5, 0, "reserved");
    beanstalkd.ask(&format!("reserve-job {reserved}"));
    let buried = beanstalkd.put(5, 0, "buried");
    beanstalkd.ask(&format!("reserve-job {buried}"));
    beanstalkd.ask(&format!("bury {buried} 5"));
    jobs
}

#[test]
fn jobs_come_with_their_dues_and_none_is_taken() {
    let Some(mut beanstalkd) = Beanstalkd::start() else {
        return;
    };
    let before = now_ms();
    let jobs = tube(&mut beanstalkd);
    let put_until = now_ms();
    let address = beanstalkd.address.clone();
    let mut world = World::new(&["beanstalkd", "orders", "--address", &address]);
    let stats = beanstalkd.stats("orders");
    world
        .run(&[])
        .ok()
        .counts(jobs.len(), "in the queue")
        .counts(1, "left: it is buried")
        .counts(1, "left: a worker has reserved it");
    for &(id, delay) in &jobs {
        let job = world.job(&id.to_string()).expect("imported");
        assert_eq!(job.ttr_ms, 30_000);
        if delay > 0 {
            // beanstalkd reports whole seconds: never early, and at most two seconds late, or as long as one question
            // and its answer took.
            assert!(job.due_ms >= before + delay * 1000, "{job:?}");
            let slack = now_ms() - put_until;
            assert!(
                job.due_ms <= put_until + delay * 1000 + 2000 + slack,
                "{job:?}"
            );
            assert!(job.payload.starts_with("line 1\r\nline "), "{job:?}");
        }
    }
    let first = world.job(&jobs[0].0.to_string()).expect("imported");
    assert_eq!(first.priority, 1000);
    assert_eq!(beanstalkd.stats("orders"), stats, "the tube is as it was");
}

#[test]
fn told_so_it_deletes_what_it_imported() {
    let Some(mut beanstalkd) = Beanstalkd::start() else {
        return;
    };
    let jobs = tube(&mut beanstalkd);
    let address = beanstalkd.address.clone();
    let mut world = World::new(&["beanstalkd", "orders", "--address", &address]);
    world
        .run(&["--delete-source"])
        .ok()
        .counts(jobs.len(), "deleted from the source");
    let stats = beanstalkd.stats("orders");
    for count in ["ready: 0", "delayed: 0", "reserved: 1", "buried: 1"] {
        assert!(stats.contains(count), "{stats}");
    }
    assert_eq!(world.len(), jobs.len());
    assert!(beanstalkd.stats("other").contains("delayed: 1"));
}

#[test]
fn a_job_that_a_worker_gave_back_since_has_changed() {
    let Some(mut beanstalkd) = Beanstalkd::start() else {
        return;
    };
    let jobs = tube(&mut beanstalkd);
    let address = beanstalkd.address.clone();
    let world = World::new(&["beanstalkd", "orders", "--address", &address]);
    world.run(&[]).ok();
    let id = jobs[3].0;
    beanstalkd.ask(&format!("reserve-job {id}"));
    beanstalkd.ask(&format!("release {id} 7 3600"));
    world
        .run(&["--delete-source"])
        .not_in_order("changed in the source");
    assert!(beanstalkd.stats("orders").contains("delayed: 270"));
}

#[test]
fn a_job_that_a_worker_gives_back_while_others_are_deleted_stays() {
    let Some(mut beanstalkd) = Beanstalkd::start() else {
        return;
    };
    let jobs = tube(&mut beanstalkd);
    let address = beanstalkd.address.clone();
    let world = World::new(&["beanstalkd", "orders", "--address", &address]);
    world.run(&[]).ok();
    let mut tool = world.start(&["--delete-source", "--batch", "100", "--rate", "100"]);
    wait_until("the tool deletes", PATIENCE, || {
        beanstalkd.ask(&format!("peek {}", jobs[0].0)) == "NOT_FOUND"
    });
    let mut changed = Vec::new();
    for &(id, _) in &jobs {
        if beanstalkd
            .ask(&format!("reserve-job {id}"))
            .starts_with("RESERVED")
        {
            let answer = beanstalkd.ask(&format!("release {id} 7 3600"));
            assert_eq!(answer, "RELEASED");
            changed.push(id);
        }
    }
    tool.wait().expect("the tool ends");
    assert!(!changed.is_empty(), "it was quicker");
    for id in changed {
        let found = beanstalkd.ask(&format!("peek {id}"));
        assert!(found.starts_with("FOUND"), "{id}: {found}");
    }
    // Jobs that the tool reserved and gave back are still delayed: nothing came early.
    assert!(beanstalkd.stats("orders").contains("ready: 0"));
}
