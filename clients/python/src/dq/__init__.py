"""Workers and producers for dq, the delay queue of Redis and Valkey."""

from ._explanation import Explanation
from ._group import GroupStats, QueueGroup
from ._job_info import JobInfo
from ._reading import FailedAttempt
from ._rule import Rule, RuleChanges
from .codec import BytesCodec, Codec, JsonCodec
from .consumer import Consumer
from .errors import (
    Cancelled,
    ConfigurationError,
    ControlError,
    DqError,
    GiveUp,
    JobFailed,
    PayloadError,
    QueueFull,
    Refused,
    Retry,
    Snooze,
    Suspended,
    TimedOut,
    UnknownJob,
)
from .handler import Handler, handler
from .hooks import Hooks
from .job import BaseJob, Job, JobResult
from .kind import AsyncKind, Kind
from .queue import Queue
from .records import Group, Peeked, Reserved, Stats
from .worker import Worker

__version__ = "0.1.0"

__all__ = [
    "AsyncKind",
    "BaseJob",
    "BytesCodec",
    "Cancelled",
    "Codec",
    "ConfigurationError",
    "Consumer",
    "ControlError",
    "DqError",
    "Explanation",
    "FailedAttempt",
    "GiveUp",
    "Group",
    "GroupStats",
    "Handler",
    "Hooks",
    "Job",
    "JobFailed",
    "JobInfo",
    "JobResult",
    "JsonCodec",
    "Kind",
    "PayloadError",
    "Peeked",
    "Queue",
    "QueueFull",
    "QueueGroup",
    "Refused",
    "Reserved",
    "Retry",
    "Rule",
    "RuleChanges",
    "Snooze",
    "Stats",
    "Suspended",
    "TimedOut",
    "UnknownJob",
    "Worker",
    "handler",
]
