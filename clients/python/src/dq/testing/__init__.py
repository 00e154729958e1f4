"""For tests of programs that use dq: a server whose clock the test moves, and one job without a server.

The pytest plugin (fixtures ``dq_url``, ``clock``) is active as soon as the package is installed.
"""

from .inline import Run, async_job, async_run, job, run
from .server import Clock, TestServer

__all__ = ["Clock", "Run", "TestServer", "async_job", "async_run", "job", "run"]
