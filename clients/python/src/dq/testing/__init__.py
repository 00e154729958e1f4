"""For tests of programs that use dq: a server with a clock that tests move, and handlers run without a server.

The pytest plugin (fixtures ``dq_url``, ``clock``) is there as soon as the package is installed.
"""

from .inline import AsyncInlineQueue, InlineQueue
from .server import Clock, TestServer

__all__ = ["AsyncInlineQueue", "Clock", "InlineQueue", "TestServer"]
