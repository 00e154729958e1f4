// BullMQ: delayed jobs; finished ones are not kept.

import { Queue, Worker } from 'bullmq';

const QUEUE = 'jobs';

function entry({ payload, dueMs }) {
  const delay = dueMs === null ? undefined : Math.max(0, dueMs - Date.now());
  return { name: 'job', data: payload, opts: { delay, removeOnComplete: true } };
}

export default class System {
  concurrency = 10;

  constructor(port) {
    this.connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
  }

  get queue() {
    this.opened ??= new Queue(QUEUE, { connection: this.connection });
    return this.opened;
  }

  async add(job) {
    const { name, data, opts } = entry(job);
    await this.queue.add(name, data, opts);
  }

  async addMany(jobs) {
    await this.queue.addBulk(jobs.map(entry));
  }

  async work(handle, isReady) {
    const options = { connection: this.connection, concurrency: this.concurrency };
    const worker = new Worker(QUEUE, async (job) => void handle(job.data), options);
    await worker.waitUntilReady();
    isReady();
  }

  async close() {
    await this.queue.close();
  }
}
