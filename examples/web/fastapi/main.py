from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import dq.asyncio
from fastapi import FastAPI, HTTPException

queue = dq.asyncio.Queue("redis://localhost", "orders")


@dq.handler(attempts=5, backoff=[60, 300, 600])
async def close_order(job: dq.asyncio.Job) -> None:
    print("closed order", job.data["order"], flush=True)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with dq.asyncio.Worker(queue, close_order, concurrency=100):
        yield
    await queue.close()


app = FastAPI(lifespan=lifespan)


@app.post("/orders/{number}", status_code=201)
async def place(number: int) -> dict[str, int]:
    added = await queue.add({"order": number}, id=f"close:{number}", delay=timedelta(minutes=30))
    if added is None:
        raise HTTPException(409, "there is such an order")
    return {"order": number}


@app.post("/orders/{number}/paid")
async def pay(number: int) -> dict[str, int]:
    if not await queue.delete(f"close:{number}", unreserved=True):
        raise HTTPException(409, "closed or unknown")
    return {"paid": number}
