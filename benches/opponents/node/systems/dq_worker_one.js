// One job at a time.

import Worker from './dq_worker.js';

export default class System extends Worker {
  options = { concurrency: 1 };
}
