// A batch with a callback: a flow, whose parent runs when all its children have.

import { FlowProducer, Worker } from 'bullmq';

const QUEUE = 'jobs';

export default class System {
  constructor(port) {
    this.connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
  }

  async addBatch(payloads, callback) {
    const flows = new FlowProducer({ connection: this.connection });
    const job = (data) => ({ name: 'job', queueName: QUEUE, data, opts: { removeOnComplete: true } });
    await flows.add({ ...job(callback), children: payloads.map(job) });
    await flows.close();
  }

  async workBatch(handle, isReady) {
    const options = { connection: this.connection, concurrency: 10, autorun: false };
    const worker = new Worker(QUEUE, async (job) => void handle(job.data), options);
    await worker.waitUntilReady();
    isReady();
    worker.run();
  }
}
