// Adds up vitest's JSON reports: prints the slowest files, each failed test and `N passed, N failed`, and ends with
// 1 unless tests passed and none failed.
// Usage: node count.js STEPS_FAILED REPORT...
// A report that is missing or cannot be read counts as one failure, and so does a test file that does not load.
// Errors outside tests are in no report, so a failed step (STEPS_FAILED is 1) counts as one if no test failed.

import { readFileSync } from "node:fs";
import { relative } from "node:path";

const UNREADABLE = { passed: 0, failed: 1 };
/** Files that are shown of each report, with their durations. */
const SLOW_FILES = 12;

/**
 * Prints a file that did not load, and the tests of a file that failed, also those that passed when they ran once
 * more, each with the first line of its error.
 */
function showFailures({ name = "", status: state, message = "", assertionResults: tests }) {
  const file = relative(process.cwd(), name);
  if (state === "failed" && tests.length === 0) console.log(`failed: ${file}: ${message.split("\n", 1)[0]}`);
  for (const { status, fullName, failureMessages = [] } of tests) {
    const [error] = failureMessages;
    const end = status === "passed" ? "passed at the second try" : status;
    if (error !== undefined) console.log(`${end}: ${file} > ${fullName}: ${error.split("\n", 1)[0]}`);
  }
}

/** Prints the files of a report that took longest, with their durations in seconds. */
function showSlowest(files) {
  const timed = files.map(({ name = "", startTime = 0, endTime = 0 }) => ({ name, seconds: (endTime - startTime) / 1_000 }));
  for (const { name, seconds } of timed.sort((a, b) => b.seconds - a.seconds).slice(0, SLOW_FILES))
    console.log(`${seconds.toFixed(0).padStart(5)} s  ${relative(process.cwd(), name)}`);
}

/** @param {string} path */
function count(path) {
  try {
    const { numPassedTests: passed, numFailedTests, success, testResults } = JSON.parse(readFileSync(path, "utf8"));
    const unloaded = testResults.filter((file) => file.status === "failed" && file.assertionResults.length === 0);
    const failed = numFailedTests + unloaded.length;
    showSlowest(testResults);
    for (const file of testResults) showFailures(file);
    return { passed, failed: success || failed > 0 ? failed : 1 };
  } catch (error) {
    console.log(`no report of tests: ${error instanceof Error ? error.message : error}`);
    return UNREADABLE;
  }
}

const [stepsFailed, ...reports] = process.argv.slice(2);
const counts = reports.map(count);
const passed = counts.reduce((sum, one) => sum + one.passed, 0);
const failed = counts.reduce((sum, one) => sum + one.failed, 0) || Number(stepsFailed);
console.log(`\n${passed} passed, ${failed} failed`);
process.exitCode = passed > 0 && failed === 0 ? 0 : 1;
