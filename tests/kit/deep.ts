// Divides the tests of one file between `npm test` and `npm run test:deep`. vitest.config.ts runs each file
// that imports this one in both; each test is registered in one of them.

import { inject, test as vitestTest } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    /** True if the file runs in `npm run test:deep`. */
    isDeep: boolean;
  }
}

const isDeep = inject("isDeep");

/** Replaces `test` or `describe`, including all variants, and registers nothing. */
const nothing: unknown = new Proxy(() => nothing, { get: (own, name) => Reflect.get(own, name) ?? nothing });

/** Returns `register` (a `test` or `describe`) only in `npm test`. */
export const quick = <T>(register: T): T => (isDeep ? (nothing as T) : register);

/** Returns `register` (a `test` or `describe`) only in `npm run test:deep`. */
export const deep = <T>(register: T): T => (isDeep ? register : (nothing as T));

/** Vitest's `test` for tests that run in `npm test`. `test.deep` registers a test of `npm run test:deep`. */
export const test = Object.assign(quick(vitestTest.extend({})), { deep: deep(vitestTest) });

/** Vitest's `test` for tests that run in both, with different cases (see `share`). */
export const both = vitestTest;

/** Returns the number of repetitions in `npm test` or in `npm run test:deep`. */
export const rounds = (quickRounds: number, deepRounds: number): number =>
  isDeep ? deepRounds : quickRounds;

/** Returns the quick cases in `npm test`, and the deep cases in `npm run test:deep`. */
export function share<const T>(quickCases: readonly T[], deepCases: readonly T[]): readonly T[] {
  return isDeep ? deepCases : quickCases;
}
