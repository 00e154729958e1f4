// Which jobs this process runs. If a job's lease ended unnoticed and the job comes again while it still runs here, it is not
// begun a second time.

import type { Delivery } from './delivery';

/** The deliveries of all workers, by server, queue and id. A new Map now and then, for the reason of `Bag`. */
let entries = new Map<string, Delivery>();
let entered = 0;

/**
 * Enters a delivery. An earlier delivery of the job is lost, whether it runs or waits. False if it runs.
 *
 * place: its server and queue.
 */
export function enter(delivery: Delivery, place: string): boolean {
  delivery.entry = `${place}\n${delivery.id.toString('latin1')}`;
  const earlier = entries.get(delivery.entry);
  earlier?.desk.lose(earlier);
  if (earlier?.hasBegun) return false;
  if (++entered > 1000 + 2 * entries.size) {
    entries = new Map(entries);
    entered = 0;
  }
  entries.set(delivery.entry, delivery);
  return true;
}

export function leave(delivery: Delivery): void {
  if (entries.get(delivery.entry) === delivery) entries.delete(delivery.entry);
}
