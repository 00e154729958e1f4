// The worst that handlers can throw, and hooks do.

import { GiveUp, Retry, Snooze } from 'dq-redis';

/** The worst that can be thrown. */
export const HOSTILE = [
  new GiveUp({ code: 404 }),
  new GiveUp(404),
  new GiveUp(Symbol('s')),
  new GiveUp(new Proxy({}, throwing())),
  new Snooze(1e9, {}),
  new Snooze(1e9, Symbol('s')),
  new Snooze(Infinity),
  new Snooze(NaN),
  new Snooze('soon'),
  new Snooze(null),
  new Retry(NaN),
  new Retry(Infinity, 'later'),
  new Retry(-1),
  new Retry({}),
  Object.assign(new Retry(5), { delayMs: undefined }),
  Object.freeze(new Retry(Symbol('s'))),
  mute('message'),
  mute('name'),
  mute('stack'),
  mute('constructor'),
  Object.defineProperty(new GiveUp('x'), 'reason', { get: raise }),
  Object.defineProperty(new Snooze(5), 'delayMs', { get: raise }),
  new Proxy(new Error('x'), throwing()),
  new Proxy(() => {}, throwing()),
  revoked(),
  Symbol('s'),
  undefined,
  null,
  0,
  10n,
  '\ud800',
  Object.create(null),
  Object.freeze({ toString: raise }),
  new Error('\ud800'.repeat(2000)),
];

export function raise() {
  throw new Error('on purpose');
}

function throwing() {
  return Object.fromEntries(Object.getOwnPropertyNames(Reflect).map((trap) => [trap, raise]));
}

function mute(property) {
  return Object.defineProperty(new Error('x'), property, { get: raise });
}

function revoked() {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}
