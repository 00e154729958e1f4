"""taskiq with a Redis stream as its broker, which acknowledges: ten tasks at a time."""

import asyncio

from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker

QUEUE = "jobs"


class System:
    def __init__(self, port):
        self.broker = RedisStreamBroker(f"redis://127.0.0.1:{port}", queue_name=QUEUE)
        self.seen = None
        self.loop = asyncio.new_event_loop()

        @self.broker.task(task_name="handle")
        async def handle(payload: str) -> None:
            self.seen.handle(payload)

        self.handle = handle
        self.is_started = False

    async def start(self):
        if not self.is_started:
            await self.broker.startup()
            self.is_started = True

    async def send(self, jobs):
        await self.start()
        await asyncio.gather(*(self.handle.kiq(payload) for _, payload, _ in jobs))

    def add(self, *job):
        self.loop.run_until_complete(self.send([job]))

    def add_many(self, jobs):
        self.loop.run_until_complete(self.send(jobs))

    def work(self, seen, is_ready):
        self.seen = seen
        self.loop.run_until_complete(self.serve(is_ready))

    async def serve(self, is_ready):
        self.broker.is_worker_process = True
        await self.start()
        is_ready()
        await run_receiver_task(self.broker, max_async_tasks=10, run_startup=False)
