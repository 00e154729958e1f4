// Runs several processes of the same program, and starts each of them again when it dies, or when files have changed.

import { type ChildProcess, fork } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { troubleMs } from './core';
import { nowMs } from './waiting';

/** The exit code of a process that should not be started again. */
export const NO_RESTART = 2;
/** A process that lived this long had no trouble at its start. */
const STABLE_MS = 60_000;
const STOP = 'stop';
/** How often to look for files that have changed. */
const LOOK_MS = 250;
const WATCHED = /\.([cm]?[jt]s|json)$/;

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
export const supervise = (program: string, words: readonly string[], count: number, isReloading: boolean) =>
  new Promise<number>((resolve) => new Supervisor(program, words, isReloading, resolve).run(count));

const say = (text: string) => process.stderr.write(`dq-worker: ${text}\n`);

class Supervisor {
  private readonly children = new Map<number, ChildProcess>();
  private readonly timers = new Set<NodeJS.Timeout>();
  /** Those that have ended, and begin again when a file changes. */
  private readonly ended = new Set<number>();
  private changes = 0;
  private isStopping = false;
  private code = 0;

  constructor(
    private readonly program: string,
    private readonly words: readonly string[],
    private readonly isReloading: boolean,
    private readonly over: (code: number) => void,
  ) {}

  run(count: number): void {
    for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => this.stop());
    for (let number = 0; number < count; number++) this.start(number, 0);
    if (!this.isReloading) return;
    let files = filesBelow('.');
    const timer = setInterval(() => {
      const before = files;
      files = filesBelow('.');
      if (files !== before && !this.isStopping) this.changed();
    }, LOOK_MS);
    this.timers.add(timer);
  }

  private stop(): void {
    this.isStopping = true;
    for (const timer of this.timers) clearTimeout(timer);
    this.endAll();
    this.look();
  }

  private changed(): void {
    say('files have changed: starting again');
    this.changes++;
    this.endAll();
    const ended = [...this.ended];
    this.ended.clear();
    for (const number of ended) this.start(number, 0);
  }

  private endAll(): void {
    // A child may be gone before its exit is reported: a failure to send to it is no error.
    for (const child of this.children.values()) if (child.connected) child.send(STOP, () => {});
  }

  private look(): void {
    if (this.isStopping && this.children.size === 0) this.over(this.code);
  }

  private start(number: number, deaths: number): void {
    const { changes } = this;
    const begun = nowMs();
    const child = fork(this.program, this.words, {
      env: { ...process.env, DQ_PROCESS: String(number), DQ_SUPERVISOR: String(process.pid) },
    });
    this.children.set(number, child);
    child.on('exit', (status, signal) => {
      this.children.delete(number);
      if (this.isStopping) return this.look();
      if (this.changes !== changes) return this.start(number, 0);
      const how = `process ${number} ended (${signal ?? `code ${status}`}): it is started again`;
      if (this.isReloading) {
        say(`${how} when a file changes`);
        this.ended.add(number);
      } else if (status === NO_RESTART) {
        this.code = NO_RESTART;
        this.stop();
      } else {
        say(how);
        this.startLater(number, nowMs() - begun < STABLE_MS ? deaths + 1 : 1);
      }
    });
  }

  private startLater(number: number, deaths: number): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      this.start(number, deaths);
    }, troubleMs(deaths));
    this.timers.add(timer);
  }
}

/** The program's files below a folder, and when they were changed, as a text. */
function filesBelow(folder: string): string {
  let found = '';
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    try {
      if (entry.isDirectory()) {
        if (entry.name !== 'node_modules' && !entry.name.startsWith('.')) found += filesBelow(path);
      } else if (WATCHED.test(entry.name)) {
        found += `${path} ${statSync(path).mtimeMs}\n`;
      }
    } catch {
      // it is being replaced
    }
  }
  return found;
}
