"""What a job costs a worker, in calls of Python's functions: no busy machine changes that."""

import sys

import dq

MOST_CALLS = 42
"""For one job, without hooks, middleware or a result. It was 50 once, unnoticed, and a sixth more instructions."""


class Idle(dq.Hooks):
    """Does nothing, and is called."""


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
