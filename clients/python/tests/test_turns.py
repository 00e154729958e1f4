"""Whose turn it is to fetch, by the test's own clock."""

import random

import pytest

from dq._turns import HOLD_S, TURN_S, Isolation, Turns, hold_s

TICK_S = 0.001


def play(links, places, random):
    """Fetches find nothing, and end some ms after they are recalled.

    Returns the longest time that a link was without a fetch, and the time that the shortest fetch took.
    """
    turns = Turns(links)
    for link in range(links):
        turns.want(link, 0.0)
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
                turns.end(link, now, True)
                turns.want(link, now)
        for link in random.sample(range(links), links):
            if link in ends or not turns.is_first(link, now):
                continue
            if len(ends) < places:
                gap = max(gap, now - last[link])
                last[link] = now
                ends[link] = None
                turns.begin(link, now)
                continue
            late = turns.recall(now)
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
    turns = Turns(2)
    turns.want("a", 0.0)
    turns.want("b", 0.0)
    turns.begin("a", 0.0)
    assert turns.recall(0.0) is None
    assert turns.look_at("b", 0.0) == HOLD_S
    assert turns.recall(HOLD_S) == "a"
    turns.end("a", HOLD_S, False)
    turns.want("a", HOLD_S)
    turns.begin("b", HOLD_S)
    assert turns.is_first("a", HOLD_S)
    assert turns.recall(2 * HOLD_S) == "b"
    turns.end("b", 2 * HOLD_S, True)
    turns.want("b", 2 * HOLD_S)
    assert turns.look_at("b", 2 * HOLD_S) == 2 * HOLD_S + TURN_S


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
