// dq through ioredis: a queue for each tenant. BPOP takes from the first of those it names that has a job: so it begins
// with another one each time.

import { Redis } from 'ioredis';

const COUNT = 10;

export default class System {
  constructor(port) {
    this.server = new Redis(port);
  }

  async addFor(tenant, jobs) {
    const pipeline = this.server.pipeline();
    for (const { number, payload } of jobs) pipeline.call('DQ.ADD', tenant, number, payload);
    for (const [error] of await pipeline.exec()) if (error) throw error;
  }

  async workFor(names, handle, begin) {
    await this.server.ping();
    begin();
    let from = 0;
    for (let isOver = false; !isOver; ) {
      const turned = [...names.slice(from), ...names.slice(0, from)];
      const [name, jobs] = await this.server.call('DQ.BPOP', ...turned, 0, 'COUNT', COUNT);
      const queue = String(name);
      from = (names.indexOf(queue) + 1) % names.length;
      for (const _ of jobs) isOver = handle(queue);
      await this.server.call('DQ.ACK', queue, 'WITHTOKENS', ...jobs.flatMap(([id, , token]) => [id, token]));
    }
  }

  async close() {
    await this.server.quit();
  }
}
