"""All recurring jobs of a program at once."""

from __future__ import annotations

import logging
import re
import time
import zlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, Optional

from . import _arguments as words
from ._adds import _labelled
from ._arguments import Bytes
from ._delivery import as_map
from ._job_options import ABOUT, job_options
from ._options import near_misses, unknown
from ._outcomes import Outcomes
from ._rule import RuleChanges
from .codec import Envelope, id_from
from .times import between, to_ms

SAID = "dq:said"
"""The header with the time at which a rule was said last, and the checksum of what was said."""

RECENT_MS = 600_000
STEP = 1000
"""How many ids one SCAN looks at, and how many jobs are read at once."""

_REMOVE = """
local rule = redis.call('DQ.GET', KEYS[1], ARGV[1]) or {}
for at = 1, #rule, 2 do
  if rule[at] == 'payload' and rule[at + 1] == ARGV[2] then
    return redis.call('DQ.DEL', KEYS[1], 'UNRESERVED', 'IDS', 1, ARGV[1])
  end
end
return 0
"""
"""Removes a job that is still as it was read: one that is said again has another payload."""

_RULE = ("until", "times", "grace", "jitter")
_OPTIONS = ("every", "cron", "tz", *_RULE, "data", "kind", "headers", *ABOUT)

Steps = Generator[Sequence[Any], list[Any], Any]


@near_misses("Queue")
class Rules(Outcomes):
    def rules(
        self,
        program: Bytes,
        rules: Mapping[str, Mapping[str, Any]],
        *,
        prune: bool = False,
        allow_empty: bool = False,
        dry_run: bool = False,
    ) -> RuleChanges:
        """Says all recurring jobs of a program: adds those that are new, and changes those that differ.

        rules: by their names, which have no colon, mappings of what ``every`` and ``cron`` take, as
            ``{"nightly": {"cron": "0 3 * * *", "kind": "report", "data": {...}}}`` or ``{"every": 60, ...}``. The id of
            each is ``program:name``.
        prune: removes the program's other rules, but none that is reserved, and none that was said within ten minutes,
            as by workers of the version before. For a deploy; a worker's start says its rules, and logs which others
            there are.
        allow_empty: prunes even if ``rules`` is empty.
        dry_run: changes nothing.
        """
        return self._phases(self._rules(program, rules, prune and bool(rules or allow_empty), dry_run))  # type: ignore[no-any-return]

    def _rules(self, program: Bytes, rules: Mapping[str, Mapping[str, Any]], prune: bool, dry_run: bool) -> Steps:
        prefix = words.bytes_of(program) + b":"
        between("program", len(prefix) - 1, 1, 1022, " bytes")
        now = time.time_ns() // 1_000_000
        said = [self._said(prefix, name, rule, now) for name, rule in rules.items()]
        known = yield [("DQ.GET", self._key(id), id) for id, _, _ in said]
        sums = {id: _stamp(job)[1] if job is not None else None for (id, _, _), job in zip(said, known)}
        if not dry_run:
            yield [call for _, _, call in said]
        ids = {id for id, _, _ in said}
        others = [id for id in (yield from self._ids_of(prefix)) if id not in ids]
        removed: list[bytes] = []
        if prune:
            removed = yield from self._pruned(others, now, dry_run)

        def names(some: Iterable[bytes]) -> list[str]:
            return sorted(id_from(id[len(prefix) :]) for id in some)

        left = names(set(others) - set(removed))
        if left:
            shown = ", ".join(map(repr, left[:10])) + (f" and {len(left) - 10} more" if len(left) > 10 else "")
            text = "queue %r has rules of program %r that are not in this set: %s"
            self._log.say(logging.WARNING, text, self.name, id_from(prefix[:-1]), shown)
        return RuleChanges(
            added=names(id for id, _, _ in said if sums[id] is None),
            changed=names(id for id, crc, _ in said if sums[id] not in (None, crc)),
            kept=names(id for id, crc, _ in said if sums[id] == crc),
            removed=names(removed),
            unknown=left,
        )

    def _said(self, prefix: bytes, name: str, rule: Mapping[str, Any], now: int) -> tuple[bytes, str, Any]:
        """Its id, the checksum of what is said, and the command that says it."""
        raw = words.bytes_of(name)
        if not raw or b":" in raw:
            raise ValueError(f"the name of a rule is not empty and has no colon, not {name!r}")
        given = {**rule}
        for option in given:
            if option not in _OPTIONS:
                raise unknown("a rule", option, _OPTIONS)
        every, cron, tz = (given.pop(option, None) for option in ("every", "cron", "tz"))
        if (every is None) == (cron is None):
            raise ValueError(f"rule {name!r} needs every or cron")
        data, kind, headers = (given.pop(option, None) for option in ("data", "kind", "headers"))
        limits = words.rule(*(given.pop(option, None) for option in _RULE))
        when = ["EVERY", to_ms(every, "every", 1000)] if cron is None else ["CRON", cron, *words.value("TZ", tz)]
        options = [*when, *limits, *job_options(_labelled(given, kind)), "REPLACE"]
        plain = Envelope.write(data, kind, headers)
        crc = f"{zlib.crc32(repr((plain, options)).encode()):08x}"
        id = words.new(prefix + raw)
        stamped = {**(headers or {}), SAID: f"{now} {crc}"}
        return id, crc, self._add(data, id, kind, stamped, options)

    def _ids_of(self, prefix: bytes) -> Steps:
        """The ids of the program's rules. What has another colon is of a program whose name is longer."""
        pattern = re.sub(rb"([*?[\\])", rb"\\\1", prefix) + b"*"
        found: set[bytes] = set()
        for key in self.keys:
            cursor = b"0"
            while True:
                ((cursor, ids),) = yield [
                    ("DQ.SCAN", key, cursor, "MATCH", pattern, "RECURRING", "COUNT", STEP),
                ]
                found.update(id for id in ids if b":" not in id[len(prefix) :])
                if int(cursor) == 0:
                    break
        return found

    def _pruned(self, ids: Sequence[bytes], now: int, dry_run: bool) -> Steps:
        """Those of the jobs that were removed, or would be."""
        removed: list[bytes] = []
        for at in range(0, len(ids), STEP):
            some = ids[at : at + STEP]
            jobs = yield [("DQ.GET", self._key(id), id) for id in some]
            old = {
                id: (as_map(job) or {})[b"payload"]
                for id, job in zip(some, jobs)
                if job is not None and _is_old(job, now)
            }
            gone = [1] * len(old)
            if not dry_run:
                gone = yield [("EVAL", _REMOVE, 1, self._key(id), id, payload) for id, payload in old.items()]
            removed += [id for id, is_gone in zip(old, gone) if is_gone]
        return removed


def _is_old(job: Any, now: int) -> bool:
    at, _ = _stamp(job)
    return at is not None and now - at >= RECENT_MS and (as_map(job) or {})[b"state"] != b"reserved"


def _stamp(job: Any) -> tuple[Optional[int], str]:
    """When ``rules`` said the job, and its checksum; None and "" if something else added it."""
    envelope = Envelope.read((as_map(job) or {})[b"payload"])
    at, _, crc = str(envelope.headers.get(SAID, "") if envelope else "").partition(" ")
    return (int(at), crc) if at.isascii() and at.isdigit() else (None, "")
