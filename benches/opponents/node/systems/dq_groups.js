// dq through ioredis: all tenants in one queue, each of them a group.

import { Redis } from 'ioredis';

const QUEUE = 'jobs';
const COUNT = 10;

export default class System {
  constructor(port) {
    this.server = new Redis(port);
  }

  async addFor(tenant, jobs) {
    const pipeline = this.server.pipeline();
    for (const { number, payload } of jobs) pipeline.call('DQ.ADD', QUEUE, number, `${tenant} ${payload}`, 'GROUP', tenant);
    for (const [error] of await pipeline.exec()) if (error) throw error;
  }

  async workFor(_, handle, begin) {
    await this.server.ping();
    begin();
    for (let isOver = false; !isOver; ) {
      const [, jobs] = await this.server.call('DQ.BPOP', QUEUE, 0, 'COUNT', COUNT);
      for (const [, payload] of jobs) isOver = handle(payload.split(' ', 1)[0]);
      await this.server.call('DQ.ACK', QUEUE, 'WITHTOKENS', ...jobs.flatMap(([id, , token]) => [id, token]));
    }
  }

  async close() {
    await this.server.quit();
  }
}
