// dq through the Node library: a Worker with its defaults, but for logs.

import { Queue, Worker } from 'dq-redis';

const entry = ({ number, payload, dueMs }) =>
  ({ data: payload, id: String(number), ...(dueMs !== null && { at: new Date(dueMs) }) });

export default class System {
  options = { concurrency: 10 };

  constructor(port) {
    this.queue = new Queue(`redis://127.0.0.1:${port}`, 'jobs');
  }

  async add(job) {
    const { data, ...options } = entry(job);
    await this.queue.add(data, options);
  }

  async addMany(jobs) {
    await this.queue.addMany(jobs.map(entry));
  }

  async work(handle, isReady) {
    const { batch } = this.options;
    const one = async (job) => void handle(job.data);
    const many = async (jobs) => jobs.forEach((job) => void handle(job.data));
    new Worker(this.queue, batch ? many : one, this.options).start();
    await this.queue.len(); // the client is there, as after BullMQ's waitUntilReady
    isReady();
  }

  async close() {
    await this.queue.close();
  }
}
