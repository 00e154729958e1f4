"""Commands for frameworks that store results apart from their messages, in a queue that holds nothing else.

A result is a done job, which ``Queue.result`` and ``Queue.wait`` find. If a client waits for a result that does not
exist yet, it is a job that is never due.
"""

from __future__ import annotations

from redis.exceptions import ConnectionError, ResponseError

from . import _guard
from ._delivery import Command
from ._ends import MOST_CUTS, unstorable
from ._trouble import trouble_s
from .times import LARGEST_BYTES

#: The last instant that the server knows.
NEVER_MS = 2**42 - 1
#: How long a job without a result is kept. A client that still waits then adds it anew.
EXPECTED_MS = 3_600_000
#: How often a command is sent once more while the server is away.
RETRIES = 10
LONGEST_PAUSE_S = 1.0

# Adds, delivers and acknowledges a job at once. It replaces the job that clients wait for: they see it end.
STORE = """
redis.call('DQ.ADD', KEYS[1], ARGV[1], '', 'REPLACE', 'KEEP', ARGV[3])
local job = redis.call('DQ.POP', KEYS[1], 'ID', ARGV[1])
return redis.call('DQ.ACK', KEYS[1], 'RESULTS', 'IDS', 1, ARGV[1], job[3], ARGV[2])[1]
"""

# Adds nothing if there is a job: a done one would be replaced.
EXPECT = """
if redis.call('DQ.GET', KEYS[1], ARGV[1]) then return 0 end
redis.call('DQ.ADD', KEYS[1], ARGV[1], '', 'AT', ARGV[2], 'TTL', ARGV[3])
return 1
"""


class Unstorable(ValueError):
    """The work is done, and no other attempt would help: its job is dead, with this text as the reason."""


def unencodable(said: bytes) -> Unstorable:
    """said: what the encoder's error says."""
    return Unstorable((_guard.unencodable(said).reason or b"").decode("utf-8", "replace"))


def store(key: bytes, id: str, value: bytes, keep_ms: int) -> Command:
    """Stores a result for ``keep_ms``, replacing an earlier one. Safe to send twice.

    Raises Unstorable if it is too large to be sent.
    """
    if len(value) > LARGEST_BYTES:
        raise Unstorable(unstorable(len(value)).decode())
    return ("EVAL", STORE, 1, key, id, value, keep_ms)


def expect(key: bytes, id: str) -> Command:
    """Makes sure that there is a job whose end can be waited for."""
    return ("EVAL", EXPECT, 1, key, id, NEVER_MS, EXPECTED_MS)


class Tries:
    """How often a command is sent that gets no reply. Each command here is safe to send twice."""

    def __init__(self, value: bytes = b"") -> None:
        self._value = value
        self._made = self._cuts = 0

    def pause_s(self, error: Exception) -> float:
        """How long to wait before the next one. Raises the error if that was the last one, or Unstorable if the result
        has cut the connection twice."""
        self._made += 1
        # A server that refuses the length says so, and closes the connection.
        self._cuts += type(error) is ConnectionError and "connecting to" not in str(error)
        self._cuts += "Protocol error" in str(error)
        if self._value and self._cuts >= MOST_CUTS:
            raise Unstorable(unstorable(len(self._value)).decode()) from error
        if self._made > RETRIES or (isinstance(error, ResponseError) and not self._cuts):
            raise error
        return min(trouble_s(self._made), LONGEST_PAUSE_S)
