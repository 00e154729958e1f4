// What the tests wait for.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** Until the condition holds. what: a text, or what makes one. */
export async function until(condition, what) {
  for (const end = performance.now() + 60_000; !(await condition()); await sleep(5)) {
    assert.ok(performance.now() < end, typeof what === 'string' ? what : what());
  }
}
