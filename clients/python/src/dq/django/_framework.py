"""Django's own tasks, or those of django-tasks."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from django.conf import settings

_IS_OWN = "django_tasks" not in settings.INSTALLED_APPS and find_spec("django.tasks") is not None
NAME = "django.tasks" if _IS_OWN else "django_tasks"

base: Any = import_module(f"{NAME}.base")
backends: Any = import_module(f"{NAME}.backends.base")
signals: Any = import_module(f"{NAME}.signals")
exceptions: Any = import_module(f"{NAME}.exceptions")


def backend_of(alias: str) -> Any:
    """Its settings are read when it is first used."""
    return import_module(NAME).task_backends[alias]
