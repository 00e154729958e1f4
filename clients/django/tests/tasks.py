"""Tasks like those of django-tasks' own tests."""

import threading

from dq.django import _framework

task = _framework.base.task
begun = []
end = threading.Event()


@task
def noop(*args, **kwargs):
    return None


@task()
async def noop_async(*args, **kwargs):
    return None


@task
def meaning_of_life():
    return 42


@task
def value_error():
    raise ValueError("This task failed due to ValueError")


@task
def system_exit():
    raise SystemExit("This task failed due to SystemExit")


@task
def complex_exception():
    raise ValueError(ValueError("This task failed"))


@task
def complex_return_value():
    return lambda: True


@task(takes_context=True)
def id_and_attempt(context):
    return [context.task_result.id, context.attempt]


@task(takes_context=True)
def second_time(context, first):
    if context.attempt == 1:
        raise ValueError(first)
    return [error.traceback.splitlines()[-1] for error in context.task_result.errors]


@task
def late():
    end.wait(60)


@task
def begins(name):
    begun.append(name)
