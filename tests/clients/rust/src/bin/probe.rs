//! What redis-rs makes of dq.

use std::env;
use std::panic;
use std::process::exit;
use std::time::{Duration, Instant};

use redis::cluster::ClusterClient;
use redis::{
    AsyncConnectionConfig, Client, Connection, ConnectionLike, FromRedisValue, IntoConnectionInfo,
    ProtocolVersion, ToRedisArgs, Value,
};

fn url(check: &str) -> String {
    let port = env::var(format!("PORT_{}", check.to_uppercase())).expect("a port");
    format!("redis://127.0.0.1:{port}")
}

fn client(check: &str, protocol: ProtocolVersion) -> Client {
    let info = url(check).into_connection_info().unwrap();
    let settings = info.redis_settings().clone().set_protocol(protocol);
    Client::open(info.set_redis_settings(settings)).unwrap()
}

fn connect(check: &str) -> Connection {
    let client = Client::open(url(check)).unwrap();
    client.get_connection().unwrap()
}

fn ask<T: FromRedisValue>(db: &mut impl ConnectionLike, name: &str, rest: impl ToRedisArgs) -> T {
    let reply = redis::cmd(name).arg(rest).query(db);
    reply.unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn empty(db: &mut Connection, queue: &str) {
    assert_eq!(ask::<Value>(db, "DQ.POP", queue), Value::Nil);
    let none: Vec<Value> = ask(db, "DQ.POP", (queue, "COUNT", 5));
    assert!(none.is_empty());
}

fn shows_a_job(check: &str, protocol: ProtocolVersion, is_map: fn(&Value) -> bool) {
    let mut db = client(check, protocol).get_connection().unwrap();
    let added: String = ask(&mut db, "DQ.ADD", (check, "a", "x", "DELAY", 60_000));
    assert_eq!(added, "a");
    let job: Value = ask(&mut db, "DQ.GET", (check, "a"));
    assert!(is_map(&job), "{job:?}");
    // Both become a map of Rust.
    let fields: std::collections::HashMap<String, Value> = redis::from_redis_value(job).unwrap();
    let state: String = redis::from_redis_value(fields["state"].clone()).unwrap();
    assert_eq!(state, "delayed");
    assert_eq!(fields["token"], Value::Nil);
    empty(&mut db, check);
}

fn resp2() {
    let default = Client::open(url("resp2")).unwrap();
    let settings = default.get_connection_info().redis_settings();
    assert_eq!(settings.protocol(), ProtocolVersion::RESP2);
    let is_list = |job: &Value| matches!(job, Value::Array(fields) if fields.len() % 2 == 0);
    shows_a_job("resp2", ProtocolVersion::RESP2, is_list);
}

fn resp3() {
    let is_map = |job: &Value| matches!(job, Value::Map(_));
    shows_a_job("resp3", ProtocolVersion::RESP3, is_map);
}

fn pipeline() {
    let mut pipe = redis::pipe();
    for n in 0..100 {
        let id = format!("job-{n}");
        pipe.cmd("DQ.ADD").arg(("pipeline", id, n)).ignore();
    }
    pipe.cmd("DQ.LEN").arg("pipeline");
    pipe.cmd("DQ.POP").arg(("pipeline", "COUNT", 100));
    type Job = (String, u32, String, u64, u64);
    let (count, jobs): (u64, Vec<Job>) = pipe.query(&mut connect("pipeline")).unwrap();
    assert_eq!(count, 100);
    assert!(jobs.iter().map(|job| job.1).eq(0..100));
}

fn multi() {
    let mut pipe = redis::pipe();
    pipe.atomic();
    for n in 0..7 {
        pipe.cmd("DQ.ADD")
            .arg(("multi", format!("job-{n}"), n))
            .ignore();
    }
    pipe.cmd("DQ.LEN").arg("multi");
    pipe.cmd("DQ.BPOP").arg(("multi", 0));
    pipe.cmd("DQ.ACK").arg(("multi", "job-0"));
    pipe.cmd("DQ.BPOP").arg(("nothing", 0)); // does not wait in a transaction
    type Job = (String, String, u32, String, u64, u64);
    let (count, job, acked, none): (u64, Job, u64, Option<Job>) =
        pipe.query(&mut connect("multi")).unwrap();
    assert_eq!((count, acked, none), (7, 1, None));
    assert_eq!(
        (job.0.as_str(), job.1.as_str(), job.2),
        ("multi", "job-0", 0)
    );
}

fn binary() {
    let mut db = connect("binary");
    let id = b"\x00\xff\r\n".to_vec();
    let payload: Vec<u8> = b"\x00\xff\xc3\x28".iter().copied().chain(0..=255).collect();
    let added: Vec<u8> = ask(&mut db, "DQ.ADD", ("binary", &id, &payload));
    assert_eq!(added, id);
    type Job = (String, Vec<u8>, Vec<u8>, String, u64, u64);
    let job: Job = ask(&mut db, "DQ.BPOP", ("binary", 1));
    assert_eq!((&job.1, &job.2), (&id, &payload));
    let acked: u64 = ask(&mut db, "DQ.ACK", ("binary", "WITHTOKENS", &id, &job.3));
    assert_eq!(acked, 1);
}

fn tokens() {
    let mut db = connect("tokens");
    let _: String = ask(&mut db, "DQ.ADD", ("tokens", "a", "x"));
    let job: (String, String, String, u64, u64) = ask(&mut db, "DQ.POP", "tokens");
    let number: u64 = job.2.parse().expect("digits");
    assert!(number > 1 << 53);
    let mut ack =
        |token: String| ask::<u64>(&mut db, "DQ.ACK", ("tokens", "WITHTOKENS", "a", token));
    assert_eq!(ack((number + 1).to_string()), 0);
    assert_eq!(ack(job.2), 1);
}

fn timeout() {
    let waits = ("timeout", "2.5");
    type Job = (String, String, String, String, u64, u64);
    // By default there is none: a job comes when it is due, and nothing is nothing.
    let mut db = connect("timeout");
    let _: String = ask(&mut db, "DQ.ADD", ("timeout", "a", "x", "DELAY", 1500));
    let job: Job = ask(&mut db, "DQ.BPOP", waits);
    assert_eq!((job.1.as_str(), job.2.as_str()), ("a", "x"));
    let _: u64 = ask(&mut db, "DQ.ACK", ("timeout", "a"));
    assert_eq!(ask::<Option<Job>>(&mut db, "DQ.BPOP", waits), None);
    // A read timeout that is shorter cuts the wait off, but the server is not told as long as the connection
    // is not dropped.
    let mut short = connect("timeout");
    short
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    let cut = redis::cmd("DQ.BPOP").arg(waits).exec(&mut short);
    assert!(cut.is_err_and(|error| error.is_timeout()));
    goes_to_nobody(&mut db, "b");
    drop(short);
    let runtime = tokio::runtime::Builder::new_current_thread();
    runtime_of(runtime).block_on(async_timeout());
}

fn runtime_of(mut builder: tokio::runtime::Builder) -> tokio::runtime::Runtime {
    builder.enable_all().build().unwrap()
}

/// What a server does with a job while it waits for a client that does not listen any more.
fn goes_to_nobody(db: &mut Connection, id: &str) {
    let _: String = ask(db, "DQ.ADD", ("timeout", id, "x"));
    assert_eq!(ask::<u64>(db, "DQ.LEN", ("timeout", "RESERVED")), 1);
    let _: u64 = ask(db, "DQ.ACK", ("timeout", id));
}

/// The async connection waits 500 ms unless told otherwise, and leaves the server waiting.
async fn async_timeout() {
    let client = Client::open(url("timeout")).unwrap();
    let mut db = connect("timeout");
    let mut default = client.get_multiplexed_async_connection().await.unwrap();
    let mut waits = redis::cmd("DQ.BPOP");
    waits.arg(("timeout", "2.5"));
    let start = Instant::now();
    let cut = waits.exec_async(&mut default).await;
    assert!(cut.is_err_and(|error| error.is_timeout()));
    assert!(start.elapsed() < Duration::from_millis(2500));
    goes_to_nobody(&mut db, "c");
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let mut patient = client
        .get_multiplexed_async_connection_with_config(&config)
        .await
        .unwrap();
    let none: Option<Value> = waits.query_async(&mut patient).await.unwrap();
    assert_eq!(none, None);
}

fn cluster() {
    let cluster = ClusterClient::new(vec![url("cluster")]).unwrap();
    let mut db = cluster.get_connection().unwrap();
    for n in 0..30 {
        let queue = format!("queue-{n}");
        let added: String = ask(&mut db, "DQ.ADD", (&queue, "a", n));
        assert_eq!(added, "a");
        let urgent = format!("{{{queue}}}:urgent");
        type Job = (String, String, u32, String, u64, u64);
        let job: Job = ask(&mut db, "DQ.BPOP", (urgent, &queue, 1));
        assert_eq!((&job.0, job.1.as_str(), job.2), (&queue, "a", n));
        let acked: u64 = ask(&mut db, "DQ.ACK", (&queue, "WITHTOKENS", "a", &job.3));
        assert_eq!(acked, 1);
        assert_eq!(ask::<Value>(&mut db, "DQ.POP", &queue), Value::Nil);
    }
}

fn main() {
    type Check = fn();
    let checks: [(&str, Check); 8] = [
        ("resp2", resp2),
        ("resp3", resp3),
        ("pipeline", pipeline),
        ("multi", multi),
        ("binary", binary),
        ("tokens", tokens),
        ("timeout", timeout),
        ("cluster", cluster),
    ];
    let mut failed = false;
    for (name, check) in checks {
        match panic::catch_unwind(check) {
            Ok(()) => println!("ok {name}"),
            Err(_) => {
                println!("FAILED {name}: see above");
                failed = true;
            }
        }
    }
    exit(failed.into());
}
