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

/** Prints a failed file that did not load, or its failed tests, each with the first line of its error. */
function show({ name = "", message = "", assertionResults: tests }) {
  const file = relative(process.cwd(), name);
  if (tests.length === 0) console.log(`failed: ${file}: ${message.split("\n", 1)[0]}`);
  for (const { status, fullName, failureMessages = [] } of tests) {
    if (status === "failed") console.log(`failed: ${file} > ${fullName}: ${failureMessages[0]?.split("\n", 1)[0]}`);
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
    for (const file of testResults) if (file.status === "failed") show(file);
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
