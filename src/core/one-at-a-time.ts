// Lets each owner do one piece of work at a time.

import type { Failure, Result } from "./shapes/errors.ts";

/** Returns a function that does an owner's work, or fails with `busy` while that owner's other work lasts. */
export function oneAtATime(busy: Failure) {
  const owners = new WeakSet<object>();
  return async <T>(owner: object, work: () => Promise<Result<T>>): Promise<Result<T>> => {
    if (owners.has(owner)) return busy;
    owners.add(owner);
    try {
      return await work();
    } finally {
      owners.delete(owner);
    }
  };
}
