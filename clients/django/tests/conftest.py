"""Django with the backend; the server is that of dq's pytest plugin."""

import os
from types import SimpleNamespace

import django
import pytest

os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
django.setup()

from django.test import override_settings  # noqa: E402
from dq.django import _framework  # noqa: E402


@pytest.fixture
def use(dq_url):
    """Has the backend these options, until the end of the test."""
    entered = []

    def made(queues=("default", "mails"), **options):
        options.setdefault("url", dq_url)
        tasks = {"default": {"BACKEND": "dq.django.DqBackend", "QUEUES": [*queues], "OPTIONS": options}}
        entered.append(override_settings(TASKS=tasks))
        entered[-1].enable()
        return _framework.backend_of("default")

    yield made
    for each in reversed(entered):
        each.disable()


@pytest.fixture
def backend(use):
    return use()


@pytest.fixture
def told():
    """What the receivers of signals were told."""
    heard, receivers = [], []
    for name in ("task_enqueued", "task_started", "task_finished"):

        def receive(sender, task_result, name=name, **_):
            heard.append(SimpleNamespace(signal=name, sender=sender, status=task_result.status, result=task_result))

        getattr(_framework.signals, name).connect(receive)
        receivers.append((name, receive))
    yield heard
    for name, receive in receivers:
        getattr(_framework.signals, name).disconnect(receive)
