import { availableParallelism } from "node:os";
import { configDefaults, defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Hunts that take minutes: `npm run test:deep`. All others are `npm test`. */
const DEEP = ["tests/**/*.deep.test.ts"];
/** A thousand clients need the machine to themselves. */
const ALONE = ["tests/e2e/load.deep.test.ts"];

/**
 * Minutes of work in files of a few lines. In a clean clone, where no file was ever timed, the largest come first: these
 * would begin last, and all others would be done before them. Not those of tests/e2e: processes that have to say in time
 * that they live had better not meet all of these at once.
 */
const LONG = /\/tests\/(sim|fuzz|contract)\//;

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
    sequence: { sequencer: LongFirst },
    // Whoever polls waits for what must come: on a busy machine it comes late.
    expect: { poll: { timeout: 30_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: "tests",
          include: ["tests/**/*.test.ts"],
          exclude: [...configDefaults.exclude, ...DEEP],
          sequence: { groupOrder: 0 },
          // To start a process and load the program anew for each file takes a third of all processor time.
          isolate: false,
          // One file more than cores: many wait for processes, browsers and databases.
          maxWorkers: availableParallelism() + 1,
        },
      },
      {
        extends: true,
        test: {
          name: "deep",
          globalSetup: ["tests/setup-deep.ts"],
          include: DEEP,
          exclude: [...configDefaults.exclude, ...ALONE],
          sequence: { groupOrder: 1 },
          maxWorkers: availableParallelism(),
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
