"""The backend: among others what django-tasks and Django test of theirs, restated for one that keeps results."""

import asyncio
import logging
import time
from datetime import datetime, timedelta, timezone

import dq
import pytest
import tasks
from django.core.management import call_command
from django.core.management.base import CommandError, SystemCheckError
from django.db import transaction
from dq.django import DqBackend, _framework

Status = _framework.base.TaskResultStatus
Invalid = getattr(_framework.exceptions, "InvalidTask", None) or _framework.exceptions.InvalidTaskError
Unknown = _framework.exceptions.TaskResultDoesNotExist


def drain(backend, **options):
    return backend.worker(**options).drain()


def test_it_is_the_backend_and_says_what_it_supports(backend):
    assert isinstance(backend, DqBackend) and tasks.noop.get_backend() is backend
    assert backend.supports_defer and backend.supports_async_task
    assert backend.supports_get_result and backend.supports_priority


@pytest.mark.parametrize("task", [tasks.noop, tasks.noop_async], ids=["plain", "async"])
def test_a_task_is_enqueued_and_run(backend, task, told):
    result = task.enqueue(1, two=(3,))
    assert (result.status, result.is_finished, result.attempts) == (Status.READY, False, 0)
    assert (result.args, result.kwargs, result.task) == ([1], {"two": [3]}, task)
    with pytest.raises(ValueError, match="not finished"):
        _ = result.return_value
    assert backend.get_result(result.id) == result
    assert drain(backend) == 1
    result.refresh()
    assert (result.status, result.return_value, result.attempts, result.errors) == (Status.SUCCESSFUL, None, 1, [])
    assert result.enqueued_at <= result.started_at == result.last_attempted_at <= result.finished_at
    assert [(each.signal, each.status) for each in told] == [
        ("task_enqueued", Status.READY),
        ("task_started", Status.RUNNING),
        ("task_finished", Status.SUCCESSFUL),
    ]
    assert {each.sender for each in told} == {DqBackend} and {each.result.id for each in told} == {result.id}
    assert told[-1].result == result


def test_in_asyncio(backend):
    async def main():
        result = await tasks.meaning_of_life.aenqueue()
        await asyncio.to_thread(drain, backend)
        await result.arefresh()
        return result, await tasks.meaning_of_life.aget_result(result.id)

    result, again = asyncio.run(main())
    assert result == again and result.return_value == 42


@pytest.mark.parametrize(
    "task, kind, said",
    [
        (tasks.value_error, ValueError, "ValueError: This task failed due to ValueError"),
        (tasks.system_exit, SystemExit, "SystemExit: This task failed due to SystemExit"),
        (tasks.complex_exception, ValueError, "ValueError: This task failed"),
        (tasks.complex_return_value, TypeError, "TypeError: Unsupported type: <class 'function'>"),
    ],
    ids=["ValueError", "SystemExit", "complex", "unencodable"],
)
def test_a_task_that_raises_has_failed(backend, task, kind, said, told, caplog):
    result = task.enqueue()
    drain(backend)
    result.refresh()
    assert (result.status, result.is_finished, result.attempts) == (Status.FAILED, True, 1)
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value
    (error,) = result.errors
    assert error.exception_class is kind and error.traceback.endswith(said + "\n")
    assert result.started_at <= result.finished_at and told[-1].status == Status.FAILED
    assert backend.queue("default").get(result.id).state == "dead"
    (logged,) = [each for each in caplog.records if each.levelno == logging.ERROR and each.name == f"{_framework.NAME}"]
    assert logged.exc_info[0] is kind


def test_attempts_and_errors_are_kept(use, clock):
    backend = use(attempts=3, backoff=[60])
    result = tasks.second_time.enqueue("first error")
    worker = backend.worker()
    assert worker.drain() == 1
    result.refresh()
    assert (result.status, result.attempts, len(result.errors)) == (Status.READY, 1, 1)
    clock.advance(seconds=61)
    assert worker.drain() == 1
    result.refresh()
    assert (result.status, result.attempts) == (Status.SUCCESSFUL, 2)
    assert result.return_value == ["ValueError: first error"] and len(result.errors) == 1
    assert result.started_at < result.last_attempted_at


def test_context(backend):
    result = tasks.id_and_attempt.enqueue()
    drain(backend)
    result.refresh()
    assert result.return_value == [result.id, 1]


def test_what_is_unknown_or_of_another_task(backend):
    for id in "123", "default:123", "nowhere:1", "":
        with pytest.raises(Unknown):
            backend.get_result(id)
    assert "nowhere" not in backend._known, "whoever makes up ids opens no connections"
    backend.queue("default").add("not a task", id="default:other")
    with pytest.raises(Unknown):
        backend.get_result("default:other")
    result = tasks.noop.enqueue()
    with pytest.raises(_framework.exceptions.TaskResultMismatch):
        tasks.meaning_of_life.get_result(result.id)


def test_a_result_is_gone_when_its_time_is_over(use, clock):
    backend = use(keep=60)
    result = tasks.noop.enqueue()
    drain(backend)
    clock.advance(seconds=61)
    with pytest.raises(Unknown):
        result.refresh()


def test_larger_priorities_first_in_each_queue(backend):
    tasks.begun.clear()
    for name, priority in ("low", -100), ("usual", 0), ("high", 100):
        tasks.begins.using(priority=priority).enqueue(name)
    tasks.begins.using(queue_name="mails").enqueue("mail")
    assert drain(backend, queues=["mails", "default"], concurrency=1) == 4
    assert tasks.begun == ["mail", "high", "usual", "low"]


def test_run_after(backend, clock):
    at = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(days=1)
    result = tasks.meaning_of_life.using(run_after=at, priority=7).enqueue()
    assert drain(backend) == 0
    found = backend.get_result(result.id)
    assert found == result and (found.task.run_after, found.task.priority, found.status) == (at, 7, Status.READY)
    clock.advance(days=2)
    assert drain(backend) == 1


@pytest.mark.parametrize("is_waiting", [True, False])
def test_a_task_of_a_transaction_waits_for_its_commit(use, is_waiting, told):
    backend = use(enqueue_on_commit=is_waiting)
    with transaction.atomic():
        result = tasks.noop.enqueue()
        assert (result.enqueued_at is None) is is_waiting is (backend.queue("default").len() == 0) is (not told)
    assert result.enqueued_at and backend.get_result(result.id) == result
    with pytest.raises(RuntimeError), transaction.atomic():
        tasks.noop.enqueue()
        raise RuntimeError("rolled back")
    assert backend.queue("default").len() == (1 if is_waiting else 2)


def test_what_cannot_be_enqueued(backend):
    for changed in {"queue_name": "other"}, {"priority": 101}, {"priority": 1.5}, {"run_after": datetime(2040, 1, 1)}:
        with pytest.raises(Invalid):
            tasks.noop.using(**changed).enqueue()
    with pytest.raises(TypeError, match="Unsupported type"):
        tasks.noop.enqueue(object())
    with pytest.raises(Invalid, match="module level"):
        tasks.task(lambda: None)
    assert backend.queue("default").len() == 0


def test_a_task_whose_workers_are_lost_fails_in_the_end(backend, clock):
    result = tasks.noop.enqueue()
    queue = backend.queue("default")
    for _ in range(3):
        assert len(queue.pop(count=1, ttr=1)) == 1
        assert backend.get_result(result.id).status == Status.RUNNING
        clock.advance(seconds=2)
    clock.advance(seconds=60)
    drain(backend)
    result.refresh()
    (error,) = result.errors
    assert (result.status, error.exception_class) == (Status.FAILED, dq.JobFailed)
    assert "its workers were lost" in error.traceback


def test_a_task_that_takes_too_long_has_failed_once(use, told):
    backend = use(timeout=0.05)
    result = tasks.late.enqueue()
    with backend.worker():
        while result.status != Status.FAILED:
            time.sleep(0.01)
            result.refresh()
        tasks.end.set()
    result.refresh()
    assert (result.status, result.attempts) == (Status.FAILED, 1)
    assert [each.status for each in told] == [Status.READY, Status.RUNNING]


def test_a_task_that_this_worker_does_not_know_waits_for_another(backend):
    result = tasks.noop.enqueue()
    queue = backend.queue("default")
    data = queue.get(result.id).data
    queue.add(data, id="default:new", kind="tasks.to_come")
    drain(backend)
    assert queue.get("default:new").reason.startswith("unknown task: ") and queue.get("default:new").state == "delayed"
    result.refresh()
    assert result.status == Status.SUCCESSFUL


def test_receivers_that_raise_change_nothing(backend, caplog):
    def receive(**_):
        raise RuntimeError("a receiver")

    for signal in _framework.signals.task_started, _framework.signals.task_finished:
        signal.connect(receive)
    try:
        result = tasks.noop.enqueue()
        drain(backend)
    finally:
        for signal in _framework.signals.task_started, _framework.signals.task_finished:
            signal.disconnect(receive)
    result.refresh()
    assert result.status == Status.SUCCESSFUL


def test_settings_are_checked(use, capsys):
    use()
    call_command("check")
    use(tries=3)
    with pytest.raises(SystemCheckError, match="has no option 'tries'"):
        call_command("check")


def test_what_the_command_refuses(use):
    use(queues=())
    with pytest.raises(CommandError, match="name the queues"):
        call_command("dqworker")
    with pytest.raises(CommandError, match="'other' doesn't exist"):
        call_command("dqworker", backend="other")
