import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { configDefaults, defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Tests that take minutes: `npm run test:deep`. All others: `npm test`. */
const DEEP = ["tests/**/*.deep.test.ts"];
/** These tests need the machine to themselves: they run a thousand clients. */
const ALONE = ["tests/e2e/load.deep.test.ts"];
/** These tests do much work, and a busy machine does it several times more slowly. */
const PATIENT = { testTimeout: 600_000, hookTimeout: 600_000 };
/** Files that have both kinds of tests (tests/kit/deep.ts). */
const SHARED = globSync("tests/**/*.test.ts").filter((file) => {
  return readFileSync(file, "utf8").includes('/kit/deep.ts"');
});

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
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: "forks",
    // Files share a process. A new one for each file would load the program again and take a third of all
    // processor time.
    isolate: false,
    sequence: { sequencer: LongFirst },
    // On a busy machine events come late, so polling tests wait for up to 30 seconds.
    expect: { poll: { timeout: 30_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: "tests",
          include: ["tests/**/*.test.ts"],
          exclude: [...configDefaults.exclude, ...DEEP],
          provide: { isDeep: false },
          sequence: { groupOrder: 0 },
          // One more than the cores, because many files wait for processes, browsers and databases.
          maxWorkers: availableParallelism() + 1,
        },
      },
      {
        extends: true,
        test: {
          name: "deep",
          globalSetup: ["tests/setup-deep.ts"],
          include: [...DEEP, ...SHARED],
          ...PATIENT,
          exclude: [...configDefaults.exclude, ...ALONE],
          provide: { isDeep: true },
          sequence: { groupOrder: 1 },
          maxWorkers: availableParallelism(),
        },
      },
      {
        extends: true,
        test: {
          name: "alone",
          include: ALONE,
          ...PATIENT,
          sequence: { groupOrder: 2 },
          maxWorkers: 1,
        },
      },
    ],
  },
});
