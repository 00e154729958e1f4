"""What redis-py makes of dq, asked through redis (`probe.py redis_py`) or redis.asyncio (`redis_py_asyncio`)."""

import asyncio, inspect, os, sys, traceback

import redis, redis.asyncio
from redis.backoff import NoBackoff

api = redis if sys.argv[1] == "redis_py" else redis.asyncio
retry = redis.retry if api is redis else redis.asyncio.retry


async def done(answer):
    return await answer if inspect.isawaitable(answer) else answer


async def ask(db, *command):
    return await done(db.execute_command(*command))


def connect(check, **settings):
    return api.Redis(port=int(os.environ["PORT_" + check.upper()]), **settings)


def equal(is_, expected):
    assert is_ == expected, f"{is_!r}, not {expected!r}"


async def resp2():
    db = connect("resp2", protocol=2)
    equal(await ask(db, "DQ.ADD", "resp2", "a", "x", "DELAY", 60_000), b"a")
    job = await ask(db, "DQ.GET", "resp2", "a")
    assert isinstance(job, list), job
    equal(dict(zip(job[::2], job[1::2]))[b"state"], b"delayed")
    equal(await ask(db, "DQ.POP", "resp2"), None)
    equal(await ask(db, "DQ.POP", "resp2", "COUNT", 5), [])


async def resp3():
    db = connect("resp3")      # the default
    equal(await ask(db, "DQ.ADD", "resp3", "a", "x", "DELAY", 60_000), b"a")
    job = await ask(db, "DQ.GET", "resp3", "a")
    equal((job[b"state"], job[b"token"], job[b"backoff"]), (b"delayed", None, []))
    equal(await ask(db, "DQ.POP", "resp3"), None)
    equal(await ask(db, "DQ.POP", "resp3", "COUNT", 5), [])
    text = connect("resp3", decode_responses=True)
    equal((await ask(text, "DQ.GET", "resp3", "a"))["state"], "delayed")


async def pipeline():
    pipe = connect("pipeline").pipeline(transaction=False)
    for n in range(100):
        pipe.execute_command("DQ.ADD", "pipeline", f"job-{n}", n)
    pipe.execute_command("DQ.LEN", "pipeline")
    pipe.execute_command("DQ.POP", "pipeline", "COUNT", 100)
    *added, count, jobs = await done(pipe.execute())
    equal(added, [b"job-%d" % n for n in range(100)])
    equal(count, 100)
    equal([job[1] for job in jobs], [b"%d" % n for n in range(100)])


async def multi():
    pipe = connect("multi").pipeline(transaction=True)
    for n in range(7):
        pipe.execute_command("DQ.ADD", "multi", f"job-{n}", n)
    pipe.execute_command("DQ.LEN", "multi")
    pipe.execute_command("DQ.BPOP", "multi", 0)
    pipe.execute_command("DQ.ACK", "multi", "job-0")
    pipe.execute_command("DQ.BPOP", "nothing", 0)      # does not wait in a transaction
    answers = await done(pipe.execute())
    equal(answers[7], 7)
    equal(answers[8][:3], [b"multi", b"job-0", b"0"])
    equal(answers[9:], [1, None])


async def binary():
    db = connect("binary")
    id, payload = b"\x00\xff\r\n", b"\x00\xff\xc3\x28" + bytes(range(256))
    equal(await ask(db, "DQ.ADD", "binary", id, payload), id)
    job = await ask(db, "DQ.BPOP", "binary", 1)
    equal(job[1:3], [id, payload])
    equal(await ask(db, "DQ.ACK", "binary", "WITHTOKENS", id, job[3]), 1)
    # What decode_responses=True costs.
    await ask(db, "DQ.ADD", "binary", id, payload)
    text = connect("binary", decode_responses=True)
    try:
        raise AssertionError(f"decoded: {await ask(text, 'DQ.POP', 'binary')}")
    except UnicodeDecodeError:
        pass


async def tokens():
    for settings in {}, {"protocol": 2}, {"decode_responses": True}:
        db = connect("tokens", **settings)
        await ask(db, "DQ.ADD", "tokens", "a", "x")
        token = (await ask(db, "DQ.POP", "tokens"))[2]
        assert isinstance(token, (bytes, str)) and int(token) > 2**53, token
        equal(await ask(db, "DQ.ACK", "tokens", "WITHTOKENS", "a", int(token) + 1), 0)
        equal(await ask(db, "DQ.ACK", "tokens", "WITHTOKENS", "a", token), 1)


async def timeout():
    waits = ("DQ.BPOP", "timeout", "2.5")
    settings = connect("timeout").connection_pool.connection_kwargs
    equal(settings["socket_timeout"], 5)
    equal(settings["retry"]._retries, 10)
    # Shorter than the wait: it is cut off, and by default sent again on another connection.
    db = connect("timeout")
    connections = lambda: ask(db, "INFO", "stats")
    url = f"redis://127.0.0.1:{os.environ['PORT_TIMEOUT']}"
    for short, times in (
        (connect("timeout", socket_timeout=1, retry=retry.Retry(NoBackoff(), 1)), 2),
        # A client made from a URL has not those ten retries, but none.
        (api.Redis.from_url(url, socket_timeout=1), 1),
    ):
        before = (await connections())["total_connections_received"]
        try:
            raise AssertionError(f"not cut off: {await ask(short, *waits)}")
        except redis.TimeoutError:
            pass
        equal((await connections())["total_connections_received"] - before, times)
    # Longer: a job comes when it is due, and nothing is nothing.
    long = connect("timeout", socket_timeout=10)
    await ask(db, "DQ.ADD", "timeout", "a", "x", "DELAY", 1500)
    equal((await ask(long, *waits))[1:3], [b"a", b"x"])
    equal(await ask(long, *waits), None)


async def cluster():
    cluster_of = api.RedisCluster if api is redis else redis.asyncio.cluster.RedisCluster
    db = cluster_of(host="127.0.0.1", port=int(os.environ["PORT_CLUSTER"]))
    if api is not redis:
        await db.initialize()      # else the first command goes to some node, which sends it on
    for n in range(30):
        queue = f"queue-{n}"
        equal(await ask(db, "DQ.ADD", queue, "a", n), b"a")
        job = await ask(db, "DQ.BPOP", f"{{{queue}}}:urgent", queue, 1)
        equal(job[:3], [queue.encode(), b"a", b"%d" % n])
        equal(await ask(db, "DQ.ACK", queue, "WITHTOKENS", "a", job[3]), 1)
        equal(await ask(db, "DQ.POP", queue), None)
    await done(db.close() if api is redis else db.aclose())


async def main():
    failed = False
    for check in resp2, resp3, pipeline, multi, binary, tokens, timeout, cluster:
        try:
            await check()
            print(f"ok {check.__name__}", flush=True)
        except Exception as error:
            failed = True
            print(f"FAILED {check.__name__}: {error!r}", flush=True)
            traceback.print_exc()
    sys.exit(failed)


asyncio.run(main())
