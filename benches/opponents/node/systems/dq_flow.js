// A batch with a callback: children in a group, added by DQ.MADD, and a job AFTER GROUP. The worker is the Node library's.

import { Redis } from 'ioredis';
import { Queue, Worker } from 'dq-redis';

const QUEUE = 'jobs';
const AT_A_TIME = 1000;

export default class System {
  constructor(port) {
    this.port = port;
  }

  async addBatch(payloads, callback) {
    const server = new Redis(this.port);
    for (let from = 0; from < payloads.length; from += AT_A_TIME) {
      const some = payloads.slice(from, from + AT_A_TIME);
      const jobs = some.flatMap((payload, at) => [`child:${from + at}`, payload]);
      await server.call('DQ.MADD', QUEUE, some.length, ...jobs, 'GROUP', 'batch');
    }
    await server.call('DQ.ADD', QUEUE, callback, callback, 'AFTER', 'GROUP', 'batch');
    await server.quit();
  }

  async workBatch(handle, isReady) {
    const queue = new Queue(`redis://127.0.0.1:${this.port}`, QUEUE);
    await queue.len();
    isReady();
    new Worker(queue, async (job) => void handle(String(job.payload)), { concurrency: 10 }).start();
  }
}
