// Whose turn it is to fetch, by a clock of its own: any links and places, and fetches that find nothing unless recalled.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { HOLD_MS, holdMs, LinkScheduler, TURN_MS } from '../dist/scheduler.js';

/** Plays so long; each link's longest time without a fetch, and how long each fetch had waited that was recalled. */
function play({ links, places, busy, lasts }) {
  const scheduler = new LinkScheduler(() => links);
  const out = new Map();
  const since = new Map();
  const ended = new Map();
  const [gaps, held] = [new Array(links).fill(0), []];
  const end = (link, now) => {
    out.delete(link);
    ended.set(link, now);
    scheduler.end(link, now, true);
    scheduler.want(link, now);
  };
  for (let link = 0; link < links; link++) {
    ended.set(link, 0);
    scheduler.want(link, 0);
  }
  for (let now = 0; now < 5000; now++) {
    for (const [link, until] of [...out]) if (until <= now) end(link, now);
    for (let link = scheduler.first(now); link !== null; link = scheduler.first(now)) {
      if (out.size + busy >= places) {
        const late = scheduler.recall(now);
        if (late === null) break;
        assert.ok(![...out.values()].some((until) => until < 60_000), 'another one is on its way back');
        held.push(now - since.get(late));
        out.set(late, now + lasts[late % lasts.length]);
        break;
      }
      gaps[link] = Math.max(gaps[link], now - ended.get(link));
      scheduler.begin(link, now);
      out.set(link, now + 60_000);
      since.set(link, now);
    }
  }
  for (const [link, at] of ended) if (!out.has(link)) gaps[link] = Math.max(gaps[link], 5000 - at);
  return { gaps, held };
}

test('every link has its turn, however many share a place, and no fetch ends early', () => {
  const played = fc.record({
    links: fc.integer({ min: 2, max: 12 }),
    free: fc.integer({ min: 1, max: 13 }),
    busy: fc.integer({ min: 0, max: 5 }),
    lasts: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 5 }),
  });
  fc.assert(
    fc.property(played, ({ links, free, busy, lasts }) => {
      const { gaps, held } = play({ links, places: free + busy, busy, lasts });
      for (const gap of gaps) assert.ok(gap <= TURN_MS + links * (HOLD_MS + 10), `${gap} ms without a fetch`);
      for (const ms of held) assert.ok(ms >= holdMs(links), `recalled after ${ms} ms`);
      if (free >= links) assert.deepEqual(held, []);
    }),
  );
});

test('where nobody wants a place, nobody is recalled', () => {
  const scheduler = new LinkScheduler(() => 2);
  scheduler.want('a', 0);
  scheduler.begin('a', 0);
  assert.equal(scheduler.first(1000), null);
  scheduler.want('b', 1000);
  assert.equal(scheduler.lookAt(1000), HOLD_MS);
  assert.equal(scheduler.first(1000), 'b');
  assert.equal(scheduler.recall(1000), 'a');
  assert.equal(scheduler.recall(1000), null);
  scheduler.end('a', 1001, true);
  scheduler.want('a', 1001);
  scheduler.begin('b', 1001);
  assert.equal(scheduler.first(1200), null);
  assert.equal(scheduler.first(1251), 'a');
});
