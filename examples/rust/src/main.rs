//! A producer and a worker with redis-rs.
//!
//! ```text
//! cargo run -- add welcome:7 "Dear Ann" 5000    # a job, due in five seconds
//! cargo run -- work                             # until Ctrl-C or SIGTERM
//! ```

use std::env;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use redis::{Client, Connection, RedisResult};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

const QUEUE: &str = "mails";
/// How long one BPOP waits.
const WAIT: Duration = Duration::from_secs(1);

/// Queue, id, payload, token, attempt, deadline.
type Job = (String, Vec<u8>, Vec<u8>, String, u64, u64);

/// A worker that is silent for so long loses its job.
fn lease() -> Duration {
    let ms = env::var("LEASE_MS").ok().and_then(|ms| ms.parse().ok());
    Duration::from_millis(ms.unwrap_or(30_000))
}

/// A connection whose server says nothing for longer than the longest wait is given up: also the longest that a stop
/// takes.
fn connect(client: &Client) -> RedisResult<Connection> {
    let db = client.get_connection_with_timeout(Duration::from_secs(2))?;
    db.set_read_timeout(Some(WAIT + Duration::from_secs(2)))?;
    Ok(db)
}

/// With an id of its own a job that is sent twice is there once.
fn add(db: &mut Connection, id: &str, text: &str, delay_ms: &str) -> RedisResult<()> {
    let added: Option<String> = redis::cmd("DQ.ADD")
        .arg((QUEUE, id, text, "DELAY", delay_ms, "ATTEMPTS", 5))
        .arg(("BACKOFF", 2, 1000, 60_000))
        .query(db)?;
    let what = added.map_or("there is already a job", |_| "added");
    println!("{what} {id}");
    Ok(())
}

/// The work itself. Here it only fails once, or takes longer than a lease, where the text says so.
fn send(text: &str, attempt: u64) -> Result<(), Box<dyn Error>> {
    if text.starts_with("flaky") && attempt == 1 {
        return Err("mail server is away".into());
    }
    if text.starts_with("slow") {
        thread::sleep(lease() * 3 / 2);
    }
    Ok(())
}

/// Begins the lease anew, until the work is done or the job is no longer ours. On a connection of its own,
/// as the other one may be waiting.
fn beat(client: &Client, id: &[u8], token: &str, done: &Receiver<()>) -> RedisResult<()> {
    let mut db = None;
    while done.recv_timeout(lease() / 3) == Err(RecvTimeoutError::Timeout) {
        let db = match &mut db {
            Some(db) => db,
            None => {
                let db = db.insert(connect(client)?);
                db.set_read_timeout(Some(Duration::from_secs(1)))?;
                db
            }
        };
        let deadline: Option<u64> = redis::cmd("DQ.TOUCH")
            .arg((QUEUE, id, "TOKEN", token))
            .query(db)?;
        if deadline.is_none() {
            break;
        }
    }
    Ok(())
}

fn handle(client: &Client, db: &mut Connection, job: &Job) -> RedisResult<()> {
    let (_, id, payload, token, attempt, _) = job;
    let name = String::from_utf8_lossy(id);
    let (finished, done) = channel();
    let result = thread::scope(|scope| {
        scope.spawn(move || {
            if let Err(error) = beat(client, id, token, &done) {
                println!("no heartbeat: {error}");
            }
        });
        let result = send(&String::from_utf8_lossy(payload), *attempt);
        drop(finished);
        result.map_err(|error| error.to_string())
    });
    if let Err(why) = result {
        let state: Option<String> = redis::cmd("DQ.NACK")
            .arg((QUEUE, id, "TOKEN", token))
            .query(db)?;
        let state = state.as_deref().unwrap_or("lost");
        println!("failed {name} (attempt {attempt}): {why}; now {state}");
        return Ok(());
    }
    let acked: (u64,) = redis::cmd("DQ.ACK")
        .arg((QUEUE, "WITHTOKENS", "IDS", 1, id, token))
        .query(db)?;
    match acked {
        (1,) => println!("done {name} (attempt {attempt})"),
        _ => println!("lost {name}: another worker may have it"),
    }
    Ok(())
}

/// Does what comes, until it is told to stop or the connection fails.
fn serve(client: &Client, stopping: &AtomicBool) -> RedisResult<()> {
    let mut db = connect(client)?;
    while !stopping.load(Ordering::SeqCst) {
        let job: Option<Job> = redis::cmd("DQ.BPOP")
            .arg((QUEUE, WAIT.as_secs(), "TTR", lease().as_millis() as u64))
            .query(&mut db)?;
        if let Some(job) = job {
            handle(client, &mut db, &job)?;
        }
    }
    Ok(())
}

/// The main thread waits for signals, so that none of them interrupts a read of the worker's.
fn work(client: Client) -> Result<(), Box<dyn Error>> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let stopping = Arc::new(AtomicBool::new(false));
    let flag = stopping.clone();
    let worker = thread::spawn(move || {
        while !flag.load(Ordering::SeqCst) {
            if let Err(error) = serve(&client, &flag) {
                // A connection of redis-rs does not come back; whatever we had is delivered again when
                // its lease ends.
                println!("trouble: {error}");
                thread::sleep(Duration::from_millis(500));
            }
        }
    });
    signals.forever().next();
    stopping.store(true, Ordering::SeqCst);
    worker.join().map_err(|_| "the worker panicked")?;
    println!("stopped");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned());
    let client = Client::open(url)?;
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["add", id, text, delay_ms] => Ok(add(&mut connect(&client)?, id, text, delay_ms)?),
        ["work"] => work(client),
        _ => Err("usage: dq-example add ID TEXT DELAY_MS | work".into()),
    }
}
