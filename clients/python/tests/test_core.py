"""What the worker decides, without a server."""

import asyncio
from datetime import datetime, timedelta, timezone

import pytest
from redis.exceptions import AuthenticationError, BusyLoadingError, NoPermissionError, ResponseError

import dq
from dq import _core, _ends, _guard, _texts, _trouble
from dq._delivery import Delivery
from dq._errand import Outcomes
from dq._leases import Choice, Leases
from dq.codec import Envelope, id_from, id_to
from dq.times import from_ms, instant_to_ms, to_ms

TOKEN = b"1882361448423751680"


def delivery(attempt=1, handler=None, payload=b"{}", key=b"q", id=b"id", ttr=60_000, max_attempts=0, ladder=None):
    made = Delivery(key, (id, payload, TOKEN, attempt, 2000, 1000, [], [], (ttr, max_attempts, ladder)))
    made.handler = handler or dq.Handler(lambda job: None)
    made.job = dq.Job(made, dq.JsonCodec())
    return made


def after(error, **rest):
    """The outcome of a handler that ended with this error."""
    made = delivery(**rest)
    return _ends.ended(made, _guard.verdict(error))


def test_a_job_knows_its_last_attempt():
    handler = dq.Handler(lambda job: None, attempts=2)
    for rest, found in (
        ({}, (0, False)),
        ({"handler": handler}, (2, False)),
        ({"handler": handler, "attempt": 2}, (2, True)),
        ({"handler": handler, "max_attempts": 9, "attempt": 2}, (2, True)),
        ({"max_attempts": 1}, (1, True)),
    ):
        job = delivery(**rest).job
        assert (job.max_attempts, job.is_last_attempt) == found


def kept(count, **rest):
    made = delivery(**rest)
    made.steps = [b"dq:unknown", count]
    return made


def test_deliveries_to_workers_that_do_not_know_the_kind_are_no_attempts_of_the_handler():
    three = dq.Handler(lambda job: None, attempts=3)
    assert len(_ends.unknown(delivery(), "x" * 5000).command[-1]) == 1024
    assert _ends.unknown(delivery(), "a").ahead == ((b"DQ.STEP", b"q", b"id", TOKEN, b"dq:unknown", 1),)
    assert _ends.unknown(kept(b"6", attempt=9), "a").ahead[0][-1] == 7
    assert _ends.unknown(delivery(attempt=14), "a").ahead == ()
    for attempt, limit in ((6, 8), (8, 8), (2, 4)):  # no more of them than deliveries, as after a KICK
        made = kept(b"5", attempt=attempt, handler=three)
        assert made.limit == limit == made.job.max_attempts
    assert kept(b"5", attempt=7, handler=three, max_attempts=7).job.is_last_attempt
    assert kept(b"5", attempt=7, max_attempts=9).limit == 9 and kept(b"5", attempt=7).limit == 0
    for count in (b"", b"-1", b"x", b"9" * 5000):
        assert kept(count, attempt=7, handler=three).limit == 3
    words = {attempt: _ends.failure(kept(b"5", attempt=attempt, handler=three), b"no").mode for attempt in (7, 8)}
    assert words == {7: b"", 8: b"FATAL"}


def test_what_has_cut_the_connection_twice_is_not_sent_a_third_time():
    for make, command in (
        (lambda: _ends.succeeded(delivery(), b"x" * 9), (b"FATAL", b"REASON", b"result cannot be stored: 9 bytes")),
        (lambda: after(dq.GiveUp("no")), (b"FATAL",)),
        (lambda: _ends.done(delivery()), None),
    ):
        outcome = make()
        first, outcome.cuts = outcome.command, 1
        assert not outcome.again() and outcome.command == first
        outcome.cuts = 2
        assert outcome.again() == (command is not None)
        assert (outcome.command[5:] if command else None) == command and outcome.is_repeated


def test_a_result_that_no_server_takes_is_not_sent(monkeypatch):
    monkeypatch.setattr(_ends, "LARGEST_BYTES", 9)
    found = _ends.succeeded(delivery(), b"x" * 10)
    assert found.command[5:] == (b"FATAL", b"REASON", b"result cannot be stored: 10 bytes")
    assert _ends.succeeded(delivery(), b"x" * 9).command[2] == b"RESULTS"


def refusals(outcome):
    """The options of the first command, and of each one that follows after a refusal."""
    said = [outcome.command[5:]]
    while not outcome.refused(b"ERR value is not an integer or out of range"):
        said.append(outcome.command[5:])
    return said


def test_what_the_server_refuses_is_left_out_and_never_hangs():
    century = timedelta(days=36525)
    first, second, third = refusals(after(dq.Retry(century, "busy"), ladder=1000))
    assert first == (b"DELAY", 3155760000000, b"REASON", b"busy")
    assert (second, third) == ((b"REASON", b"busy"), ())
    snoozed = refusals(after(dq.Snooze(century, "shut")))
    assert snoozed == [(b"SILENT", b"DELAY", 3155760000000, b"REASON", b"shut"), (b"REASON", b"shut"), ()], "a failure"
    seven = dq.Handler(lambda job: None, backoff=[7])
    assert refusals(after(dq.Retry(century, "busy"), handler=seven))[1] == (b"DELAY", 7000, b"REASON", b"busy")
    own = refusals(after(ValueError("no"), handler=dq.Handler(lambda job: None, backoff=[century])))
    assert own[0][1] == 3155760000000 and own[1:] == [(b"REASON", b"ValueError: no"), ()]
    back = _ends.Back(delivery(), b"FATAL", 5, b"bad", 7)
    assert refusals(back.outcome()) == [
        (b"FATAL", b"DELAY", 5, b"PRIORITY", 7, b"REASON", b"bad"),
        (b"FATAL", b"PRIORITY", 7, b"REASON", b"bad"),
        (b"FATAL", b"REASON", b"bad"),
        (b"FATAL",),
    ]


def test_an_end_whose_successor_is_refused_is_a_failure():
    outcome = _ends.followed(delivery(), (b"DQ.ADD",), _ends.done(delivery()), 5, b"not added again")
    assert not outcome.refused(b"ERR out of range")
    assert outcome.command[0] == b"DQ.NACK" and outcome.command[-4:-1] == (b"DELAY", 5, b"REASON")
    assert outcome.command[-1] == b"not added again: ERR out of range"
    outcome = _ends.followed(Delivery(b"q", (b"id", b"", TOKEN, 1, 2, 1, [], [], (1, 0, None))), (), outcome, None, b"")
    assert not outcome.refused(b"no") and outcome.command[5:] == (b"REASON", b": no"), "as of a consumer: no handler"


def test_reasons_are_cut_and_are_utf8():
    assert _texts.reason(ValueError("x" * 5000)) == b"ValueError: " + b"x" * 1012
    assert _texts.reason(ValueError("\ud800")) == b"ValueError: ?"
    assert _texts.reason(ValueError("ä" * 1000)).decode().startswith("ValueError: ä")
    assert _texts.reason(KeyError()) == b"KeyError"


# --- Leases


def words(own=None, *leases):
    return Choice(
        own, [dq.Handler(lambda job: None, kind=str(n), lease=lease) for n, lease in enumerate(leases)]
    ).words()


def test_the_lease_of_a_job_holds_unless_its_handlers_say_another():
    assert words(None, None) == () and words(None, None, 5) == ()
    assert words(None, 5) == words(7, 5, 5) == (b"TTR", 5000)
    assert words(7, None) == words(7, None, 5) == (b"LEASE", 7000)


def test_how_long_a_lease_was_given():
    assert Choice(None).given(60_000) == 60
    assert Choice(7).given(60_000) == 7 and Choice(7).given(2000) == 2 and Choice(7).given(9000) == 7
    assert Choice(7, [dq.Handler(lambda job: None, lease=5)]).given(2000) == 5


def held(*lengths):
    leases = Leases()
    made = [delivery(key=key, id=key) for key, _ in lengths]
    for each, (_, lease_s) in zip(made, lengths):
        each.lease_s, each.lease_until = lease_s, 100.0 + lease_s
        leases.taken([each], 100.0, lease_s)
    return leases, made


def test_one_heartbeat_at_a_third_of_the_shortest_lease():
    leases, (one, two) = held((b"q", 30.0), (b"r", 6.0))
    assert leases.beat_at == 102.0 and leases.beats(101.9) == []
    assert [command for command, _ in leases.beats(102.0)] == [
        (b"DQ.TOUCH", b"q", b"IDS", 1, b"q", TOKEN),
        (b"DQ.TOUCH", b"r", b"IDS", 1, b"r", TOKEN),
    ]
    assert leases.beat_at == 104.0
    leases.settle(two)
    leases.beats(104.0)
    assert leases.beat_at == 114.0
    leases.settle(one)
    assert leases.beats(114.0) == [] and leases.beat_at == float("inf")


def test_nobody_is_woken_for_a_lease_that_ends_later_than_others():
    leases, (one, two) = held((b"q", 30.0), (b"r", 6.0))
    leases.settle(one), leases.settle(two)
    assert leases.over(101.0) == [] and leases.beats(101.0) == []
    assert not leases.taken([one], 101.0, 6.0), "as many wakings as jobs"
    assert leases.taken([two], 101.0, 1.0)


def test_a_lease_is_over_when_nobody_answered():
    leases, (one, two) = held((b"q", 30.0), (b"r", 6.0))
    assert leases.beaten([two], [12345], 104.0) == []
    assert leases.over(109.9) == [] and leases.over(110.0) == [two]
    assert leases.over(130.0) == [one] and leases.held == {}


def test_a_lease_of_another_length_is_asked_for_until_it_is_answered():
    leases, (one, _) = held((b"q", 30.0), (b"r", 30.0))
    leases.ask(one, 6.0)
    touch = ((b"DQ.TOUCH", b"q", b"IDS", 1, b"q", TOKEN, b"TTR", 6000), [one])
    assert leases.beats(100.5) == [touch] and leases.beats(100.6) == [touch]
    leases.beaten([one], [12345], 100.6)
    assert leases.beats(100.7) == [] and leases.beat_at == 102.6


@pytest.mark.parametrize(
    "error, words",
    [
        (ResponseError("ERR syntax error"), "older"),
        (ResponseError("ERR unknown command 'DQ.BPOP', with args beginning with: "), "loadmodule"),
        (AuthenticationError("invalid username-password pair"), "refuses user name or password"),
        (AuthenticationError("Authentication required."), "requires a password, and none was given"),
        (AuthenticationError("HELLO must be called with the client already authenticated"), "none was given"),
        (ResponseError("NOAUTH Authentication required."), "requires a password, and none was given"),
        (AuthenticationError("AUTH <password> called without any password configured"), "has no password"),
        (NoPermissionError("this user has no permissions"), "ACL"),
        (ResponseError("NOPROTO unsupported protocol version"), "does not speak RESP3: give its client protocol=2"),
        (ResponseError("unknown command 'HELLO', with args beginning with: '3'"), "does not speak RESP3"),
        (ResponseError("WRONGTYPE Operation against a key"), "another type"),
        (ResponseError("syntax error"), "older"),
        (TypeError("a fault of the program"), "a fault"),
    ],
)
def test_what_waiting_cannot_mend_is_said(error, words):
    assert words in str(_trouble.fatal(error))


@pytest.mark.parametrize(
    "error",
    [
        ResponseError("MISCONF Redis is configured to save RDB snapshots"),
        ResponseError("UNBLOCKED force unblock from blocking operation"),
        ResponseError("CLUSTERDOWN The cluster is down"),
        BusyLoadingError(),
        ConnectionResetError(),
        TimeoutError(),
        asyncio.TimeoutError(),
    ],
)
def test_what_passes_is_waited_for(error):
    assert _trouble.fatal(error) is None


def test_handlers_by_kind():
    one, rest = dq.Handler(lambda job: None, kind="one"), dq.Handler(lambda job: None)
    handlers = _core.Handlers([one, rest])
    assert handlers.choose(delivery(payload=Envelope.write({}, "one", None)).job) is one
    assert handlers.choose(delivery(payload=Envelope.write({}, "two", None)).job) is rest
    assert handlers.choose(delivery().job) is rest
    assert _core.Handlers([one]).choose(delivery().job) is None
    assert handlers.choose(delivery(payload=b'{"dq":2,"kind":"one","data":1}').job) is None
    with pytest.raises(dq.ConfigurationError):
        handlers.add(dq.Handler(lambda job: None))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b"[]",
        b'{"dq":1}',
        b'{"dq":"1","kind":"a","data":1}',
        b'{"dq":true,"kind":"a","data":1}',
        b'{"a":"dq"}',
        b'{"dq":1,"kind":["a"],"data":1}',
        b'{"dq":1,"kind":"a","data":' + b"[" * 100_000,
    ],
)
def test_what_is_no_envelope(payload):
    assert Envelope.read(payload) is None


def test_data_kind_and_headers():
    payload = Envelope.write({"a": "ä"}, "close", {"x": "y"})
    assert payload == '{"dq":1,"kind":"close","data":{"a":"ä"},"headers":{"x":"y"}}'.encode()
    job = delivery(payload=payload).job
    assert (job.kind, job.data, job.headers) == ("close", {"a": "ä"}, {"x": "y"})
    with pytest.raises(dq.PayloadError):
        _ = delivery(payload=b"\xff").job.data


def test_ids_of_any_bytes_survive():
    raw = bytes(range(256))
    assert id_to(id_from(raw)) == raw


def test_durations_are_rounded_up_and_instants_need_a_zone():
    assert to_ms(0.0001) == 1
    assert to_ms(0.1 + 0.2) == 300
    assert to_ms(timedelta(microseconds=1001)) == 2
    instant = datetime(2026, 1, 2, 3, 4, 5, 600_100, timezone.utc)
    assert instant_to_ms(instant) == instant_to_ms(from_ms(instant_to_ms(instant)))
    with pytest.raises(ValueError):
        instant_to_ms(datetime(2026, 1, 1))


def test_a_fetch_that_gave_way_goes_on_with_its_wait_for_a_batch():
    fetches = _core.Fetches([b"q"], None, Choice(1), (50, 2000))

    def fill(count, now):
        fetches.packed(count, 5, now)
        words = fetches.command(count, 5, now)
        return words[words.index(b"FILL") + 1 :][:2] if b"FILL" in words else None

    assert [fill(count, 0) for count in (100, 40, 2, 1)] == [(50, 2000), (40, 2000), (2, 2000), None]
    for began in (10, 11):
        fill(100, began)
        fetches.fetched(False, began + 0.25)
    assert (fill(100, 11.5), fill(100, 20)) == ((50, 500), (50, 1))
    fetches.fetched(True, 20)
    assert fill(100, 21) == (50, 2000)
    fetches.fetched(False, 26)  # it lasted as long as it could
    assert fill(100, 27) == (50, 2000)


@pytest.mark.parametrize("fill", [(1, 1), (11, 1), (5, 0), (5, -1)])
def test_a_fill_is_within_its_batch(fill):
    with pytest.raises(ValueError, match="fill"):
        dq.Handler(print, batch=10, fill=fill)


def test_what_another_thread_takes_first_is_not_missed():
    """Two threads may take at once: one that counted on the last goes without it."""

    class Raced(Outcomes):
        def __len__(self):
            return 1

    last = after(None)
    assert [*Raced([last]).take()] == [[last]]


def test_a_delivery_that_has_ended_is_told_nothing():
    Delivery(b"q", (b"id", b"", TOKEN, 1, 2, 1, [], [], (1, 0, None))).tell("stopping")
