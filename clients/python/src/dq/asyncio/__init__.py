"""The same for asyncio: ``Queue`` whose methods are awaited, and ``Worker`` whose handlers are coroutine functions."""

from .queue import Queue
from .worker import Worker

__all__ = ["Queue", "Worker"]
