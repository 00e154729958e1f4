// The same from CommonJS.

import dq = require('dq-redis');
import testing = require('dq-redis/testing');

export const worker: dq.Worker = new dq.Worker(new dq.Queue('redis://localhost', 'q'), (job) => job.data);
export const server: Promise<testing.TestServer> = testing.TestServer.start();
