#!/usr/bin/env python3
"""A queue that is wider than one core: orders:{0} ... orders:{n}, spread over a cluster's masters.

One queue is one key, so at home on one core of one server. What must be faster is several queues that
producers choose by the job's id, and of which workers wait on all. ShardedQueue is the part to take along.

    python3 examples/sharded_queue.py --port 7000 [--jobs 10000]    against any node of a cluster with dq
"""

import argparse, itertools, sys, threading, time, zlib
from collections.abc import Callable
from typing import Any

import redis
from redis.cluster import ClusterNode, RedisCluster

# While slots move or a master is replaced. What was sent may have been carried out or not.
PASSING = (redis.ConnectionError, redis.TimeoutError, redis.exceptions.ClusterError,
           redis.exceptions.ClusterDownError, redis.exceptions.TryAgainError, redis.exceptions.AskError)


class ShardedQueue:
    """Jobs are in no order over the shards, and ids are unique in their shard; so an id must always go to
    the same one: the number of shards is chosen once, a few for each master that there may ever be."""

    def __init__(self, cluster: RedisCluster, name: str, shards: int) -> None:
        self.cluster = cluster
        self.keys = [f"{name}:{{{n}}}" for n in range(shards)]

    def key(self, id: str) -> str:
        return self.keys[zlib.crc32(id.encode()) % len(self.keys)]

    def add(self, id: str, payload: Any, *options: Any) -> Any:
        """With an id of the caller's own (NX is the default), so that it can be sent again until it is answered."""
        return self.ask("DQ.ADD", self.key(id), id, payload, *options)

    def cancel(self, id: str) -> Any:
        return self.ask("DQ.DEL", self.key(id), "UNRESERVED", "IDS", 1, id)

    def ask(self, *command: Any) -> Any:
        while True:
            try:
                # Told the node, redis-py need not ask the server where the keys of DQ.BPOP stand.
                node = self.cluster.get_node_from_key(command[1])
                return self.cluster.execute_command(*command, target_nodes=node)
            except PASSING:
                time.sleep(0.1)

    def work(self, handle: Callable[[str, bytes], None], lease_ms: int, at_once: int, stop: threading.Event) -> None:
        """Calls handle(id, payload) for each job until `stop` is set, for at most so many at a time. On every
        shard one BPOP is outstanding, on a connection of its own: keys of one command must share a slot.
        A job may wait here until the others are done, so the lease covers that, too."""
        permits = threading.Semaphore(at_once)

        def serve(key: str) -> None:
            while not stop.is_set():
                job = self.ask("DQ.BPOP", key, 1, "TTR", lease_ms)
                if job is not None:
                    _, id, payload, token, *_ = job
                    with permits:
                        handle(id.decode(), payload)
                    # Should the lease have ended meanwhile, the token leaves the job to whoever has it now.
                    self.ask("DQ.ACK", key, "WITHTOKENS", "IDS", 1, id, token)

        threads = [threading.Thread(target=serve, args=(key,)) for key in self.keys]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=7000)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--shards", type=int, default=12)
    options = parser.parse_args()
    cluster = RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", options.port)])
    queue = ShardedQueue(cluster, "orders", options.shards)
    handled: dict[str, int] = {}
    stop = threading.Event()
    count = itertools.count(1)

    def handle(id: str, payload: bytes) -> None:
        handled[id] = handled.get(id, 0) + 1
        if next(count) % 1000 == 0:
            print(f"{len(handled)} of {options.jobs} jobs handled", flush=True)
        if len(handled) == options.jobs:
            stop.set()

    worker = threading.Thread(target=queue.work, args=(handle, 30_000, 8, stop))
    worker.start()
    for n in range(options.jobs):
        queue.add(f"order-{n}", "payload", "DELAY", n % 500)
    worker.join(120)
    stop.set()
    worker.join()
    left = sum(queue.ask("DQ.LEN", key) for key in queue.keys)
    masters = {cluster.get_node_from_key(key).name for key in queue.keys}
    again = sum(times - 1 for times in handled.values())
    print(f"{len(handled)} jobs handled, {again} of them again, {left} left, on {len(masters)} masters")
    return 0 if len(handled) == options.jobs and left == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
