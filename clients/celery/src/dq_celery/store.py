"""The queue that holds the results, and the commands that read and write it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import time
from typing import Any, Optional

from . import jobs

#: The server's last instant: a job that is due then is never due.
NEVER_MS = jobs.LATEST_MS
YEAR_MS = 365 * 86_400_000
#: How many jobs one DQ.MADD adds.
AT_ONCE = 1000

FIELD = """
local function field(job, name)
  for i = 1, #job, 2 do if job[i] == name then return job[i + 1] end end
end
"""

# A final result: adds, delivers and acknowledges a job with that id at once. It replaces the job that is waited for.
# So clients that wait are told, and a chord goes on if this was its last part. The group is the chord's. Where there is
# no room, an open job is deleted if only such a one is to end: that ends it, too.
END = (
    FIELD
    + """
local queue, id, value, keep, only_open = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local old = redis.call('DQ.GET', queue, id)
local is_open = old and field(old, 'state') ~= 'done'
if only_open == '1' and not is_open then return 0 end
local options = {'REPLACE', 'KEEP', keep}
if is_open and field(old, 'group') then
  options[#options + 1] = 'GROUP'
  options[#options + 1] = field(old, 'group')
end
local added = redis.pcall('DQ.ADD', queue, id, '', unpack(options))
if type(added) == 'table' and added.err then
  if only_open == '1' then redis.call('DQ.DEL', queue, 'IDS', 1, id) end
  return added
end
local job = redis.call('DQ.POP', queue, 'ID', id)
return redis.call('DQ.ACK', queue, 'RESULTS', 'IDS', 1, id, job[3], value)[1]
"""
)

# An intermediate state. Does nothing if the result is final.
NOTE = (
    FIELD
    + """
local queue, id, value, never, ttl = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local old = redis.call('DQ.GET', queue, id)
if old and (field(old, 'state') == 'done' or value == '') then return 0 end
local options = {'REPLACE', 'AT', never}
local group = old and field(old, 'group')
if group then
  options[#options + 1] = 'GROUP'
  options[#options + 1] = group
else
  options[#options + 1] = 'TTL'
  options[#options + 1] = ttl
end
redis.call('DQ.ADD', queue, id, value, unpack(options))
return 1
"""
)


class Store:
    """Asks ``client`` for a client each time: a process that forks has another one."""

    def __init__(self, client: Callable[[], Any], key: str, expires_ms: int) -> None:
        self._client = client
        self.key = key
        self.expires_ms = expires_ms

    @property
    def client(self) -> Any:
        return self._client()

    @property
    def keep_ms(self) -> int:
        """Without an expiry: up to the server's last instant, less a year, as clocks differ."""
        return self.expires_ms or NEVER_MS - int(time() * 1000) - YEAR_MS

    def get(self, id: bytes) -> Optional[bytes]:
        return value(self.client.execute_command("DQ.GET", self.key, id))

    def get_many(self, ids: list[bytes]) -> list[Optional[bytes]]:
        if not ids:
            return []
        pipe = self.client.pipeline(transaction=False)
        for id in ids:
            pipe.execute_command("DQ.GET", self.key, id)
        return [value(shown) for shown in pipe.execute()]

    def end(self, id: bytes, value: Any) -> None:
        self._run(END, id, value, self.keep_ms, 0)

    def end_open(self, id: bytes, value: Any) -> None:
        """Stores a result if the job has not ended yet. If there is no room for it, the job has ended all the same."""
        self._run(END, id, value, self.keep_ms, 1)

    def note(self, id: bytes, value: Any) -> None:
        self._run(NOTE, id, value, NEVER_MS, self.keep_ms)

    def _run(self, script: str, *args: Any) -> None:
        self.client.register_script(script)([self.key], args)

    def delete(self, id: bytes) -> None:
        self.client.execute_command("DQ.DEL", self.key, "IDS", 1, id)

    def expect(self, ids: Iterable[bytes]) -> None:
        """Adds a job for each result of which nothing is stored, so that it can be waited for."""
        client = self.client
        note, pipe = client.register_script(NOTE), client.pipeline(transaction=False)
        for id in ids:
            note([self.key], [id, "", NEVER_MS, self.keep_ms], client=pipe)
        pipe.execute()

    def wait(self, ids: list[bytes], wait_s: float) -> dict[bytes, Optional[bytes]]:
        """Waits until one of them has ended. Returns the results of those that have; None for one without a result."""
        ended = self.client.execute_command("DQ.AWAIT", self.key, wait_s, "IDS", len(ids), *ids)
        return {id: value if outcome == b"done" else None for id, outcome, value, _at, _attempts in ended or ()}

    def open_group(self, group: str, ids: Iterable[bytes]) -> None:
        """Adds jobs for the results of a group, except for those that have ended already."""
        all_ids = list(ids)
        for start in range(0, len(all_ids), AT_ONCE):
            some = all_ids[start : start + AT_ONCE]
            pairs = [word for id in some for word in (id, "")]
            command = ("DQ.MADD", self.key, len(some), *pairs, "REPLACE", "AT", NEVER_MS, "GROUP", group)
            self.client.execute_command(*command)


def value(shown: Any) -> Optional[bytes]:
    """The final result, or the intermediate state."""
    if not shown:
        return None
    found = jobs.field(shown, b"result") if jobs.field(shown, b"state") == b"done" else jobs.field(shown, b"payload")
    return found or None
