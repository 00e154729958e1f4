from django.apps import AppConfig


class DqConfig(AppConfig):
    """For the command."""

    name = "dq.django"
    label = "dq"
