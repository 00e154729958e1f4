"""For tests of programs that use dq: a server whose clock the test moves, and queues that run handlers without it.

The pytest plugin (fixtures ``dq_url``, ``clock``) is active as soon as the package is installed.
"""

from .inline import AsyncInlineQueue, InlineQueue
from .server import Clock, TestServer

__all__ = ["AsyncInlineQueue", "Clock", "InlineQueue", "TestServer"]
