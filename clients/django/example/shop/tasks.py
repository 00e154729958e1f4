import django

from .models import Order

if django.VERSION >= (6,):
    from django.tasks import task
    from django.tasks.exceptions import TaskResultDoesNotExist
else:
    from django_tasks import task
    from django_tasks.exceptions import TaskResultDoesNotExist

__all__ = ["TaskResultDoesNotExist", "close", "confirm"]


@task(queue_name="mails", priority=5)
def confirm(number: int) -> str:
    return f"confirmed order {number}"


@task
def close(number: int) -> int:
    closed: int = Order.objects.filter(id=number, state="open").update(state="closed")
    return closed
