// One job at a time.

import BullMQ from './bullmq.js';

export default class System extends BullMQ {
  concurrency = 1;
}
