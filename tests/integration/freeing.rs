//! Freeing the memory of large queues that are removed: in small steps, after everything that is due, on masters and
//! replicas alike.

use crate::memory::for_all;
use crate::scene::{pair, Lines, Scene};
use crate::support::{wait_until, Raw, Reply, Server, PATIENCE};

const MANY: usize = 120_000;

/// Ready jobs, and one that stays delayed.
fn fill(client: &mut Raw, key: &str) {
    client.run(&format!("DQ.ADD {key} stays x DELAY 100000000"));
    for part in 0..MANY / 1000 {
        for job in 0..1000 {
            client.begin(&format!(
                "DQ.ADD {key} a{part}-{job} some-payload TTL 100000000"
            ));
        }
        (0..1000).for_each(|_| drop(client.read()));
    }
}

fn integer(client: &mut Raw, line: &str) -> i64 {
    match client.run(line) {
        Reply::Integer(integer) => integer,
        other => panic!("{line}: {other:?}"),
    }
}

/// Without output buffers: on a busy machine a replica lags behind.
fn used(server: &Server) -> u64 {
    let buffers = ["mem_total_replication_buffers", "mem_aof_buffer"];
    let waiting: u64 = buffers
        .map(|name| server.number("memory", name))
        .iter()
        .sum();
    server
        .number("memory", "used_memory")
        .saturating_sub(waiting)
}

/// A waiter on another queue is served long before a large queue is freed: freeing comes last.
#[test]
fn waiters_do_not_wait_for_it() {
    for removal in ["DEL big", "DQ.PURGE big ALL", "DQ.PURGE big READY"] {
        let server = Server::builder()
            .config("lazyfree-lazy-user-del", "no")
            .start();
        let mut client = server.raw();
        let before = used(&server);
        fill(&mut client, "big");
        let full = used(&server);
        let mut waiting = server.waiting("DQ.BPOP small 0");
        client.begin(removal);
        client.begin("DQ.ADD small job x");
        (0..2).for_each(|_| drop(client.read()));
        waiting.read();
        let left = used(&server);
        assert!(
            left > before + (full - before) / 2,
            "{removal}: freed first, {before} {full} {left}"
        );
        wait_until("the memory is given back", PATIENCE, || {
            used(&server) < before + (full - before) / 10
        });
    }
}

/// A replica decides nothing about its queues, but frees what its master has purged.
#[test]
fn replicas_free_what_was_purged() {
    let (master, replica) = pair(Server::builder());
    let mut client = master.raw();
    fill(&mut client, "q");
    replica.wait_for_offset_of(&master);
    let mut on_replica = replica.raw();
    let full = integer(&mut on_replica, "MEMORY USAGE q");
    client.run("DQ.PURGE q READY");
    client.run("RENAME q r");
    replica.wait_for_offset_of(&master);
    wait_until("the purged jobs are freed", PATIENCE, || {
        integer(&mut on_replica, "MEMORY USAGE r") < full / 10
    });
    replica.assert_same_data_as(&master);
}

/// What is purged and not yet freed is not copied.
#[test]
fn copies_take_only_what_is_there() {
    let server = Server::start();
    let mut client = server.raw();
    fill(&mut client, "q");
    let full = integer(&mut client, "MEMORY USAGE q");
    client.run("MULTI");
    client.run("DQ.PURGE q READY");
    client.run("COPY q copy");
    client.run("EXEC");
    assert!(integer(&mut client, "MEMORY USAGE copy") < full / 10);
    assert_eq!(integer(&mut client, "DQ.LEN copy"), 1);
}

/// The server's time for a command on a copy of the queue, in microseconds: the least of a few runs.
fn least_us(server: &Server, client: &mut Raw, key: &str, command: &str, options: &str) -> u64 {
    let once = |_| {
        client.run(&format!("COPY {key} copy"));
        // After this neither a small nor a large queue is in the processor's cache.
        client.run("DUMP large");
        client.run("CONFIG RESETSTAT");
        client.run(&format!("{command} copy {options}"));
        let spent = server.info(
            "commandstats",
            &format!("cmdstat_{}", command.to_lowercase()),
        );
        client.run("DEL copy");
        let us = spent.split([',', '=']).nth(3).map(str::parse);
        us.and_then(Result::ok).expect("calls=1,usec=...")
    };
    (0..5).map(once).min().expect("some")
}

/// Whatever share of a queue is removed, with priorities or without: twenty times the jobs are no more work.
#[test]
fn purging_a_large_queue_takes_no_longer_than_a_small_one() {
    const SMALL: usize = 10_000;
    const LARGE: usize = 20 * SMALL;
    let server = Server::start();
    let mut client = server.raw();
    for (key, jobs, priorities) in [
        ("small", SMALL, 1),
        ("large", LARGE, 1),
        ("small-ranked", SMALL, 4),
        ("large-ranked", LARGE, 4),
    ] {
        for start in (0..jobs).step_by(1000) {
            for job in start..start + 1000 {
                let due = [job * 7919 % LARGE, 4_000_000_000_000 + job][job % 2];
                let priority = job / 2 % priorities;
                client.begin(&format!(
                    "DQ.ADD {key} {job} x AT {due} PRIORITY {priority}"
                ));
            }
            (0..1000).for_each(|_| drop(client.read()));
        }
        client.says(&format!("DQ.LEN {key} READY"), &(jobs / 2).to_string());
    }
    let mut ratio = |kind: &str, command: &str, options: &str| {
        let small = least_us(
            &server,
            &mut client,
            &format!("small{kind}"),
            command,
            options,
        );
        let large = least_us(
            &server,
            &mut client,
            &format!("large{kind}"),
            command,
            options,
        );
        println!("{command} {options} {kind}: {small} us, {large} us");
        large as f64 / small.max(1) as f64
    };
    for kind in ["", "-ranked"] {
        for state in ["READY", "DELAYED", "ALL"] {
            let ratio = ratio(kind, "DQ.PURGE", state);
            assert!(ratio < 5.0, "{state} {kind}: {ratio:.1} times as long");
        }
    }
    // A command whose work grows with the jobs is recognized.
    let ratio = ratio("", "DUMP", "");
    assert!(ratio > 5.0, "only {ratio:.1} times as long");
}

fn pending(server: &Server) -> u64 {
    server.number("dq", "dq_lazyfree_pending_jobs")
}

/// Done and blocked jobs count like others until the last of them is freed.
#[test]
fn nothing_is_pending_once_all_is_freed() {
    const JOBS: usize = 10_000;
    let server = Server::start();
    let mut client = server.raw();
    client.run("DQ.CFGSET done DONELEN 100000");
    client.run("DQ.ADD flow first x");
    for job in 0..JOBS {
        client.begin(&format!("DQ.ADD done {job} x"));
        client.begin(&format!("DQ.ADD flow {job} x AFTER 1 first"));
    }
    (0..2 * JOBS).for_each(|_| drop(client.read()));
    client.run(&format!("DQ.POP done COUNT {JOBS}"));
    let ids: Vec<String> = (0..JOBS).map(|job| job.to_string()).collect();
    let acked = integer(&mut client, &format!("DQ.ACK done {}", ids.join(" ")));
    assert_eq!(acked, JOBS as i64);
    for removal in ["DQ.PURGE done DONE", "DEL flow"] {
        client.run(removal);
        wait_until(removal, PATIENCE, || pending(&server) == 0);
    }
}

/// Small removals are freed at once: nothing accumulates, not in a script, on a replica or in a replayed AOF.
#[test]
fn small_purges_leave_nothing() {
    const TIMES: u64 = 10_000;
    let (master, replica) = pair(Server::builder().aof());
    let mut client = master.raw();
    let eval = |client: &mut Raw, script: &str, times: u64| {
        let script = format!("for i = 1, ARGV[1] do {script} end");
        client.call(&[
            b"EVAL",
            script.as_bytes(),
            b"0",
            times.to_string().as_bytes(),
        ]);
    };
    let scripts = [
        "redis.call('DQ.ADD', 'p', 'a', 'x') redis.call('DQ.PURGE', 'p', 'ALL')",
        "redis.call('DQ.CFGSET', 'm', 'DEDUPE', 60000) redis.call('DQ.ADD', 'm', 'a', 'x')
         redis.call('DQ.POP', 'm', 'NOACK') redis.call('DQ.CFGSET', 'm', 'DEDUPE', 0)",
    ];
    for script in scripts {
        eval(&mut client, script, 10);
        replica.wait_for_offset_of(&master);
        let before = [&master, &replica].map(used);
        eval(&mut client, script, TIMES);
        assert_eq!(pending(&master), 0);
        replica.wait_for_offset_of(&master);
        assert_eq!(pending(&replica), 0);
        // The server's own buffers for so many commands shrink when it comes to it.
        for (server, before) in [&master, &replica].into_iter().zip(before) {
            wait_until(format!("nothing is left of {script}"), PATIENCE, || {
                used(server).saturating_sub(before) / TIMES < 400
            });
        }
    }
}

/// In a script the timer cannot run; yet no more waits to be freed than one purge has left, not that of all purges.
#[test]
fn what_waits_to_be_freed_goes_faster_than_it_comes() {
    let server = Server::start();
    let mut client = server.raw();
    let script = "for i = 1, 100 do
        for j = 1, 500 do redis.call('DQ.ADD', 'q', j, 'x', 'PRIORITY', j % 3, 'TTL', 100000000) end
        redis.call('DQ.PURGE', 'q', 'ALL')
    end
    local info = redis.call('INFO', 'dq')
    return tonumber(string.match(info, 'dq_lazyfree_pending_jobs:(%d+)'))";
    let reply = client.call(&[b"EVAL", script.as_bytes(), b"0"]);
    let Reply::Integer(waiting) = reply else {
        panic!("{reply:?}");
    };
    assert!((1..=1000).contains(&waiting), "{waiting} of 50,000");
    wait_until("all is freed", PATIENCE, || pending(&server) == 0);
}

/// What many purges in scripts leave is bounded by bytes: by what one leaves, and 64 MB.
#[test]
fn what_waits_to_be_freed_is_bounded() {
    let server = Server::start();
    let mut client = server.raw();
    let (by_adds, by_madd, large) = (
        "for j = 1, 5000 do redis.call('DQ.ADD', 'q', j, 'x') end",
        "local line = {} for j = 1, 3000 do line[2 * j - 1] = j line[2 * j] = 'x' end
        redis.call('DQ.MADD', 'q', 3000, unpack(line))",
        // Once: Lua makes such a text slower than the server takes it.
        "local large = string.rep('x', 100000)
        for j = 1, 300 do redis.call('DQ.ADD', 'q', j, large) end",
    );
    const ROUNDS: u64 = 120;
    // Rounds, and how much of each may be left on average, in KB.
    for (fill, kept) in [(by_adds, 20), (by_madd, 1000), (large, 1000)] {
        let before = used(&server);
        let mut most = 0;
        for _ in 0..ROUNDS {
            let script = format!("{fill} redis.call('DQ.PURGE', 'q', 'ALL') collectgarbage()");
            client.call(&[b"EVAL", script.as_bytes(), b"0"]);
            most = most.max(used(&server).saturating_sub(before));
            let told = server.number("dq", "dq_lazyfree_pending_bytes");
            assert!(told <= (64 << 20) + (31 << 20), "{told}");
        }
        assert!(most < kept * 1024 * ROUNDS, "{most} by {fill}");
        wait_until("all is freed", PATIENCE, || {
            pending(&server) + server.number("dq", "dq_lazyfree_pending_bytes") == 0
        });
    }
}

/// Who purges because the memory is full adds at once: nothing is left for a timer that has not run.
#[test]
fn what_is_removed_is_freed_at_once_while_memory_is_full() {
    let server = Server::start();
    let mut client = server.raw();
    let payload = vec![b'x'; 100_000];
    let most = (used(&server) + (60 << 20)).to_string();
    client.says(&format!("CONFIG SET maxmemory {most}"), "+OK");
    let is_full = (0..2000).any(|number: u32| {
        let id = number.to_string();
        let reply = client.call(&[b"DQ.ADD", b"q", id.as_bytes(), &payload]);
        matches!(reply, Reply::Error(error) if error.starts_with("OOM"))
    });
    assert!(is_full);
    client.send(b"DQ.PURGE q ALL\r\nDQ.ADD r new x\r\n");
    assert!(matches!(client.read(), Reply::Integer(1..)));
    assert_eq!(client.read(), Reply::Bulk(b"new".to_vec()));
}

/// As that, where others stay in each queue: what waits in all queues together.
#[test]
fn purged_parts_that_wait_to_be_freed_are_bounded() {
    let server = Server::start();
    let mut client = server.raw();
    let (soon, late) = ("'DELAY', 0", "'DELAY', 9000000");
    for (state, options, kept, first) in [
        ("READY", soon, late, ""),
        ("READY", "'GROUP', 'g' .. at", late, ""),
        ("DELAYED", late, soon, ""),
        (
            "RESERVED",
            soon,
            late,
            "redis.call('DQ.POP', key, 'COUNT', 3000)",
        ),
    ] {
        // 6 MB in each of 40 queues, in one script: the timer cannot run.
        let script = format!(
            "local function number(of, field)
                return tonumber(string.match(redis.call('INFO', of), field .. ':(%d+)'))
            end
            local before, most, told = number('memory', 'used_memory'), 0, 0
            local payload = string.rep('x', 2000)
            for round = 1, 40 do
                local key = 'q' .. round
                redis.call('DQ.ADD', key, 'kept', 'x', {kept})
                for at = 1, 6 do
                    local line = {{}}
                    for j = 1, 500 do line[2 * j - 1] = 500 * at + j line[2 * j] = payload end
                    for _, word in ipairs({{{options}}}) do line[#line + 1] = word end
                    redis.call('DQ.MADD', key, 500, unpack(line))
                end
                {first}
                redis.call('DQ.PURGE', key, '{state}')
                collectgarbage()
                most = math.max(most, number('memory', 'used_memory') - before)
                told = math.max(told, number('dq', 'dq_lazyfree_pending_bytes'))
                assert(redis.call('DQ.LEN', key) == 1)
            end
            return most .. ' ' .. told"
        );
        let reply = crate::probe::plain(&client.call(&[b"EVAL", script.as_bytes(), b"0"]));
        let figures = reply
            .trim_matches('\'')
            .split(' ')
            .map(|it| it.parse::<f64>());
        let [most, told] = figures.collect::<Result<Vec<_>, _>>().expect(&reply)[..] else {
            panic!("{reply}");
        };
        let [most, told] = [most, told].map(|bytes| bytes as u64 >> 20);
        assert!(most < 100, "{most} MB by {state} {options}");
        assert!((50..80).contains(&told), "{told} MB by {state} {options}");
        wait_until("all is freed", PATIENCE, || {
            pending(&server) + server.number("dq", "dq_lazyfree_pending_bytes") == 0
        });
        client.says("FLUSHALL", "+OK");
    }
}

/// Whatever waits to be freed: neither the purge nor the commands after it look at all of it.
#[test]
fn what_waits_is_sized_in_no_time() {
    let server = Server::start();
    let mut client = server.raw();
    client.says("CONFIG RESETSTAT", "+OK");
    let adds = "for j = 1, 100000 do redis.call('DQ.ADD', 'q', j, 'x', 'GROUP', j) end";
    client.call(&[b"EVAL", adds.as_bytes(), b"0"]);
    let added = spent(&server, "dq.add");
    client.says("CONFIG RESETSTAT", "+OK");
    let script = "redis.call('DQ.PURGE', 'q', 'ALL')
        for j = 1, 100 do redis.call('DQ.ADD', 'r', j, 'x') end";
    client.call(&[b"EVAL", script.as_bytes(), b"0"]);
    let shares = ["dq.purge", "dq.add"].map(|name| spent(&server, name) / added);
    assert!(shares.iter().sum::<f64>() < 0.04, "{shares:?}");
    wait_until("all is freed", PATIENCE, || pending(&server) == 0);
}

/// Purged jobs beside others are counted until they are freed.
#[test]
fn purged_jobs_are_counted_until_they_are_freed() {
    let server = Server::start();
    let mut client = server.raw();
    fill(&mut client, "q");
    let script = "redis.call('DQ.PURGE', 'q', 'READY') return redis.call('INFO', 'dq')";
    let info = crate::probe::plain(&client.call(&[b"EVAL", script.as_bytes(), b"0"]));
    let line = format!("dq_lazyfree_pending_jobs:{MANY}\r");
    assert!(info.contains(&line), "{info}");
    wait_until("all is freed", PATIENCE, || pending(&server) == 0);
    assert_eq!(server.number("dq", "dq_jobs_delayed"), 1);
}

/// What the commands of that name have taken so far, in microseconds.
fn spent(server: &Server, command: &str) -> f64 {
    let stat = server.info("commandstats", &format!("cmdstat_{command}"));
    let usec = stat
        .split(',')
        .find_map(|field| field.strip_prefix("usec="));
    usec.and_then(|usec| usec.parse().ok()).expect("a number")
}

/// As for any data: the number of queues makes no difference to the command.
#[test]
fn flushing_in_the_background_does_not_wait_for_it() {
    let server = Server::start();
    let mut client = server.raw();
    let before = used(&server);
    let mut shares = Vec::new();
    for flush in ["FLUSHALL ASYNC", "FLUSHDB ASYNC", "FLUSHALL ASYNC"] {
        let name = flush.split(' ').next().unwrap_or_default().to_lowercase();
        client.says("CONFIG RESETSTAT", "+OK");
        for_all(&mut client, MANY, "DQ.ADD q@ a x DELAY 9000000");
        client.says(flush, "+OK");
        shares.push(spent(&server, &name) / spent(&server, "eval"));
        client.says("DQ.LEN q1", "0");
    }
    // Freeing what is known of them would take a fiftieth of the time that adding them took, or more.
    let least = shares.iter().copied().fold(1.0, f64::min);
    assert!(least < 0.004, "{shares:?}");
    wait_until("the memory is given back", PATIENCE, || {
        used(&server) < before + 4_000_000
    });
    client.says("DQ.ADD q1 a x", "'a'");
    assert_eq!(server.number("dq", "dq_queues"), 1);
}
