// Which jobs this process runs. If a job's lease ended unnoticed and the job comes again while it still runs here, it is not
// begun a second time.

import type { Delivery } from './delivery';

interface Entry {
  delivery: Delivery;
  hasBegun: boolean;
  lose(delivery: Delivery): void;
}

/** The entries of all workers, by server, queue and id. */
const entries = new Map<string, Entry>();

export class Running {
  constructor(
    /** Equal for connections to the same server. */
    private readonly place: string,
    private readonly lose: (delivery: Delivery) => void,
  ) {}

  private name({ key, id }: Delivery): string {
    return `${this.place}\n${key.toString('latin1')}\n${id.toString('latin1')}`;
  }

  /** Enters a delivery. An earlier delivery of the job is lost, whether it runs or waits. False if it runs. */
  enter(delivery: Delivery): boolean {
    const name = this.name(delivery);
    const earlier = entries.get(name);
    earlier?.lose(earlier.delivery);
    if (earlier?.hasBegun) return false;
    entries.set(name, { delivery, hasBegun: false, lose: this.lose });
    return true;
  }

  begin(delivery: Delivery): void {
    const entry = entries.get(this.name(delivery));
    if (entry?.delivery === delivery) entry.hasBegun = true;
  }

  end(delivery: Delivery): void {
    const name = this.name(delivery);
    if (entries.get(name)?.delivery === delivery) entries.delete(name);
  }
}
