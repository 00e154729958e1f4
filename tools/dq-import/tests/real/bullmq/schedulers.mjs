// Job schedulers made by BullMQ itself. Prints when each runs next, as a JSON object.
//   node schedulers.mjs port queue
import { Queue } from "bullmq";

const [port, name] = process.argv.slice(2);
const queue = new Queue(name, { connection: { host: "127.0.0.1", port: Number(port) } });
const day = 86_400_000;
const make = (id, repeat, data, opts) => queue.upsertJobScheduler(id, repeat, { name: `make ${id}`, data, opts });
await make("workdays", { pattern: "0 30 9 * * 1-5", tz: "Europe/Berlin" }, { a: "\u00e9" }, { attempts: 4, priority: 3, backoff: { type: "exponential", delay: 1000 } });
await make("hourly", { every: 3_600_000, startDate: Date.now() + day }, undefined, undefined);
await make("bounded", { pattern: "0 0 1 * *", tz: "UTC", limit: 7, endDate: Date.now() + 400 * day }, {}, {});
await make("zoneless", { pattern: "0 0 1 1 *" }, {}, {});
await make("strange", { pattern: "0 0 ? * 1", tz: "UTC" }, {}, {});
const next = {};
for (const it of await queue.getDelayed()) next[it.repeatJobKey] = it.timestamp + it.opts.delay;
console.log(JSON.stringify(next));
await queue.close();
