"""Dramatiq on dq, the delay queue of Redis and Valkey."""

from .broker import DqBroker
from .results import DqResultBackend

__version__ = "0.1.0"

__all__ = ["DqBroker", "DqResultBackend"]
