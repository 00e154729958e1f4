// Delayed jobs made by BullMQ itself. Prints what it put there, as JSON lines.
//   node make.mjs port queue count
import { Queue, FlowProducer } from "bullmq";

const [port, name, count] = process.argv.slice(2);
const connection = { host: "127.0.0.1", port: Number(port) };
const queue = new Queue(name, { connection });
const say = (job) =>
  console.log(JSON.stringify({ id: job.id, due: job.timestamp + job.opts.delay, name: job.name, data: JSON.stringify(job.data) }));

const jobs = [];
for (let n = 0; n < Number(count); n++) {
  // One millisecond for many of them, so that the scores' low bits are used.
  const opts = { delay: 3_600_000 + (n % 5) * 1000, timestamp: 1_000 * Math.floor(Date.now() / 1000) };
  if (n % 2) opts.jobId = `order-${n}`;
  if (n % 3 === 0) opts.priority = n + 1;
  if (n % 4 === 0) Object.assign(opts, { attempts: 4, backoff: { type: "exponential", delay: 1000 } });
  jobs.push({ name: `close "${n}"`, data: { n, text: "a\u00e9\u0000z" }, opts });
}
(await queue.addBulk(jobs)).forEach(say);
say(await queue.add("shared", { only: "once" }, { delay: 7_200_000, deduplication: { id: "shared" } }));

// What is no job to import: a scheduler's next one, a flow's child, one that is due.
await queue.upsertJobScheduler("yearly", { pattern: "0 0 29 2 *" }, { name: "yearly", data: {} });
const flow = new FlowProducer({ connection });
await flow.add({
  name: "parent", queueName: name, data: {},
  children: [{ name: "child", queueName: name, data: {}, opts: { delay: 3_600_000 } }],
});
await queue.add("urgent", {}, { priority: 5 });
await queue.add("due", {});
await flow.close();
await queue.close();
