"""Types: what a program gets wrong, mypy --strict refuses; and nothing else."""

import asyncio
import difflib
import enum
import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import date, datetime, time, timezone
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple, Optional, TypedDict
from uuid import UUID

import pytest

import dq
import dq.asyncio
import dq.testing

pytest.importorskip("mypy")
PROGRAM = Path(__file__).parent / "typed" / "program.py"


def test_mypy_refuses_what_is_wrong_and_nothing_else():
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", PROGRAM]
    found = subprocess.run(command, capture_output=True, text=True, cwd=PROGRAM.parents[2]).stdout
    refused = {int(line.split(":")[1]) for line in found.splitlines() if ": error:" in line}
    wrong = {n for n, line in enumerate(PROGRAM.read_text().splitlines(), 1) if line.endswith("# wrong")}
    assert refused == wrong, found


@dataclass
class Line:
    sku: UUID
    price: Decimal
    count: int = 1


class Size(enum.Enum):
    SMALL = "s"


class Model:
    """As those of pydantic."""

    def __init__(self, n):
        self.n = n

    def model_dump(self, mode):
        return {"n": self.n}

    @classmethod
    def model_validate(cls, value):
        return cls(value["n"])


@dataclass
class Receipt:
    total: Decimal
    at: datetime
    lines: list[Line]


AT = datetime(2030, 1, 1, 12, tzinfo=timezone.utc)
LINE = Line(UUID(int=5), Decimal("1.10"), 2)


def send(
    job, order: int, at: datetime, lines: list[Line], size: Optional[Size] = None, *, on: date, note: Model
) -> Receipt:
    assert (order, size, on, note.n, type(note)) == (17, Size.SMALL, date(2030, 1, 2), 7, Model)
    return Receipt(sum((line.price * line.count for line in lines), Decimal(0)), at, lines)


async def double(job, order: int) -> Decimal:
    return Decimal(order)


def test_a_kind_is_declared_once(dq_url, queue):
    async def on_asyncio():
        async with dq.asyncio.Queue(dq_url, "q") as queue:
            kind = queue.kind(defaults={"keep": 60})(double)
            id, refused = await kind.add(order=5), await kind.options(id="a").add(order=6)
            again = await kind.options(id="a").add(order=6)
            assert await dq.asyncio.Worker(queue, kind).drain() == 2
            assert [await kind.wait(id), await kind.wait("a"), refused, again] == [Decimal(5), Decimal(6), "a", None]

    kind = queue.kind("receipt", attempts=3, defaults={"keep": 60})(send)
    job = kind.options(priority=7).of(17, AT, [LINE], Size.SMALL, on=date(2030, 1, 2), note=Model(7))
    _, id = queue.chain([{"data": 1, "kind": "other"}, job])
    assert (queue.get(id).label, queue.get(id).priority) == ("receipt", 7)
    assert dq.Worker(queue, kind, dq.Handler(lambda job: None, kind="other")).drain() == 2
    assert kind.wait(id, 5) == Receipt(Decimal("2.20"), AT, [LINE])
    assert dq.testing.run(kind, queue.get(id) and job["data"]).state == "done"
    asyncio.run(on_asyncio())


class Point(NamedTuple):
    x: int
    at: datetime


class Told(TypedDict):
    at: datetime
    by: str


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (tuple[Line, ...], (LINE, LINE)),
        (tuple[int, datetime], (1, AT)),
        (tuple[Line, ...], ()),
        (Point, Point(1, AT)),
        (Told, {"at": AT, "by": "ann"}),
        (dict[int, Line], {7: LINE}),
        (dict[str, Point], {"a": Point(1, AT)}),
        (Optional[time], time(12, 5)),
        (list[Size], [Size.SMALL]),
    ],
    ids=str,
)
def test_what_a_payload_holds_is_read_as_it_is_annotated(hint, value):
    given = []

    def take(job, it):
        given.append(it)

    take.__annotations__["it"] = hint
    kind = dq.Queue("redis://localhost:1", "q").kind()(take)
    written = json.loads(dq.JsonCodec().encode(kind.of(value)["data"]))
    assert dq.testing.run(kind, written).state == "done" and given == [value] and type(given[0]) is type(value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"order": "17"}, "order: '17' is no int"),
        ({"order": True}, "order: 'True' is no int"),
        ({}, "missing a required argument: 'order'"),
        ([17], "it is no object, but [17]"),
        ({"order": 17, "lines": [{"sku": "x"}]}, "lines[0].sku: badly formed"),
        ({"order": 17, "lines": [{"sku": str(UUID(int=1))}]}, "lines[0]: "),
        ({"order": 17, "lines": 5}, "lines: '5' is no list"),
        ({"order": 17, "size": "xl"}, "size: 'xl' is not a valid Size"),
        ({"order": 17, "at": "soon"}, "at: Invalid isoformat"),
        ({"order": 17, "pair": [1]}, "pair: it has 1 elements, not 2"),
        ({"order": 17, "pair": [1, "x"]}, "pair[1]: badly formed"),
    ],
)
def test_a_payload_of_another_shape_is_dead_and_says_where(data, said):
    def take(
        job,
        order: int,
        lines: Optional[list[Line]] = None,
        size: Optional[Size] = None,
        at: Optional[datetime] = None,
        pair: Optional[tuple[int, UUID]] = None,
    ):
        raise AssertionError("it is not run")

    take.__annotations__["lines"] = list[Line]
    ended = dq.testing.run(dq.Queue("redis://localhost:1", "q").kind()(take), data)
    assert (ended.state, ended.attempts) == ("dead", 1)
    assert "payload of kind 'take': " in ended.reason and said in ended.reason, ended.reason


def test_the_log_names_the_kind_that_was_meant(queue, caplog):
    queue.add(1, id="a", kind="sent")
    queue.add(1, id="b", kind="other")
    dq.Worker(queue, queue.kind()(send)).drain()
    assert "no handler for kind 'sent': gave back job 'a'; did it mean 'send'?" in caplog.messages
    assert "no handler for kind 'other': gave back job 'b'" in caplog.messages


def test_an_unknown_kind_is_compared_once(queue, caplog, monkeypatch):
    compared, compare = [], difflib.get_close_matches
    monkeypatch.setattr(difflib, "get_close_matches", lambda *words: compared.append(words[0]) or compare(*words))
    kinds = ["__class__", "constructor", "x" * 1000]
    queue.add_many([{"data": 1, "id": f"{n}{kind[:20]}", "kind": kind} for kind in kinds for n in range(3)])
    worker = dq.Worker(queue, queue.kind()(send))
    worker.drain()
    assert queue.len() == 9 and all(each.endswith("'") for each in caplog.messages), "back, without a hint"
    assert all(len(each) < 250 for each in caplog.messages)
    assert sorted(compared) == sorted(kind[:100] for kind in kinds)
    for n in range(1000):
        worker._hint(f"sen{n}")
    assert len(worker._hints) <= 100


def test_a_field_that_is_not_known_is_of_another_version():
    kind = dq.Queue("redis://localhost:1", "q").kind()(double)
    with pytest.raises(TypeError):
        kind.of(order=1, at=AT)
    ended = asyncio.run(dq.testing.async_run(kind, {"order": 4, "new": 1}))
    assert (ended.state, ended.result) == ("done", "4")
