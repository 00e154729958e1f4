// One call of a handler, with its hooks, and its jobs' outcomes.

import type { Bagged } from './bag';
import * as core from './core';
import { type Delivery, type End, isThrown } from './delivery';
import { ControlError, EncodingError, TimedOut } from './errors';
import { type Guard, isControl, ownEnd, type Verdict, verdict } from './guard';
import type { Handler } from './handler';
import { type Job, jobOf } from './job';
import type { Link } from './link';
import { stackOf } from './format';
import { afterAll } from './waiting';

/** A delivery, its handler, and the link that fetched it. */
export interface Turn extends Bagged {
  readonly delivery: Delivery;
  readonly handler: Handler;
  readonly link: Link;
}

/**
 * Runs a handler on its jobs, and calls back when all is settled, later than it returns. What the user's code throws goes no
 * further than the guard. Where there are no hooks, nothing is awaited but the handler.
 *
 * On a job's way there are loops: `map` makes arrays of another kind once V8 has compiled it, which throws away what V8
 * compiled before, and a program's first jobs cost more of V8's compiler than of anything else.
 */
export function handle(batch: readonly Turn[], guard: Guard, over: () => void): void {
  const views: Job[] = [];
  for (let n = 0; n < batch.length; n++) views.push(jobOf(batch[n]!.delivery));
  const before = guard.call('before', views);
  if (before) void before.then(() => run(batch, views, guard, over));
  else run(batch, views, guard, over);
}

function run(batch: readonly Turn[], views: readonly Job[], guard: Guard, over: () => void): void {
  const { handler } = batch[0]!;
  const limit = limited(batch, handler, guard);
  guard.handle(views, handler, (end) => {
    if (!limit?.isOver()) return finish(batch, end, guard, over);
    for (const { link, delivery } of batch) link.leave(delivery);
    over();
  });
}

function finish(batch: readonly Turn[], end: End, guard: Guard, over: () => void): void {
  const { handler } = batch[0]!;
  const together: Delivery[] = [];
  for (let n = 0; n < batch.length; n++) together.push(batch[n]!.delivery);
  const verdicts: Verdict[] = [];
  for (let n = 0; n < batch.length; n++) verdicts.push(verdict(together[n]!, together, end, handler));
  const hooks: Promise<unknown>[] = [];
  for (let n = 0; n < batch.length; n++) {
    const wait = announce(together[n]!, verdicts[n]!, ownEnd(together[n]!, end, handler), guard);
    if (wait) hooks.push(wait);
  }
  if (hooks.length > 0) void Promise.all(hooks).then(() => settleAll(batch, verdicts, guard, over));
  else settleAll(batch, verdicts, guard, over);
}

function settleAll(batch: readonly Turn[], verdicts: readonly Verdict[], guard: Guard, over: () => void): void {
  for (let n = 0; n < batch.length; n++) {
    settle(batch[n]!, verdicts[n]!, guard);
    batch[n]!.link.leave(batch[n]!.delivery);
  }
  over();
}

function settle({ delivery, handler, link }: Turn, found: Verdict, guard: Guard): void {
  if (found.how === 'fail' && found.complaint) guard.log.warn(`dq: job ${delivery.name}: ${found.complaint}`);
  link.end(delivery, core.ended(delivery, handler, found));
}

/** After the handler's timeout its jobs have failed, whatever the handler does later. */
function limited(batch: readonly Turn[], handler: Handler, guard: Guard): { isOver(): boolean } | null {
  const { timeoutMs } = handler;
  if (timeoutMs === null) return null;
  const together = batch.map(({ delivery }) => delivery);
  let isOver = false;
  const disarm = afterAll(timeoutMs, () => {
    isOver = true;
    const text = `timeout after ${timeoutMs / 1000} s`;
    const end = { error: new ControlError(text) }; // which is tried again, whatever retryOn says
    for (const turn of batch) {
      const { delivery } = turn;
      const found = verdict(delivery, together, end, handler);
      delivery.tell('timeout');
      if (found.how === 'fail') guard.log.warn(`dq: job ${delivery.name}: ${found.reason}`);
      settle(turn, found, guard);
      const over = { error: new TimedOut(text, delivery.name, timeoutMs) };
      void announce(delivery, found, ownEnd(delivery, over, handler), guard);
    }
  });
  return {
    isOver() {
      disarm();
      return isOver;
    },
  };
}

/** Tells hooks and log how the handler ended. */
function announce(delivery: Delivery, found: Verdict, end: End, guard: Guard): Promise<unknown> | null {
  const job = jobOf(delivery);
  if (found.how === 'suspend') return guard.call('suspended', [job]);
  if (found.how === 'done') return guard.call('after', [job]);
  const error = isThrown(end) ? end.error : new EncodingError((found as { reason: string }).reason);
  if (!isControl(error) && !delivery.told) {
    guard.log.warn(`dq: job ${delivery.name} failed, attempt ${delivery.attempt}: ${stackOf(error)}`);
  }
  return guard.call('failed', [job], error);
}
