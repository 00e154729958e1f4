import express from 'express';
import { Queue, Worker } from 'dq-redis';

/** @type {Queue<{ order: number }>} */
const queue = new Queue('redis://localhost', 'orders');

/** @param {import('dq-redis').Job<{ order: number }>} job */
const closeOrder = async (job) => {
  console.log('closed order', job.data.order);
};
const worker = new Worker(queue, closeOrder, { attempts: 5, backoff: [60_000, 300_000, 600_000], concurrency: 10 });

const app = express();

app.post('/orders/:number', async (request, response) => {
  const order = Number(request.params.number);
  const added = await queue.add({ order }, { id: `close:${order}`, delay: 30 * 60_000 });
  response.status(added === null ? 409 : 201).json({ order });
});

app.post('/orders/:number/paid', async (request, response) => {
  const order = Number(request.params.number);
  const cancelled = await queue.delete(`close:${order}`, { unreserved: true });
  response.status(cancelled ? 200 : 409).json(cancelled ? { paid: order } : { error: 'closed or unknown' });
});

const server = app.listen(3000);
await worker.run(); // until SIGTERM or SIGINT
server.close();
await queue.close();
