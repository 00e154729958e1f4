"""What the worker decides, without a server."""

from datetime import datetime, timedelta, timezone

import pytest
from redis.exceptions import AuthenticationError, BusyLoadingError, NoPermissionError, ResponseError

import dq
from dq import _core
from dq.handler import exponential_s
from dq.job import Envelope, id_from, id_to
from dq.times import from_ms, instant_to_ms, to_ms

TOKEN = b"1882361448423751680"


def delivery(attempt=1, handler=None, payload=b"{}"):
    made = _core.Delivery(b"q", (b"id", payload, TOKEN, attempt, 2000, 1000))
    made.handler = handler or dq.Handler(lambda job: None)
    made.job = dq.Job(made, dq.JsonCodec())
    return made


def job(backoff=(), max_attempts=0, token=TOKEN):
    return {b"token": token, b"backoff": list(backoff), b"max-attempts": max_attempts}


def after_failure(error, reply, **rest):
    outcome = _core.ended(delivery(**rest), error)
    assert outcome.command == (b"DQ.GET", b"q", b"id")
    finished = outcome.answered(reply)
    return outcome.verdict if finished else outcome.command[5:]


def test_success_is_acknowledged_with_the_token():
    outcome = _core.ended(delivery(), None)
    assert outcome.command == (b"DQ.ACK", b"q", b"WITHTOKENS", b"id", TOKEN)
    assert outcome.answered(1) and outcome.verdict == "done"
    assert _core.ended(delivery(), None).answered(0)


def test_an_ack_that_finds_nothing_is_lost():
    outcome = _core.ended(delivery(), None)
    outcome.answered(0)
    assert outcome.verdict == "lost"


def test_the_ladder_of_the_job_goes_first():
    handler = dq.Handler(lambda job: None, backoff=[7])
    options = after_failure(ValueError("no"), job(backoff=[1000]), handler=handler)
    assert options == (b"REASON", b"ValueError: no")


def test_the_ladder_of_the_handler_is_next_and_its_last_step_repeats():
    handler = dq.Handler(lambda job: None, backoff=[1, timedelta(seconds=5)])
    delays = [after_failure(ValueError(), job(), handler=handler, attempt=n)[1] for n in (1, 2, 3)]
    assert delays == [1000, 5000, 5000]


def test_without_a_ladder_the_wait_doubles_to_an_hour():
    for attempt, seconds in ((1, 1), (2, 2), (5, 16), (13, 3600), (10_000, 3600)):
        delay = exponential_s(attempt, 1, 3600)
        assert seconds <= delay <= seconds * 1.25


def test_attempts_of_the_handler_end_a_job_without_its_own():
    handler = dq.Handler(lambda job: None, attempts=2)
    assert after_failure(ValueError(), job(), handler=handler, attempt=1)[0] == b"DELAY"
    assert after_failure(ValueError(), job(), handler=handler, attempt=2)[0] == b"FATAL"
    assert after_failure(ValueError(), job(max_attempts=9), handler=handler, attempt=2)[0] == b"DELAY"


def test_a_failure_of_a_job_that_somebody_else_has_is_lost():
    assert after_failure(ValueError(), job(token=b"1")) == "lost"
    assert after_failure(ValueError(), None) == "lost"


def test_what_a_handler_may_say():
    assert after_failure(dq.Retry(60, "busy"), job(backoff=[1])) == (b"DELAY", 60_000, b"REASON", b"busy")
    assert _core.ended(delivery(), dq.Snooze(60)).command[5:] == (b"SILENT", b"DELAY", 60_000)
    assert _core.ended(delivery(), dq.GiveUp("bad")).command[5:] == (b"FATAL", b"REASON", b"bad")
    assert _core.ended(delivery(), dq.Cancelled()).command[5:] == (b"SILENT",)


def test_nothing_comes_back_at_once():
    assert _core.ended(delivery(), dq.Snooze(0)).command[7] == 100
    assert after_failure(dq.Retry(0), job())[1] == 100


def test_reasons_are_cut_and_are_utf8():
    assert _core.reason(ValueError("x" * 5000)) == b"ValueError: " + b"x" * 1012
    assert _core.reason(ValueError("\ud800")) == b"ValueError: ?"
    assert _core.reason(KeyError()) == b"KeyError"


def test_one_heartbeat_and_one_return_for_each_queue():
    one, two = delivery(), delivery()
    other = _core.Delivery(b"r", (b"x", b"", b"5", 1, 0, 0))
    beats = _core.heartbeats([one, other, two], 3000)
    assert [command for command, _ in beats] == [
        (b"DQ.TOUCH", b"q", b"IDS", 2, b"id", TOKEN, b"id", TOKEN, b"TTR", 3000),
        (b"DQ.TOUCH", b"r", b"IDS", 1, b"x", b"5", b"TTR", 3000),
    ]
    assert _core.give_back([other]) == [(b"DQ.NACK", b"r", b"IDS", 1, b"x", b"5", b"SILENT")]


@pytest.mark.parametrize(
    "error, words",
    [
        (ResponseError("ERR syntax error"), "older"),
        (ResponseError("ERR unknown command 'DQ.BPOP', with args beginning with: "), "loadmodule"),
        (AuthenticationError("invalid username-password pair"), "password"),
        (NoPermissionError("this user has no permissions"), "ACL"),
        (ResponseError("WRONGTYPE Operation against a key"), "another type"),
        (ResponseError("syntax error"), "older"),
    ],
)
def test_what_waiting_cannot_mend_is_said(error, words):
    assert words in str(_core.fatal(error))


@pytest.mark.parametrize(
    "error",
    [
        ResponseError("MISCONF Redis is configured to save RDB snapshots"),
        ResponseError("UNBLOCKED force unblock from blocking operation"),
        ResponseError("CLUSTERDOWN The cluster is down"),
        BusyLoadingError(),
        ConnectionResetError(),
        TimeoutError(),
    ],
)
def test_what_passes_is_waited_for(error):
    assert _core.fatal(error) is None


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


def test_weights_decide_which_queue_comes_first():
    fetches = _core.Fetches([b"a", b"b"], [9, 1], 1000)
    first = [fetches.command(1, 5)[1] for _ in range(500)]
    assert 0 < first.count(b"b") < 150
    strict = _core.Fetches([b"a", b"b"], None, 1000)
    assert {strict.command(1, 5)[1:3] for _ in range(50)} == {(b"a", b"b")}
