// What the handlers of the probe do, and what they report.

import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { GiveUp, Handler, Retry, Snooze } from 'dq-redis';
import { HOSTILE, raise } from './hostile.mjs';

const runs = new Map();

export const emit = (event, fields = {}) => process.stdout.write(JSON.stringify({ event, ...fields }) + '\n');

class Flaky extends Error {}

class Broken extends Error {}

const ERRORS = { Flaky, Broken };

/** What JSON cannot hold. */
const circular = {};
circular.itself = circular;

function announce(jobs) {
  for (const job of jobs) {
    runs.set(job.id, (runs.get(job.id) ?? 0) + 1);
    emit('started', {
      job: job.id,
      queue: job.queue,
      attempt: job.attempt,
      payload: job.payload.toString('base64'),
      kind: job.kind,
      headers: job.headers,
      due: job.due?.getTime() ?? null,
      batch: jobs.length,
      results: shown(job.results),
    });
  }
}

const shown = (results) => results.map(({ id, outcome, value, reason }) => [id, outcome, value ?? reason]);

function todoOf(job) {
  const { data } = job;
  const isObject = data !== null && typeof data === 'object' && !Array.isArray(data);
  return isObject && runs.get(job.id) <= (data.times ?? Infinity) ? data : {};
}

async function pause(job, ms) {
  try {
    await job.pause(ms);
  } catch (error) {
    emit('told', { job: job.id, why: error.why });
    throw error;
  }
}

/** Each carries out an action of its name; what it returns other than undefined is the handler's result. */
const ACTIONS = {
  async step(job, { step: name, value }) {
    const work = () => {
      emit('stepped', { job: job.id, name });
      return value;
    };
    emit('step', { job: job.id, name, value: await job.step(name, work) });
  },
  sleep: (job, { sleep: name, ms }) => job.sleep(name, ms),
  async wait(job, { wait: name, ms }) {
    try {
      emit('waited', { job: job.id, name, value: await job.wait(name, ms) });
    } catch (error) {
      if (error.name !== 'TimedOut') throw error;
      emit('waited', { job: job.id, name, timed_out: true });
    }
  },
  async wait_for(job, { wait_for: ids }) {
    emit('results', { job: job.id, results: shown(await job.waitFor(ids)) });
  },
  async spawn(job, { spawn: jobs }) {
    emit('results', { job: job.id, results: shown(await job.spawn(jobs)) });
  },
  throw(job, { throw: message, times = Infinity }) {
    if (runs.get(job.id) <= times) throw new Error(message);
  },
  exit(job, { times = Infinity }) {
    if (runs.get(job.id) <= times) process.exit(3);
  },
  return: (job, { return: value }) => ({ value }),
};

async function carryOut(job, actions) {
  for (const action of actions) {
    const name = Object.keys(ACTIONS).find((each) => each in action);
    const end = await ACTIONS[name](job, action);
    if (name === 'return') return end.value;
  }
}

async function work(job) {
  const todo = todoOf(job);
  switch (todo.do) {
    case 'sleep':
      return pause(job, todo.ms);
    case 'return':
      return todo.value;
    case 'unencodable':
      return circular;
    case 'progress':
      for (const [fraction, text] of todo.steps) job.progress(fraction, text);
      return pause(job, todo.ms ?? 0);
    case 'script':
      return carryOut(job, todo.actions);
    case 'stubborn':
      return sleep(todo.ms);
    case 'hang':
      return new Promise(() => {});
    case 'throw':
      throw new (ERRORS[todo.type] ?? Error)(todo.message ?? 'thrown');
    case 'retry':
      throw new Retry(todo.ms, todo.reason);
    case 'snooze':
      throw new Snooze(todo.ms, todo.reason);
    case 'give_up':
      throw new GiveUp(todo.reason);
    case 'hostile':
      throw HOSTILE[todo.n % HOSTILE.length];
    case 'exit':
      return process.exit(3);
    case 'fork':
      return void spawn('sleep', ['2'], { stdio: 'ignore' });
    case 'quit_thread':
      throw undefined;
  }
}

async function handleOne(job) {
  announce([job]);
  try {
    return await work(job);
  } finally {
    emit('ended', { job: job.id });
  }
}

async function handleMany(jobs) {
  announce(jobs);
  for (const job of jobs) {
    try {
      job.succeed(await work(job));
    } catch (error) {
      job.fail(error);
    }
  }
}

export const reports = {
  before: (job) => emit('before', { job: job.id }),
  after: (job) => emit('after', { job: job.id }),
  failed: (job, error) => emit('failed', { job: job.id, error: error?.name ?? String(error) }),
  lost: (job) => emit('lost', { job: job.id }),
};

/** Told of dead jobs; where one says so, it never returns. */
export const deaths = {
  dead(queue, { id, reason, attempts, kind, data, headers }) {
    emit('dead', { job: id, queue, reason, attempts, kind, data, headers });
    return data?.dead === 'hang' ? new Promise(() => {}) : undefined;
  },
};

export const hostile = Object.fromEntries(
  ['before', 'context', 'after', 'failed', 'lost', 'dead'].map((name) => [name, raise]),
);

export async function reporting(job, next) {
  const ids = [job].flat().map(({ id }) => id);
  for (const id of ids) emit('around', { job: id, phase: 'entered' });
  try {
    return await next();
  } finally {
    for (const id of ids) emit('around', { job: id, phase: 'left' });
  }
}

export const given = (value) => value ?? undefined;
const errors = (names) => names?.map((name) => ERRORS[name]);

const options = (each) => ({
  attempts: given(each.attempts),
  backoff: given(each.backoff_ms),
  lease: given(each.lease_ms),
  timeout: given(each.timeout_ms),
  retryOn: errors(each.retry_on),
  giveUpOn: errors(each.give_up_on),
});

const isRuled = (each) => Boolean(each.cron ?? each.every_ms);

export function handlers(order) {
  const plain = (order.handlers ?? [{}]).filter((each) => !isRuled(each));
  return plain.map((each) => {
    const { kind } = each;
    const more = { kind, batch: given(each.batch), fill: given(each.fill) };
    return new Handler(each.batch ? handleMany : handleOne, { ...options(each), ...more });
  });
}

/** Adds the handlers that have a rule. */
export function addRuled(worker, order) {
  for (const each of (order.handlers ?? []).filter(isRuled)) {
    if (each.cron) worker.cron(each.kind, each.cron, handleOne, { ...options(each), tz: given(each.tz) });
    else worker.every(each.kind, each.every_ms, handleOne, options(each));
  }
}
