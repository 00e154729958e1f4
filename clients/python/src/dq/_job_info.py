"""What DQ.GET shows.

Written from docs/libraries.md by `make generated`; DO NOT EDIT.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Optional

from ._reading import FailedAttempt, Said, durations, history_of, ids_of, maybe_id, prose, results_of, steps_of
from ._rule import Rule
from .codec import Codec, id_from
from .times import maybe_duration, maybe_from_ms


@dataclass(frozen=True)
class JobInfo(Said):
    """A job as DQ.GET shows it. Its ``data``, ``kind`` and ``headers`` are those of the payload."""

    id: str
    """The job's."""
    payload: bytes
    """What was added."""
    state: str
    """Where the job is."""
    priority: int
    """Smaller is delivered first."""
    due: Optional[datetime]
    """When it is due; nothing of a blocked job without a time of its own."""
    deadline: Optional[datetime]
    """When its lease ends; nothing unless reserved."""
    ttr: timedelta
    """How long its leases are."""
    attempts: int
    """Deliveries so far."""
    max_attempts: int
    """Deliveries allowed; 0: no limit."""
    backoff: list[timedelta]
    """The waits after failures."""
    label: Optional[str]
    """What kind of job it is, for those who look; it changes nothing of how the job is served."""
    expires: Optional[datetime]
    """When its TTL ends it."""
    token: Optional[str]
    """The current one."""
    reason: Optional[str]
    """Why it failed last."""
    failed: Optional[datetime]
    """When that was."""
    history: list[FailedAttempt]
    """Its last attempts that failed, as many as the queue's `HISTORY` keeps."""
    group: Optional[str]
    """The group that it is in."""
    next: Optional[bytes]
    """The payload of the job that takes its place when its run is over."""
    rule: Optional[Rule]
    """How a recurring job comes again."""
    progress: Optional[str]
    """What its handler reported last."""
    keep: Optional[timedelta]
    """How long it stays once it is done; nothing: as its queue says."""
    cost: int
    """What a delivery counts for `RATE` and `GROUPRATE`."""
    awaits: Optional[str]
    """The signal that it waits for."""
    steps: Mapping[str, bytes]
    """What its handler has kept, by name."""
    started: Optional[datetime]
    """The latest delivery, of a reserved or done job."""
    client: Optional[str]
    """Who works on it: the name or the address of the connection that it was delivered to, if the server knows it."""
    finished: Optional[datetime]
    """When a done job was acknowledged."""
    result: Optional[bytes]
    """What the handler of a done job returned, as the codec encoded it."""
    after: list[str]
    """The jobs that a blocked job still waits for."""
    after_group: Optional[str]
    """The group that it waits for."""
    on_dead: Optional[str]
    """What it does if a job that it is after dies: `wait`, `run` or `die`."""
    results: list[tuple[str, Optional[str], Optional[bytes]]]
    """How the jobs ended that it is after, or was."""
    payload_bytes: int
    """The payload's whole length, where `payload` is cut too."""
    fields: Mapping[str, Any] = field(repr=False)
    """All fields as the server gave them, also those that this library does not know."""
    _codec: Codec = field(repr=False, compare=False)

    @staticmethod
    def read(reply: Optional[dict[bytes, Any]], codec: Codec) -> Optional[JobInfo]:
        if reply is None:
            return None
        fields = {name.decode(): value for name, value in reply.items()}
        return JobInfo(
            id=id_from(fields["id"]),
            payload=fields["payload"],
            state=fields["state"].decode(),
            priority=fields["priority"],
            due=maybe_from_ms(fields.get("due")),
            deadline=maybe_from_ms(fields.get("deadline")),
            ttr=timedelta(milliseconds=fields["ttr"]),
            attempts=fields["attempts"],
            max_attempts=fields["max-attempts"],
            backoff=durations(fields["backoff"]),
            label=maybe_id(fields.get("label")),
            expires=maybe_from_ms(fields.get("expires")),
            token=maybe_id(fields.get("token")),
            reason=prose(fields.get("reason")),
            failed=maybe_from_ms(fields.get("failed")),
            history=history_of(fields.get("history")),
            group=maybe_id(fields.get("group")),
            next=fields.get("next"),
            rule=Rule.read(fields),
            progress=prose(fields.get("progress")),
            keep=maybe_duration(fields.get("keep")),
            cost=fields.get("cost", 1),
            awaits=maybe_id(fields.get("awaits")),
            steps=steps_of(fields.get("steps")),
            started=maybe_from_ms(fields.get("started")),
            client=prose(fields.get("client")),
            finished=maybe_from_ms(fields.get("finished")),
            result=fields.get("result"),
            after=ids_of(fields.get("after")),
            after_group=maybe_id(fields.get("after-group")),
            on_dead=prose(fields.get("on-dead")),
            results=results_of(fields.get("results")),
            payload_bytes=fields.get("payload-bytes", 0),
            fields=fields,
            _codec=codec,
        )
