from collections.abc import Callable
from datetime import timedelta
from typing import Any

import dq
from flask import Flask, abort

app = Flask(__name__)
queue = dq.Queue("redis://localhost", "orders")


@dq.handler(attempts=5, backoff=[60, 300, 600])
def close_order(job: dq.Job) -> None:
    app.logger.warning("closed order %s", job.data["order"])


def in_context(job: dq.Job, next: Callable[[], Any]) -> Any:
    with app.app_context():
        return next()


@app.post("/orders/<int:number>")
def place(number: int) -> tuple[dict[str, int], int]:
    added = queue.add({"order": number}, id=f"close:{number}", delay=timedelta(minutes=30))
    if added is None:
        abort(409, "there is such an order")
    return {"order": number}, 201


@app.post("/orders/<int:number>/paid")
def pay(number: int) -> dict[str, int]:
    if not queue.delete(f"close:{number}", unreserved=True):
        abort(409, "closed or unknown")
    return {"paid": number}


@app.cli.command("work")
def work() -> None:
    """Handles the jobs of the shop."""
    dq.Worker(queue, close_order, concurrency=10, around=[in_context]).run()
