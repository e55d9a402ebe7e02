// Adds up vitest's JSON reports: prints `N passed, N failed`, and ends with 1 unless tests passed and none failed.
// Usage: node count.js STEPS_FAILED REPORT...
// A report that is missing or cannot be read counts as one failure, and so does a test file that does not load.
// Errors outside tests are in no report, so a failed step (STEPS_FAILED is 1) counts as one if no test failed.

import { readFileSync } from "node:fs";

const UNREADABLE = { passed: 0, failed: 1 };

/** @param {string} path */
function count(path) {
  try {
    const { numPassedTests: passed, numFailedTests, success, testResults } = JSON.parse(readFileSync(path, "utf8"));
    const unloaded = testResults.filter((file) => file.status === "failed" && file.assertionResults.length === 0);
    const failed = numFailedTests + unloaded.length;
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
