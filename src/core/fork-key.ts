// Builds the key of a fork from the key of its origin (the session that was forked), and finds the origin's
// key in the key of a fork.

/** Maximum length of a series of forks in which each is a fork of the one before. */
export const FORKS_MAX = 5;

/** Matches the key of a fork: the key of its origin, and an id. */
export const FORK_KEY = /^(.+):fork:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/** Returns the key of a new fork of a session. */
export function forkKey(key: string, id: string): string {
  return `${key}:fork:${id}`;
}

/** Returns the key of a fork's origin, or undefined if `key` is not the key of a fork. */
export function forkOrigin(key: string): string | undefined {
  return FORK_KEY.exec(key)?.[1];
}

/** Returns the key of the session from which a fork was made, the origin of that session, and so on. */
export function forkOrigins(key: string): string[] {
  const origin = forkOrigin(key);
  return origin === undefined ? [] : [origin, ...forkOrigins(origin)];
}
