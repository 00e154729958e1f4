"""Commands for frameworks that store results apart from their messages, in a queue of its own that holds nothing else.

A result is a done job, which ``Queue.result`` and ``Queue.wait`` find. One that is waited for before it is there is a
job that is never due.
"""

from __future__ import annotations

from ._delivery import Command

#: The last instant that the server knows.
NEVER_MS = 2**42 - 1
#: How long such a job stays if no result comes. Whoever still waits then expects it anew.
EXPECTED_MS = 3_600_000

# The job is added, delivered and acknowledged at once, and replaces the one that is waited for: that is its end.
STORE = """
redis.call('DQ.ADD', KEYS[1], ARGV[1], '', 'REPLACE', 'KEEP', ARGV[3])
local job = redis.call('DQ.POP', KEYS[1], 'ID', ARGV[1])
return redis.call('DQ.ACK', KEYS[1], 'RESULTS', ARGV[1], job[3], ARGV[2])
"""

# A done job would be replaced by one that is added.
EXPECT = """
if redis.call('DQ.GET', KEYS[1], ARGV[1]) then return 0 end
redis.call('DQ.ADD', KEYS[1], ARGV[1], '', 'AT', ARGV[2], 'TTL', ARGV[3])
return 1
"""


def store(key: bytes, id: str, value: bytes, keep_ms: int) -> Command:
    """It is kept for that long, and takes the place of an earlier one. Safe to send twice."""
    return ("EVAL", STORE, 1, key, id, value, keep_ms)


def expect(key: bytes, id: str) -> Command:
    """So that its end can be waited for."""
    return ("EVAL", EXPECT, 1, key, id, NEVER_MS, EXPECTED_MS)
