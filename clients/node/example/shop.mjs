// A shop: a reminder of a trial that ends, payments that are tried again, and exports that take long.

import { pathToFileURL } from 'node:url';
import { GiveUp, Queue, Worker } from 'dq-redis';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** By the bank, for now. */
export class Declined extends Error {}

/** `mail` and `pay` are how the shop reaches the world: tests give their own. */
export class Shop {
  /**
   * @param {string} url
   * @param {{ mail: (to: string, text: string) => unknown, pay: (order: number, amount: number) => unknown }} world
   */
  constructor(url, { mail, pay }) {
    this.queue = new Queue(url, 'shop');
    this.mail = mail;
    this.pay = pay;
  }

  /** @param {string} customer */
  startTrial(customer) {
    return this.queue.add({ customer }, { id: `trial:${customer}`, kind: 'remind', delay: 30 * DAY });
  }

  /** @param {string} customer */
  subscribe(customer) {
    return this.queue.delete(`trial:${customer}`);
  }

  /**
   * @param {number} number
   * @param {number} amount
   */
  order(number, amount) {
    return this.queue.add({ order: number, amount }, { id: `charge:${number}`, kind: 'charge' });
  }

  /** @param {number} pages */
  export(pages) {
    return this.queue.add({ pages }, { id: 'export', kind: 'export' });
  }

  /** @param {import('dq-redis').WorkerOptions} [options] */
  worker(options = {}) {
    const { mail, pay } = this;

    /** @param {import('dq-redis').Job<{ customer: string }>} job */
    async function remind(job) {
      await mail(job.data.customer, 'Your trial ends tomorrow.');
    }

    /** @param {import('dq-redis').Job<{ order: number, amount: number }>} job */
    async function charge(job) {
      if (job.data.amount <= 0) throw new GiveUp('nothing to pay');
      await pay(job.data.order, job.data.amount);
    }

    /** @param {import('dq-redis').Job<{ pages: number }>} job */
    async function exportPages(job) {
      for (let page = 0; page < job.data.pages; page++) {
        job.check(); // whether the worker stops: then another one begins anew
        await mail('accounting', `page ${page}`);
        await job.pause(10);
      }
    }

    return new Worker(this.queue, options)
      .job('remind', remind)
      .job('charge', charge, { attempts: 4, backoff: [MINUTE, HOUR, DAY] })
      .job('export', exportPages);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const shop = new Shop(process.env.REDIS_URL ?? 'redis://localhost', { mail: console.log, pay: console.log });
  await shop.worker().run();
}
