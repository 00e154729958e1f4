"""What a job costs a worker, in calls of Python's functions: no busy machine changes that."""

import gc
import sys
import threading

import pytest

import dq
from dq import _intake, _scheduler

MOST_CALLS = 40
"""The most calls for one job, without hooks, middleware or a result. They once were 50, unnoticed: a sixth more
instructions."""


class Idle(dq.Hooks):
    """Hooks that do nothing."""


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Hides other workers of this process, which earlier tests may have left."""
    monkeypatch.setattr(_intake, "_workers", _intake._Workers())


def calls(function):
    counted = 0

    def count(frame, event, argument):
        nonlocal counted
        counted += event == "call"

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return counted


def of_a_job(url, **options):
    queue = dq.Queue(url, "q")
    worker = dq.Worker(queue, lambda job: None, concurrency=1, **options)

    def drained(count):
        queue.add_many([{"data": n} for n in range(count)])
        handled = []
        made = calls(lambda: handled.append(worker.drain()))
        assert handled == [count]
        return made

    drained(1)  # all is imported, and connected
    return (drained(300) - drained(100)) / 200


def test_a_job_costs_few_calls(dq_url):
    assert of_a_job(dq_url) <= MOST_CALLS


def test_more_calls_are_noticed(dq_url):
    assert of_a_job(dq_url, hooks=[Idle()]) > MOST_CALLS


def test_a_job_that_is_done_leaves_nothing_to_the_garbage_collector(dq_url):
    gc.collect()
    gc.disable()
    try:
        of_a_job(dq_url)
        assert not [each for each in gc.get_objects() if type(each) is dq.Job]
    finally:
        gc.enable()


def test_where_one_thread_runs_all_a_handler_that_takes_long_holds_up_no_other(queue, monkeypatch):
    monkeypatch.setattr(_scheduler, "BRIEF_S", 1e9)
    all_begun, ran = threading.Barrier(10), threading.Semaphore(0)

    def handle(job):
        if job.data >= 50:
            all_begun.wait(60)
        ran.release()

    queue.add_many([{"data": n} for n in range(60)])
    with dq.Worker(queue, handle, concurrency=10):
        assert all(ran.acquire(timeout=60) for _ in range(60))
