"""How a program that uses dq is tested. The fixtures come with the package."""

import threading
from datetime import timedelta

import pytest
from shop import Declined, Shop

from dq.testing import Clock, run


class World:
    def __init__(self) -> None:
        self.mails: list[tuple[str, str]] = []
        self.payments: list[tuple[int, float]] = []
        self.declines = 0
        self.mailed = threading.Event()

    def mail(self, to: str, text: str) -> None:
        self.mails.append((to, text))
        self.mailed.set()

    def pay(self, order: int, amount: float) -> None:
        if self.declines:
            self.declines -= 1
            raise Declined("try again later")
        self.payments.append((order, amount))


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def shop(dq_url: str, world: World) -> Shop:
    return Shop(dq_url, world.mail, world.pay)


def test_a_reminder_in_30_days(shop: Shop, world: World, clock: Clock) -> None:
    shop.start_trial("ann")
    shop.start_trial("bob")
    shop.subscribe("bob")
    worker = shop.worker()
    clock.advance(days=29)
    assert worker.drain() == 0
    clock.advance(days=1)
    assert worker.drain() == 1
    assert world.mails == [("ann", "Your trial ends tomorrow.")]


def test_a_payment_is_tried_again_after_a_minute_an_hour_and_a_day(shop: Shop, world: World, clock: Clock) -> None:
    world.declines = 3
    shop.order(17, 20)
    worker = shop.worker()
    worker.drain()
    for step in timedelta(minutes=1), timedelta(hours=1), timedelta(days=1):
        assert world.payments == []
        clock.advance(step * 0.9)
        assert worker.drain() == 0
        clock.advance(step * 0.1)
        assert worker.drain() == 1
    assert world.payments == [(17, 20)]


def test_a_payment_that_is_declined_four_times_is_dead(shop: Shop, world: World, clock: Clock) -> None:
    world.declines = 4
    shop.order(17, 20)
    worker = shop.worker()
    worker.drain()
    while clock.next():
        worker.drain()
    job = shop.queue.get("charge:17")
    assert job is not None and job.state == "dead"
    assert job.reason == "Declined: try again later"


def test_a_deploy_in_the_middle_of_a_job(shop: Shop, world: World, clock: Clock) -> None:
    shop.export(pages=1000)
    with shop.worker(drain=0):
        assert world.mailed.wait(30)
    job = shop.queue.get("export")
    assert job is not None and job.state == "ready"  # at once, not when its lease ends
    assert job.attempts == 0
    assert 0 < len(world.mails) < 1000


def test_a_handler_without_a_server(world: World) -> None:
    world.declines = 2
    shop = Shop("redis://localhost", world.mail, world.pay)  # which is not asked
    ended = run(shop.worker(), {"order": 17, "amount": 20}, kind="charge")
    assert (ended.state, ended.attempts, world.payments) == ("done", 3, [(17, 20)])
    assert ended.waits == [timedelta(minutes=1), timedelta(hours=1)]
