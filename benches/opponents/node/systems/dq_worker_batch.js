// A handler of up to 100 jobs at a time.

import Worker from './dq_worker.js';

export default class System extends Worker {
  options = { concurrency: 1, batch: 100 };
}
