"""Workers and producers for dq, the delay queue of Redis and Valkey."""

from .consumer import Consumer
from .errors import Cancelled, ConfigurationError, DqError, GiveUp, PayloadError, QueueFull, Retry, Snooze
from .handler import Handler, handler
from .hooks import Hooks
from .job import BytesCodec, Codec, Job, JsonCodec
from .queue import Queue
from .records import Group, JobInfo, Peeked, Reserved, Rule, Stats
from .worker import Worker

__version__ = "0.1.0"

__all__ = [
    "BytesCodec",
    "Cancelled",
    "Codec",
    "ConfigurationError",
    "Consumer",
    "DqError",
    "GiveUp",
    "Group",
    "Handler",
    "Hooks",
    "Job",
    "JobInfo",
    "JsonCodec",
    "PayloadError",
    "Peeked",
    "Queue",
    "QueueFull",
    "Reserved",
    "Retry",
    "Rule",
    "Snooze",
    "Stats",
    "Worker",
    "handler",
]
