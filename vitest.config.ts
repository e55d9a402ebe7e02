import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { configDefaults, defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { BROWSER_PATIENCE_MS, PATIENCE_MS } from "./tests/kit/until.ts";

const testFilesWith = (text: string): string[] =>
  globSync("tests/**/*.test.ts").filter((file) => readFileSync(file, "utf8").includes(text));

/** Tests that take minutes: `npm run test:deep`. */
const DEEP = ["tests/**/*.deep.test.ts"];
/** These tests need the machine to themselves: they run a thousand clients. */
const ALONE = ["tests/e2e/load.deep.test.ts"];
/** Tests of the page in a browser: `npm run test:page`, which `npm run test:deep` contains. */
const PAGE = testFilesWith('/kit/browser.ts"').filter((file) => !file.endsWith(".deep.test.ts"));
/**
 * A busy browser stalls once in thousands of tests: a reload finds no storage, a message to a worker is lost. So
 * a test whose wait in the browser never ended runs once more. One that fails in other words does not.
 */
const STALLED_BROWSER = { count: 1, condition: /^Test timed out|Timeout \d+ms exceeded/ };
/** Files that have quick and deep tests (tests/kit/deep.ts). */
const SHARED = testFilesWith('/kit/deep.ts"');
/** One more than the cores, because many files wait for processes, browsers and databases. */
const WAITING = { maxWorkers: availableParallelism() + 1 };
const QUICK = { ...WAITING, provide: { isDeep: false } };

/**
 * Tests that run first: small files that take minutes. In a new clone, where no times are recorded, the
 * largest files run first, so these would run last and alone. Tests of tests/e2e are not among them, because
 * processes with heartbeats should not compete with all of these at once.
 */
const LONG = /\/tests\/(sim|fuzz|contract|cli\/wake)/;

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean => LONG.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  test: {
    globalSetup: ["tests/setup.ts"],
    setupFiles: ["tests/setup-file.ts"],
    testTimeout: PATIENCE_MS,
    hookTimeout: PATIENCE_MS,
    pool: "forks",
    // Files share a process. A new one for each file would load the program again and take a third of all
    // processor time.
    isolate: false,
    sequence: { sequencer: LongFirst },
    expect: { poll: { timeout: PATIENCE_MS } },
    projects: [
      {
        extends: true,
        test: {
          name: "tests",
          include: ["tests/**/*.test.ts"],
          ...QUICK,
          exclude: [...configDefaults.exclude, ...DEEP, ...PAGE],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "page",
          include: PAGE,
          ...QUICK,
          testTimeout: BROWSER_PATIENCE_MS,
          retry: STALLED_BROWSER,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "deep",
          globalSetup: ["tests/setup-deep.ts"],
          include: [...DEEP, ...SHARED],
          exclude: [...configDefaults.exclude, ...ALONE],
          ...WAITING,
          provide: { isDeep: true },
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "alone",
          include: ALONE,
          sequence: { groupOrder: 2 },
          maxWorkers: 1,
        },
      },
    ],
  },
});
