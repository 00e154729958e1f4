// Promises that nobody awaits and listeners that throw: handled here, as either would end the process.

import { types } from 'node:util';

const ignore = () => {};

/** A promise that need not be awaited: neither its rejection nor one of a promise made from it is unhandled. */
export class Quiet<T> extends Promise<T> {
  override then<A = T, B = never>(
    fulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    rejected?: ((reason: any) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    const made = super.then(fulfilled, rejected);
    super.then.call(made, undefined, ignore);
    return made;
  }

  static of<T>(made: Promise<T>): Quiet<T> {
    const quiet = new Quiet<T>((resolve, reject) => void made.then(resolve, reject));
    quiet.then(ignore, ignore);
    return quiet;
  }
}

/** If the value is a promise, its rejection does not count as unhandled. */
export function hush(given: unknown): void {
  if (!types.isPromise(given)) return;
  try {
    Promise.prototype.then.call(given, ignore, hush);
  } catch {
    // its constructor is the user's code
  }
}

/** The value, awaited if it is a promise or any object with a `then`. Rejects with what that throws. */
export function valueOf(given: unknown): Promise<unknown> {
  hush(given);
  return new Promise((resolve) => resolve(given));
}

export const mayBePromise = (given: unknown): given is object =>
  typeof given === 'function' || (typeof given === 'object' && given !== null);

/** Calls a function. `onError` gets what it throws, or what its promise rejects with. */
export function quietly(call: () => unknown, onError: (error: unknown) => void): void {
  const failed = (error: unknown) => {
    hush(error);
    onError(error);
  };
  try {
    const given = call();
    if (mayBePromise(given)) valueOf(given).catch(failed);
  } catch (error) {
    failed(error);
  }
}

type Listener = ((event: Event) => unknown) | { handleEvent(event: Event): unknown };
type Options = Parameters<AbortSignal['addEventListener']>[2];

/** A signal whose listeners may throw: `onError` gets the error. */
export function quietSignal(signal: AbortSignal, onError: (error: unknown) => void): AbortSignal {
  const quiets = new WeakMap<object, (event: Event) => void>();
  const quiet = (listener: Listener) => {
    const made = quiets.get(listener) ?? ((event: Event) => quietly(() => called(listener, signal, event), onError));
    quiets.set(listener, made);
    return made;
  };
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (type: string, listener: Listener, options?: Options) =>
    add(type, isListener(listener) ? quiet(listener) : listener, options);
  signal.removeEventListener = (type: string, listener: Listener, options?: Options) =>
    remove(type, isListener(listener) ? quiet(listener) : listener, options);
  let own: unknown = null;
  Object.defineProperty(signal, 'onabort', {
    get: () => own,
    set(listener: unknown) {
      if (isListener(own)) remove('abort', quiet(own));
      own = listener;
      if (isListener(own)) add('abort', quiet(own));
    },
  });
  return signal;
}

const isListener = (given: unknown): given is Listener => mayBePromise(given);

const called = (listener: Listener, signal: AbortSignal, event: Event): unknown =>
  typeof listener === 'function' ? listener.call(signal, event) : listener.handleEvent(event);
