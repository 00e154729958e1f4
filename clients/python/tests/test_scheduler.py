"""Whose turn it is to fetch, by the test's own clock."""

import random

import pytest

from dq._scheduler import HOLD_S, TURN_S, Isolation, LinkScheduler, hold_s

TICK_S = 0.001


def play(links, places, random):
    """Fetches find nothing, and end some ms after they are recalled.

    Returns the longest time that a link was without a fetch, and the time that the shortest fetch took.
    """
    scheduler = LinkScheduler(links)
    for link in range(links):
        scheduler.want(link, 0.0)
    ends, last = {}, dict.fromkeys(range(links), 0.0)
    gap, shortest = 0.0, None
    for tick in range(5000):
        now = tick * TICK_S
        for link, end in list(ends.items()):
            if end is not None and end <= now:
                del ends[link]
                took = now - last[link]
                shortest = took if shortest is None else min(shortest, took)
                last[link] = now
                scheduler.end(link, now, True)
                scheduler.want(link, now)
        for link in random.sample(range(links), links):
            if link in ends or not scheduler.is_first(link, now):
                continue
            if len(ends) < places:
                gap = max(gap, now - last[link])
                last[link] = now
                ends[link] = None
                scheduler.begin(link, now)
                continue
            late = scheduler.recall(now)
            if late is not None:
                assert not any(ends.values()), "another one is on its way back"
                ends[late] = now + random.randint(1, 5) * TICK_S
    gap = max([gap, *(now - last[link] for link in range(links) if link not in ends)])
    return gap, shortest


@pytest.mark.parametrize("seed", range(40))
def test_every_link_has_its_turn(seed):
    chosen = random.Random(seed)
    links, places = chosen.randint(1, 12), chosen.randint(1, 12)
    gap, shortest = play(links, places, chosen)
    assert gap <= TURN_S + links * (HOLD_S + 10 * TICK_S), (links, places)
    assert (shortest is None) == (places >= links), (links, places)
    assert shortest is None or shortest >= hold_s(links) - TICK_S / 2


def test_who_found_something_need_not_wait():
    scheduler = LinkScheduler(2)
    scheduler.want("a", 0.0)
    scheduler.want("b", 0.0)
    scheduler.begin("a", 0.0)
    assert scheduler.recall(0.0) is None
    assert scheduler.look_at("b", 0.0) == HOLD_S
    assert scheduler.recall(HOLD_S) == "a"
    scheduler.end("a", HOLD_S, False)
    scheduler.want("a", HOLD_S)
    scheduler.begin("b", HOLD_S)
    assert scheduler.is_first("a", HOLD_S)
    assert scheduler.recall(2 * HOLD_S) == "b"
    scheduler.end("b", 2 * HOLD_S, True)
    scheduler.want("b", 2 * HOLD_S)
    assert scheduler.look_at("b", 2 * HOLD_S) == 2 * HOLD_S + TURN_S


def test_it_is_isolated_for_some_time_and_then_for_as_long_not():
    isolation = Isolation(25.0)
    assert not isolation.is_on(0.0)
    assert isolation.want(100.0) == isolation.want(124.0) == 0.0
    assert isolation.is_on(124.0) and not isolation.is_on(125.0)
    assert isolation.want(126.0) == 24.0
    assert isolation.want(150.0) == 0.0
    assert isolation.is_on(150.0)
    isolation.end()
    assert not isolation.is_on(150.0)
    assert isolation.want(160.0) == 0.0, "it begins anew"
