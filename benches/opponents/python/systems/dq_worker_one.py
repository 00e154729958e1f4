"""The same, one job at a time."""

from systems import dq_worker


class System(dq_worker.System):
    concurrency = 1
