"""dq for asyncio: a ``Queue`` whose methods are awaited, and a ``Worker`` whose handlers are coroutine functions."""

from .consumer import Consumer
from .job import Job
from .queue import Queue
from .worker import Worker

__all__ = ["Consumer", "Job", "Queue", "Worker"]
