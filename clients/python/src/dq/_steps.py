"""Steps: what a handler keeps with its job, and what it waits for between attempts, without I/O.

Each function is a generator, written once for both kinds of workers. It yields what is to be done (``Call``, ``Ask``,
``Children``) and is sent the result.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Callable, NamedTuple, NoReturn, Optional

from redis.exceptions import ResponseError

from ._delivery import Command, Delivery, as_map
from ._job_options import job_options
from ._trouble import refused
from .codec import Codec, decoded, id_from, id_to
from .errors import Cancelled, Suspended, TimedOut
from .times import Duration, to_ms

OWN = "dq:"
"""The prefix of names that are reserved for the library."""

LONGEST_NAME = 240
WAITING, OVER = b"waiting", b"over"
ON_DEAD = {"wait": b"WAIT", "run": b"RUN", "die": b"DIE"}


class Call(NamedTuple):
    """Calls a function of the user's."""

    function: Callable[[], Any]


class Ask(NamedTuple):
    """Sends commands, for their replies. A command that is refused raises."""

    commands: Sequence[Command]


class Children(NamedTuple):
    """Asks for the commands that add these jobs to the queue's key of the running job.

    ``like``: for each, its id if it names none, or the beginning of its id.
    """

    jobs: Sequence[Mapping[str, Any]]
    like: Sequence[str]


Steps = Generator[Any, Any, Any]


class Work:
    """What is kept of a job, and the names that this attempt has used."""

    def __init__(self, delivery: Delivery, codec: Codec) -> None:
        self.delivery = delivery
        self.codec = codec
        self.kept: dict[bytes, bytes] = as_map(delivery.steps) or {}
        self.is_over = False
        """The attempt has ended, even if its handler goes on."""
        self._names: set[bytes] = set()
        self._joins = 0

    def begin(self) -> None:
        if self.is_over:
            raise Suspended("this attempt is over: the job was given back")
        self.delivery.job.check()

    def claim(self, name: str) -> bytes:
        """The key of a step's name. A name stands for one thing in each attempt."""
        self.begin()
        if not isinstance(name, str) or not name:
            raise TypeError(f"the name of a step is a text, such as 'charge', not {name!r}")
        key = id_to(name)
        if name.startswith(OWN):
            raise ValueError(f"the name {name!r} is not free: those that begin with {OWN!r} are the library's")
        if len(key) > LONGEST_NAME:
            raise ValueError(f"the name of a step has at most {LONGEST_NAME} bytes, not {len(key)}")
        return self._claimed(key, repr(name))

    def join(self, name: Optional[str]) -> tuple[str, bytes]:
        """Name and key of a wait for jobs. Without a name it is the wait's number in this attempt."""
        self.begin()
        self._joins += 1
        name = str(self._joins) if name is None else name
        if not isinstance(name, str) or not 0 < len(id_to(name)) <= LONGEST_NAME:
            raise ValueError(f"the name of a wait is a text of 1 to {LONGEST_NAME} bytes, not {name!r}")
        return name, self._claimed(id_to(f"{OWN}after:{name}"), f"{name!r} of wait_for and spawn")

    def _claimed(self, key: bytes, shown: str) -> bytes:
        if key in self._names:
            raise ValueError(f"the name {shown} is used twice in one attempt: each step needs a name of its own")
        self._names.add(key)
        return key

    def command(self, key: bytes, value: bytes) -> Command:
        return (b"DQ.STEP", self.delivery.key, self.delivery.id, self.delivery.token, key, value)

    def keep(self, key: bytes, value: bytes) -> Steps:
        (reply,) = yield Ask([self.command(key, value)])
        if reply is None:
            self.lost()
        self.kept[key] = value

    def lost(self) -> NoReturn:
        self.delivery.owner.lose([self.delivery])
        raise Cancelled("lost")

    def end(self, what: str, ahead: Sequence[Command], *options: Any) -> NoReturn:
        """Ends the attempt. When the handler has ended, the commands ``ahead`` are sent and the job is given back,
        uncounted: in one atomic step, which stops at the first refusal."""
        delivery = self.delivery
        if delivery.handler is not None and delivery.handler.batch:
            raise RuntimeError(f"{what} ends an attempt, which a batch cannot: give this kind of jobs a handler alone")
        nack = (b"DQ.NACK", delivery.key, delivery.id, b"TOKEN", delivery.token, b"SILENT", *options)
        if not delivery.owner.holds(delivery):
            delivery.job.check()
            raise Cancelled("lost")
        delivery.suspension = (what, ahead, nack)
        self.is_over = True
        raise Suspended(what)


def shown(work: Work) -> Mapping[str, bytes]:
    return MappingProxyType({id_from(name): value for name, value in work.kept.items()})


def step(work: Work, name: str, function: Callable[[], Any]) -> Steps:
    key = work.claim(name)
    raw = work.kept.get(key)
    if raw is None:
        value = yield Call(function)
        work.begin()
        raw = bytes(work.codec.encode(value))
        yield from work.keep(key, raw)
    return decoded(work.codec, raw, f"step {name!r}")


def sleep(work: Work, name: str, duration: Duration) -> Steps:
    key, wait_ms = work.claim(name), to_ms(duration, "duration")
    if key not in work.kept:
        work.end("job.sleep", [work.command(key, b"")], b"DELAY", wait_ms)
    return
    yield


def wait(work: Work, name: str, timeout: Optional[Duration]) -> Steps:
    key = work.claim(name)
    marker = id_to(f"{OWN}wait:{name}")
    state, raw = work.kept.get(marker), work.kept.get(key)
    if raw is not None and state != OVER:
        return decoded(work.codec, raw, f"signal {name!r}") if raw else None
    if timeout is None:
        work.end("job.wait", [], b"AWAIT", key)
    wait_ms = to_ms(timeout, "timeout")
    if state is None:
        work.end("job.wait", [work.command(marker, WAITING)], b"AWAIT", key, b"DELAY", wait_ms)
    if state != OVER:
        yield from work.keep(marker, OVER)
    text = f"job {id_from(work.delivery.id)!r}: no signal {name!r} within {wait_ms / 1000:g} s"
    raise TimedOut(text, id_from(work.delivery.id), wait_ms / 1000)


def wait_for(work: Work, ids: Iterable[str], name: Optional[str], on_dead: str) -> Steps:
    if isinstance(ids, (str, bytes)):
        raise TypeError(f"wait_for takes a list of ids, not {ids!r}")
    raws = [id_to(id) if isinstance(id, str) else id for id in ids]
    _, key = work.join(name)
    return (yield from _joined(work, "job.wait_for", key, raws, [], on_dead))


def spawn(work: Work, jobs: Iterable[Mapping[str, Any]], name: Optional[str], on_dead: str) -> Steps:
    name, key = work.join(name)
    base = id_from(work.delivery.id)
    given = list(jobs)
    if key in work.kept:  # nothing is added, so no hook is called
        return _read_rows(work.kept[key])
    adds = yield Children(given, [f"{base}/{name}/{n}" for n in range(len(given))])
    return (yield from _joined(work, "job.spawn", key, [add[2] for add in adds], adds, on_dead))


def _joined(work: Work, what: str, key: bytes, ids: Sequence[bytes], ahead: Sequence[Command], on_dead: str) -> Steps:
    """How the jobs ended, as rows of id, outcome and value. If they have not, ends the attempt."""
    if on_dead not in ON_DEAD:
        raise ValueError(f"on_dead must be one of {', '.join(ON_DEAD)}, not {on_dead!r}")
    raw = work.kept.get(key)
    if raw is not None:
        return _read_rows(raw)
    if not ids:
        return []
    rows = [list(row) for row in work.delivery.results]
    if [row[0] for row in rows] != list(ids):
        work.end(what, ahead, b"AFTER", len(ids), *ids, b"ONDEAD", ON_DEAD[on_dead])
    yield from work.keep(key, _written_rows(rows))
    return rows


def _written_rows(rows: Iterable[Sequence[Any]]) -> bytes:
    texts = [
        [id_from(id), outcome and outcome.decode(), None if value is None else base64.b64encode(value).decode()]
        for id, outcome, value in rows
    ]
    return json.dumps(texts, separators=(",", ":")).encode()


def _read_rows(raw: bytes) -> list[list[Any]]:
    return [
        [id_to(id), outcome and outcome.encode(), None if value is None else base64.b64decode(value)]
        for id, outcome, value in json.loads(raw)
    ]


_ENDED = b"ended"
_ONCE = """
local function ended()
  local job = redis.call('DQ.GET', KEYS[1], ARGV[1])
  for n = 1, #job, 2 do
    if job[n] == 'steps' then
      for m = 1, #job[n + 1], 2 do
        if job[n + 1][m] == ARGV[3] then return job[n + 1][m + 1] == 'ended' end
      end
    end
  end
end
local function work(KEYS, ARGV)
%s
end
if not redis.call('DQ.TOUCH', KEYS[1], ARGV[1], 'TOKEN', ARGV[2]) then return -1 end
if redis.call('DQ.SIGNAL', KEYS[1], ARGV[1], ARGV[3], 'begun') == 0 and ended() then return 0 end
local is_done, why = pcall(work, {unpack(KEYS, 2)}, {unpack(ARGV, 4)})
if not is_done or type(why) == 'table' and why.err then return {type(why) == 'table' and why.err or tostring(why)} end
redis.call('DQ.STEP', KEYS[1], ARGV[1], ARGV[2], ARGV[3], 'ended')
return 1
"""
"""The step is "begun" before the script runs and "ended" after it. If the script fails, it stays "begun"."""


def correct(work: Work, given: Mapping[str, Any]) -> Steps:
    work.begin()
    delivery = work.delivery
    for name in (name for name, value in given.items() if value is None):
        raise TypeError(f"{name}: None says nothing")
    (reply,) = yield Ask([(b"DQ.TOUCH", delivery.key, delivery.id, "TOKEN", delivery.token, *job_options(given))])
    if reply is None:
        work.lost()


def once(work: Work, name: str, script: str, keys: Sequence[Any], args: Sequence[Any]) -> Steps:
    key = work.claim(name)
    if work.kept.get(key) == _ENDED:
        return False
    delivery = work.delivery
    given = (delivery.id, delivery.token, key, *args)
    command = (b"EVAL", _ONCE % script, 1 + len(keys), delivery.key, *keys, *given)
    (reply,) = yield Ask([command])
    if isinstance(reply, list):
        raise refused(ResponseError(reply[0].decode("utf-8", "replace")), command, delivery.id)
    if reply == -1:
        work.lost()
    work.kept[key] = _ENDED
    return bool(reply)
