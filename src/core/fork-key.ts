// Derives the key of a fork from the key of the session from which it was made, and back.

/** Maximum number of forks in a row: of a session, of its fork, and so on. */
export const FORKS_MAX = 5;

/** Matches the key of a fork: the key of its origin, and an id. */
export const FORK_KEY = /^(.+):fork:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/** Returns the key of a new fork of a session. */
export function forkKey(key: string, id: string): string {
  return `${key}:fork:${id}`;
}

/** Returns the key of the session from which a session was forked. Undefined if the key is not a fork's. */
export function forkOrigin(key: string): string | undefined {
  return FORK_KEY.exec(key)?.[1];
}

/** Returns the key of the session from which a fork was made, the origin of that session, and so on. */
export function forkOrigins(key: string): string[] {
  const origin = forkOrigin(key);
  return origin === undefined ? [] : [origin, ...forkOrigins(origin)];
}
