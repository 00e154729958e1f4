"""Django's tasks on dq: the backend ``dq.django.DqBackend``, and the command ``manage.py dqworker``.

For the tasks of Django 6, and for django-tasks 0.12 where ``INSTALLED_APPS`` has it.
"""

from .backend import DqBackend

__all__ = ["DqBackend"]
