// dq through ioredis: one job at a time.

import { Redis } from 'ioredis';

const QUEUE = 'jobs';
const words = ({ number, payload, dueMs }) =>
  ['DQ.ADD', QUEUE, number, payload, ...(dueMs === null ? [] : ['AT', dueMs])];

export default class System {
  constructor(port) {
    this.server = new Redis(port);
  }

  async add(job) {
    await this.server.call(...words(job));
  }

  async addMany(jobs) {
    const pipeline = this.server.pipeline();
    for (const job of jobs) pipeline.call(...words(job));
    for (const [error] of await pipeline.exec()) if (error) throw error;
  }

  async work(handle, isReady) {
    await this.server.ping();
    isReady();
    for (let isOver = false; !isOver; ) {
      const [, id, payload, token] = await this.server.call('DQ.BPOP', QUEUE, 0);
      isOver = handle(payload);
      await this.server.call('DQ.ACK', QUEUE, 'WITHTOKENS', id, token);
    }
  }

  async close() {
    await this.server.quit();
  }
}
