"""What users can give to the library: all that the language can raise, return and attach, and worse."""

import asyncio
import itertools
import random
from datetime import timedelta

import dq


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


class Faceless:
    """An object that fails at every use: even its attributes cannot be read."""

    def __getattribute__(self, name):
        raise RuntimeError(name)

    def __str__(self, *_):
        raise SystemExit("no text")

    __repr__ = __bool__ = __len__ = __eq__ = __float__ = __int__ = __format__ = __await__ = __str__
    __hash__ = None


class Text(str):
    """A str whose methods fail."""

    def encode(self, *_):
        raise RuntimeError("encode")

    __len__ = __bool__ = __format__ = __add__ = __str__ = encode


class Nameless(type):
    @property
    def __name__(cls):
        raise RuntimeError("name")

    def __instancecheck__(cls, other):
        raise RuntimeError("instance")

    __subclasscheck__ = __instancecheck__


class Meta(Exception, metaclass=Nameless):
    @property
    def __class__(self):
        raise RuntimeError("class")


class Classless(Exception):
    @property
    def __class__(self):
        raise RuntimeError("class")


class Number(float):
    def __float__(self):
        raise RuntimeError("float")


class Bare(dq.Snooze):
    """A Snooze without the attributes that its base sets."""

    def __init__(self):
        pass


class Trap(dq.Retry):
    def __init__(self):
        pass

    @property
    def delay(self):
        raise KeyboardInterrupt("delay")

    @property
    def reason(self):
        raise GeneratorExit("reason")


class Falsy(Exception):
    def __bool__(self):
        return False

    __len__ = lambda self: 0  # noqa: E731


class NotText(Exception):
    def __str__(self):
        return 5


def circle():
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    one.__context__ = one
    return one


def deep():
    found = ValueError("0")
    for n in range(3000):
        next = ValueError(str(n))
        next.__cause__ = found
        found = next
    return found


NAN, INF = float("nan"), float("inf")
DELAYS = [NAN, INF, -INF, -1, -1e300, 1e300, 10**400, 0, 0.0, True, timedelta.max, timedelta.min, Number(5)]
DELAYS += [None, "5", b"5", [], object(), Faceless(), ValueError(), 3155760000]
REASONS = [
    None,
    "",
    "text",
    "\udc80",
    "\x00",
    "x" * 100_000,
    "\U0001f600" * 1000,
    b"bytes",
    b"\xff",
    404,
    0,
    NAN,
    [],
    {},
]
REASONS += [ValueError(), ValueError, Unprintable(), Faceless(), Text("x"), Meta(), object(), lambda: None]
ERRORS = [
    ValueError(),
    ValueError("\udc80"),
    Unprintable(),
    Meta(),
    Classless(),
    Falsy(),
    NotText(),
    circle(),
    deep(),
    Bare(),
    Trap(),
]
ERRORS += [
    ValueError(Faceless()),
    ValueError(Text("x")),
    KeyError(b"\xff"),
    MemoryError(),
    RecursionError(),
    StopIteration(1),
]
ERRORS += [
    SystemExit(3),
    KeyboardInterrupt(),
    GeneratorExit(),
    asyncio.CancelledError(),
    StopAsyncIteration(),
    OSError(1),
]
ERRORS += [
    dq.Cancelled(),
    dq.PayloadError("mine"),
    dq.ConfigurationError("mine"),
    AssertionError(),
    BaseException("base"),
]
ERRORS += [UnicodeEncodeError("utf-8", "\udc80", 0, 1, "why"), SyntaxError("x", ("f", 1, 1, "\udc80")), Warning()]


def attached(made, **fields):
    for name, value in fields.items():
        setattr(made, name, value)
    return made


ERRORS.append(attached(dq.PayloadError("mine"), job=Faceless()))


def says():
    """Exceptions that handlers may raise to say how their jobs go on, with every kind of value in them."""
    made = []
    for kind, delay in itertools.product((dq.Retry, dq.Snooze), DELAYS):
        made.append(attached(kind(5), delay=delay))
    for kind, reason in itertools.product((dq.Retry, dq.Snooze), REASONS):
        made.append(kind(5, reason))
    for kind, reason in itertools.product((dq.GiveUp, dq.Cancelled), REASONS):
        made.append(kind(reason))
    return made


def some_of_all(count, seed):
    """Exceptions with two hostile attributes at once, and ones with hostile types."""
    chosen = random.Random(seed)
    made = []
    for _ in range(count):
        kind = chosen.choice([dq.Retry, dq.Snooze])
        made.append(attached(kind(5), delay=chosen.choice(DELAYS), reason=chosen.choice(REASONS)))
        made.append(type("Odd", (chosen.choice([Unprintable, Meta, Falsy]),), {})())
    return made


def generator(job):
    yield job


async def async_generator(job):
    yield job


async def coroutine(job):
    pass


RETURNED = [generator, async_generator, coroutine]
"""Functions of which nothing runs when they are called."""
HARMLESS = [*REASONS, *DELAYS]
"""What a handler may return. Its job is done, or fails if the codec cannot encode the value."""
