// One call of a handler, with its hooks, and what the server is told of it.

import * as core from './core';
import { type Guard, isSaid, verdict } from './guard';
import type { Handler } from './handler';
import type { Delivery, Thrown } from './job';
import type { Link } from './link';
import { stackOf } from './shown';

/** A delivery, who handles it, and whom it came by. */
export interface Turn {
  readonly delivery: Delivery;
  readonly handler: Handler;
  readonly link: Link;
}

/** Those have one handler. Never rejects: what the user's code throws goes no further than the guard. */
export async function handle(batch: readonly Turn[], guard: Guard): Promise<void> {
  const deliveries = batch.map(({ delivery }) => delivery);
  const views = deliveries.map(({ job }) => job);
  const before = guard.call('before', views);
  if (before) await before;
  const thrown = await guard.handle(views, () => batch[0]!.handler.call([...views]));
  const hooks = deliveries.map((delivery) => ended(delivery, delivery.failure ?? thrown, guard));
  if (hooks.some((wait) => wait !== null)) await Promise.all(hooks);
  for (const { delivery, handler, link } of batch) {
    const end = verdict(delivery, deliveries, thrown);
    if (end.how === 'fail' && end.complaint) guard.log.warn(`dq: job ${delivery.name}: ${end.complaint}`);
    link.settle(delivery, core.ended(delivery, handler, end));
  }
}

function ended(delivery: Delivery, thrown: Thrown | null, guard: Guard): Promise<unknown> | null {
  if (!thrown) return guard.call('after', [delivery.job]);
  const { error } = thrown;
  if (!isSaid(error) && !delivery.told) {
    guard.log.warn(`dq: job ${delivery.name} failed, attempt ${delivery.attempt}: ${stackOf(error)}`);
  }
  return guard.call('failed', [delivery.job], error);
}
