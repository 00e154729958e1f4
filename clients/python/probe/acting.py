"""What handlers of the probe do, as the data of their jobs say."""

import asyncio as aio
import base64
import contextlib
import json
import os
import sys
import threading
import time
from collections import Counter
from datetime import timedelta

import dq
from dq.times import instant_to_ms

MS = timedelta(milliseconds=1)
runs = Counter()
_writing = threading.Lock()


def emit(event, **fields):
    with _writing:
        sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
        sys.stdout.flush()


def announce(jobs):
    for job in jobs:
        runs[job.id] += 1
        emit(
            "started",
            job=job.id,
            queue=job.queue,
            attempt=job.attempt,
            payload=base64.b64encode(job.payload).decode(),
            kind=job.kind,
            headers=dict(job.headers),
            due=job.due and instant_to_ms(job.due),
            batch=len(jobs),
            results=shown(job.results),
        )


def shown(results):
    return [[each.id, each.outcome, each.value] for each in results]


def script(job):
    data = job.data
    if not isinstance(data, dict) or runs[job.id] > data.get("times", float("inf")):
        return {}
    return data


class Flaky(Exception):
    pass


class Broken(Exception):
    pass


ERRORS = {"Flaky": Flaky, "Broken": Broken}


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def said(made, **fields):
    for name, value in fields.items():
        setattr(made, name, value)
    return made


HOSTILE = [
    ValueError("\udc80"),
    Unprintable(),
    dq.Retry(float("inf")),
    dq.Retry(float("nan")),
    dq.Snooze(float("inf")),
    dq.Snooze(1e9, "\udc80"),
    dq.Snooze(1e9, ValueError()),
    dq.GiveUp(ValueError()),
    dq.GiveUp(404),
    dq.GiveUp(Unprintable()),
    said(dq.Retry(5), delay="soon"),
    said(dq.Snooze(5), delay=None),
    said(dq.Retry(1e9), reason=object()),
    SystemExit(3),
    GeneratorExit(),
    BaseException("base"),
    aio.CancelledError(),
    dq.Cancelled(),
]


def act(todo):
    """What every face does alike."""
    do = todo.get("do")
    if do == "throw":
        raise ERRORS.get(todo.get("type"), RuntimeError)(todo.get("message", "thrown"))
    if do == "retry":
        raise dq.Retry(todo["ms"] * MS, todo.get("reason"))
    if do == "snooze":
        raise dq.Snooze(todo["ms"] * MS, todo.get("reason"))
    if do == "give_up":
        raise dq.GiveUp(todo.get("reason"))
    if do == "hostile":
        raise HOSTILE[todo["n"] % len(HOSTILE)]
    if do == "exit":
        os._exit(3)
    if do == "fork":
        os.fork()
    if do == "quit_thread":
        sys.exit(7)


def result(job, todo):
    """What the handler returns."""
    if todo.get("do") == "return":
        return todo["value"]
    return object() if todo.get("do") == "unencodable" else None


def report(job, todo):
    for fraction, text in todo["steps"]:
        job.progress(fraction, text)


def work(job, todo):
    do = todo.get("do")
    if do == "progress":
        report(job, todo)
    if do == "sleep" or (do == "progress" and todo.get("ms")):
        try:
            job.pause(todo["ms"] / 1000)
        except dq.Cancelled as cancelled:
            emit("told", job=job.id, why=cancelled.reason)
            raise
    elif do == "stubborn":
        time.sleep(todo["ms"] / 1000)
    elif do == "hang":
        threading.Event().wait()
    elif do == "script":
        return carry_out(job, todo["actions"])
    act(todo)
    return result(job, todo)


async def work_async(job, todo):
    do = todo.get("do")
    if do == "progress":
        report(job, todo)
    if do == "sleep" or (do == "progress" and todo.get("ms")):
        try:
            await aio.sleep(todo["ms"] / 1000)
        except aio.CancelledError:
            emit("told", job=job.id, why=job.cancel_reason)
            raise
    elif do in ("stubborn", "hang"):
        end = time.monotonic() + todo.get("ms", 10**9) / 1000
        while time.monotonic() < end:
            with contextlib.suppress(aio.CancelledError):
                await aio.sleep(end - time.monotonic())
    elif do == "script":
        return await carry_out_async(job, todo["actions"])
    act(todo)
    return result(job, todo)


# --- Scripts: each action is what to call, and what to report of its answer


def called(job, action):
    """A method of the job, and what it is given."""
    if "step" in action:
        name, value = action["step"], action.get("value")

        def stepped():
            emit("stepped", job=job.id, name=name)
            return value

        return job.step, (name, stepped)
    if "sleep" in action:
        return job.sleep, (action["sleep"], action["ms"] * MS)
    if "wait" in action:
        return job.wait, (action["wait"], None if action.get("ms") is None else action["ms"] * MS)
    return (job.wait_for, (action["wait_for"],)) if "wait_for" in action else (job.spawn, (action["spawn"],))


def told(job, action, answer):
    if "step" in action:
        emit("step", job=job.id, name=action["step"], value=answer)
    if "wait" in action:
        fields = {"timed_out": True} if isinstance(answer, dq.TimedOut) else {"value": answer}
        emit("waited", job=job.id, name=action["wait"], **fields)
    if "wait_for" in action or "spawn" in action:
        emit("results", job=job.id, results=shown(answer))


def ended(job, action):
    """Whether the action is one that ends the handler; it may do so."""
    is_now = runs[job.id] <= action.get("times", float("inf"))
    if "throw" in action and is_now:
        raise RuntimeError(action["throw"])
    if "exit" in action and is_now:
        os._exit(3)
    return "throw" in action or "exit" in action


def carry_out(job, actions):
    for action in actions:
        if "return" in action:
            return action["return"]
        if not ended(job, action):
            method, given = called(job, action)
            try:
                answer = method(*given)
            except dq.TimedOut as error:
                answer = error
            told(job, action, answer)
    return None


async def carry_out_async(job, actions):
    for action in actions:
        if "return" in action:
            return action["return"]
        if not ended(job, action):
            method, given = called(job, action)
            try:
                answer = await method(*given)
            except dq.TimedOut as error:
                answer = error
            told(job, action, answer)
    return None


def handle(job):
    announce([job])
    try:
        return work(job, script(job))
    finally:
        emit("ended", job=job.id)


async def handle_async(job):
    announce([job])
    try:
        return await work_async(job, script(job))
    finally:
        emit("ended", job=job.id)


def handle_batch(jobs):
    announce(jobs)
    for job in jobs:
        try:
            job.succeed(work(job, script(job)))
        except Exception as error:
            job.fail(error)


async def handle_batch_async(jobs):
    announce(jobs)
    for job in jobs:
        try:
            job.succeed(await work_async(job, script(job)))
        except Exception as error:
            job.fail(error)


def around(job, next):
    emit("around", job=job.id, phase="entered")
    try:
        return next()
    finally:
        emit("around", job=job.id, phase="left")


async def around_async(job, next):
    emit("around", job=job.id, phase="entered")
    try:
        return await next()
    finally:
        emit("around", job=job.id, phase="left")


def hostile_around(job, next):
    raise HOSTILE[1]


async def hostile_around_async(job, next):
    raise HOSTILE[1]
