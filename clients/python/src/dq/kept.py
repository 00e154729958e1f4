"""Commands for frameworks that store results apart from their messages, in a queue that holds nothing else.

A result is a done job, which ``Queue.result`` and ``Queue.wait`` find. If a client waits for a result that does not
exist yet, it is a job that is never due.
"""

from __future__ import annotations

from ._delivery import Command

#: The last instant that the server knows.
NEVER_MS = 2**42 - 1
#: How long a job without a result is kept. A client that still waits then adds it anew.
EXPECTED_MS = 3_600_000

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


def store(key: bytes, id: str, value: bytes, keep_ms: int) -> Command:
    """Stores a result for ``keep_ms``, replacing an earlier one. Safe to send twice."""
    return ("EVAL", STORE, 1, key, id, value, keep_ms)


def expect(key: bytes, id: str) -> Command:
    """Makes sure that there is a job whose end can be waited for."""
    return ("EVAL", EXPECT, 1, key, id, NEVER_MS, EXPECTED_MS)
