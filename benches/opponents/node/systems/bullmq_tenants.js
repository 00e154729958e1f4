// BullMQ: a queue and a worker for each tenant; groups are part of what is sold.

import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';

const CONCURRENCY = 10;

export default class System {
  constructor(port) {
    this.connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
    this.shared = new Redis(this.connection);
    this.queues = new Map();
  }

  /** Queues can share a connection; workers, which wait, cannot. */
  queueOf(tenant) {
    if (!this.queues.has(tenant)) this.queues.set(tenant, new Queue(tenant, { connection: this.shared }));
    return this.queues.get(tenant);
  }

  async addFor(tenant, jobs) {
    const entries = jobs.map(({ payload }) => ({ name: 'job', data: payload, opts: { removeOnComplete: true } }));
    await this.queueOf(tenant).addBulk(entries);
  }

  async workFor(names, handle, begin) {
    const options = { connection: this.connection, concurrency: CONCURRENCY, autorun: false };
    const workers = names.map((name) => new Worker(name, async () => void handle(name), options));
    await Promise.all(workers.map((worker) => worker.waitUntilReady()));
    begin();
    for (const worker of workers) worker.run();
  }

  async close() {
    await this.shared.quit();
  }
}
