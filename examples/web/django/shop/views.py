from datetime import timedelta

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from .jobs import queue
from .models import Order


def close_later(number: int) -> None:
    queue.add({"order": number}, id=f"close:{number}", delay=timedelta(minutes=30))


@csrf_exempt
@require_POST
def place(request: HttpRequest, number: int) -> JsonResponse:
    with transaction.atomic():
        order, is_new = Order.objects.get_or_create(id=number)
        transaction.on_commit(lambda: close_later(order.id))
    return JsonResponse({"order": order.id}, status=201 if is_new else 409)


@csrf_exempt
@require_POST
def pay(request: HttpRequest, number: int) -> JsonResponse:
    if not Order.objects.filter(id=number, state="open").update(state="paid"):
        return JsonResponse({"error": "closed or unknown"}, status=409)
    queue.delete(f"close:{number}", unreserved=True)
    return JsonResponse({"paid": number})
