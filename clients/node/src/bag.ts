// A set for what comes and goes by the thousand.

/** What a bag has: it is in one at a time. */
export interface Bagged {
  /** The bag's. */
  place: number;
}

/**
 * A Set, but for what V8 keeps of one: a table that it has outgrown refers to the next one, so that once such a table is in the
 * old generation all members after it outlive their use, and each collection copies them.
 */
export class Bag<T extends Bagged> implements Iterable<T> {
  private readonly members: (T | null)[] = [];
  size = 0;

  has(one: T): boolean {
    return this.members[one.place] === one;
  }

  add(one: T): void {
    one.place = this.size;
    this.members[this.size++] = one;
  }

  /** False if it is not there. */
  delete(one: T): boolean {
    if (!this.has(one)) return false;
    const last = this.members[--this.size]!;
    this.members[one.place] = last;
    last.place = one.place;
    this.members[this.size] = null;
    return true;
  }

  /** Those of now, in no order. */
  [Symbol.iterator](): Iterator<T> {
    return (this.members.slice(0, this.size) as T[]).values();
  }
}
