// Runs several processes of the same program, and starts each of them again when it dies.

import { type ChildProcess, fork } from 'node:child_process';
import { troubleMs } from './core';
import { nowMs } from './waiting';

/** The exit code of a process that should not be started again. */
export const NO_RESTART = 2;
/** A process that lived this long had no trouble at its start. */
const STABLE_MS = 60_000;
const STOP = 'stop';

/** Whether this process was started by a supervisor. */
export const isChild = () => process.env.DQ_SUPERVISOR === String(process.ppid) && process.connected;

/** In a process that a supervisor started: calls `stop` when the supervisor says so, or is gone. */
export function whenStopped(stop: () => void): void {
  process.on('message', (message) => message === STOP && stop());
  process.on('disconnect', stop);
  // A terminal sends Ctrl-C to all processes; the supervisor passes it on.
  for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => {});
}

/** Runs the processes until it is told to stop and all have ended. Returns the exit code. */
export function supervise(program: string, file: string, count: number): Promise<number> {
  return new Promise((resolve) => {
    const children = new Map<number, ChildProcess>();
    const timers = new Set<NodeJS.Timeout>();
    let isStopping = false;
    let code = 0;
    const isOver = () => isStopping && children.size === 0 && resolve(code);
    const stop = () => {
      isStopping = true;
      for (const timer of timers) clearTimeout(timer);
      // A child may be gone before its exit is reported: a failure to send to it is no error.
      for (const child of children.values()) if (child.connected) child.send(STOP, () => {});
      isOver();
    };
    const start = (number: number, deaths: number) => {
      const begun = nowMs();
      const child = fork(program, [file], {
        env: { ...process.env, DQ_WORKER: String(number), DQ_SUPERVISOR: String(process.pid) },
      });
      children.set(number, child);
      child.on('exit', (status, signal) => {
        children.delete(number);
        if (isStopping) return isOver();
        const how = signal ?? `code ${status}`;
        if (status === NO_RESTART) {
          code = NO_RESTART;
          return stop();
        }
        const died = nowMs() - begun < STABLE_MS ? deaths + 1 : 1;
        process.stderr.write(`dq-worker: process ${number} ended (${how}): it is started again\n`);
        const timer = setTimeout(() => {
          timers.delete(timer);
          start(number, died);
        }, troubleMs(died));
        timers.add(timer);
      });
    };
    for (const name of ['SIGINT', 'SIGTERM']) process.on(name, stop);
    for (let number = 0; number < count; number++) start(number, 0);
  });
}
