from datetime import timedelta

from django.db import transaction
from django.http import Http404, HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from .models import Order
from .tasks import TaskResultDoesNotExist, close, confirm


@csrf_exempt
@transaction.atomic
def place(request: HttpRequest, number: int) -> JsonResponse:
    Order.objects.get_or_create(id=number)
    close.using(run_after=timezone.now() + timedelta(minutes=30)).enqueue(number)
    return JsonResponse({"confirmation": confirm.enqueue(number).id})


def result(request: HttpRequest, id: str) -> JsonResponse:
    try:
        found = confirm.get_result(id)
    except TaskResultDoesNotExist:
        raise Http404 from None
    return JsonResponse({"status": found.status, "value": found.return_value if found.is_finished else None})
