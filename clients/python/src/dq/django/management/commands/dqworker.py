"""``manage.py dqworker``: runs tasks until SIGTERM or SIGINT."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from ....errors import ConfigurationError
from ... import DqBackend
from ..._framework import backend_of


class Command(BaseCommand):
    help = "Runs the tasks of a backend of dq, until SIGTERM or SIGINT."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--backend", default="default", help="its name in TASKS")
        parser.add_argument("--queue", action="append", help="several in strict order; by default all, in turn")
        parser.add_argument("--concurrency", type=int, default=10, help="how many tasks run at a time")
        parser.add_argument("--health", help='"127.0.0.1:8081" or a file')

    def handle(self, **options: Any) -> None:
        try:
            backend = backend_of(options["backend"])
        except ImproperlyConfigured as error:
            raise CommandError(f"TASKS: {error}") from None
        if not isinstance(backend, DqBackend):
            raise CommandError(f"TASKS[{options['backend']!r}] is no dq.django.DqBackend")
        try:
            backend.worker(options["queue"], concurrency=options["concurrency"], health=options["health"]).run()
        except (ConfigurationError, ValueError) as error:
            raise CommandError(str(error)) from None
