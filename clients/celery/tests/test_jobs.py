"""Messages and jobs, without a server."""

from datetime import datetime, timedelta, timezone

import pytest
from kombu.utils.json import dumps

from dq_celery import jobs

NOW = 1_800_000_000_000
HOUR = 3_600_000


def at(ms, zone=timezone.utc):
    return datetime.fromtimestamp(ms / 1000, zone).isoformat()


def message(properties=None, **headers):
    return {"headers": headers, "properties": {"delivery_tag": "tag", "delivery_info": {}, **(properties or {})}}


def test_an_instant_is_rounded_up_so_that_nothing_comes_early():
    assert jobs.instant_ms("2027-01-15T08:00:00.000001+00:00") == NOW + 1
    assert jobs.instant_ms("2027-01-15T08:00:00.001000+00:00") == NOW + 1
    assert jobs.instant_ms("2027-01-15T09:00:00+01:00") == NOW
    assert jobs.instant_ms("2027-01-15T08:00:00Z") == NOW
    assert jobs.instant_ms("1969-12-31T23:59:59.999+00:00") == -1


@pytest.mark.parametrize("nothing", [None, "", "soon", 17, {}, "2027-01-15T08:00:00"])
def test_what_names_no_instant_does_not_delay(nothing):
    assert jobs.instant_ms(nothing) is None
    assert jobs.timing(message(eta=nothing), NOW, HOUR) == []


def test_the_eta_is_the_due_time():
    assert jobs.timing(message(eta=at(NOW + 5000)), NOW, HOUR) == ["AT", NOW + 5000]
    assert jobs.timing(message(eta=at(NOW + 5000, timezone(timedelta(hours=2)))), NOW, HOUR) == ["AT", NOW + 5000]
    assert jobs.timing(message(eta=at(NOW - 1)), NOW, HOUR) == []
    assert jobs.timing(message(eta="9999-01-01T00:00:00+00:00"), NOW, HOUR) == ["AT", jobs.LATEST_MS]


def test_an_expired_task_stays_where_somebody_may_wait_for_its_result():
    expires = {"expires": at(NOW + 1000)}
    assert jobs.timing(message(**expires), NOW, HOUR) == ["TTL", 1000 + HOUR]
    assert jobs.timing(message(**expires, ignore_result=True), NOW, HOUR) == ["TTL", 1000]
    assert jobs.timing(message(**expires), NOW, 0) == ["TTL", 1000]
    assert jobs.timing(message(expires=at(NOW - 1000), ignore_result=True), NOW, HOUR) == ["TTL", 1]


def test_a_task_that_expires_before_its_eta_is_due_when_it_expires():
    both = message(eta=at(NOW + 9000), expires=at(NOW + 1000))
    assert jobs.timing(both, NOW, HOUR) == ["AT", NOW + 1001, "TTL", 1000 + HOUR]


def test_the_expiration_of_a_message_is_exact():
    assert jobs.timing(message({"expiration": "500"}), NOW, HOUR) == ["TTL", 500]
    # Celery sets both expirations for a task.
    both = message({"expiration": "1000"}, expires=at(NOW + 1000))
    assert jobs.timing(both, NOW, HOUR) == ["TTL", 1000 + HOUR]


def test_the_id_is_the_task_s():
    assert jobs.job_id(message(id="id", task="name")) == "id"
    # A result or an event: several messages may have the same id.
    assert jobs.job_id(message(id="id")) == "tag"
    assert jobs.job_id(message(id="i" * 1025, task="name")) == "tag"


def delivered(due, attempts=1, **headers):
    text = dumps(message(**headers)).encode()
    return jobs.message(text, "new", attempts, due, NOW)


def test_the_label_is_the_name_of_the_task():
    assert jobs.labelled(message(task="shop.close")) == ["LABEL", "shop.close"]
    for name in (None, "", "t" * 257, "\ud800"):
        assert jobs.labelled(message(task=name)) == []
    assert jobs.labelled({"properties": {}}) == []


def test_a_delivered_message_says_whether_it_was_delivered_before():
    first, second = delivered(NOW), delivered(NOW, attempts=2)
    assert first["properties"]["delivery_tag"] == "new"
    assert "redelivered" not in first["properties"]["delivery_info"]
    assert second["properties"]["delivery_info"]["redelivered"] is True


def test_a_worker_whose_clock_is_behind_does_not_hold_what_is_due():
    assert delivered(NOW + 50, eta=at(NOW + 50))["headers"]["eta"] is None
    # An eta in the past stays: the task may look at it.
    assert delivered(NOW, eta=at(NOW))["headers"]["eta"] == at(NOW)
    # The job is due early, as it has expired: its eta still counts.
    assert delivered(NOW + 50, eta=at(NOW + 99))["headers"]["eta"] == at(NOW + 99)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"17", b"{}", b'{"properties": 1}', b"\xff", b'{"properties": {}}'])
def test_what_is_no_message_is_an_error(text):
    with pytest.raises(ValueError):
        jobs.message(text, "new", 2, NOW, NOW)
