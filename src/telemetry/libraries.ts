// Owns which libraries traces are sent with, and the words for an install that lacks them.
// TE1: they are no part of an install, for few want traces and they are 20 MB: package.json names them as
//      optional peers, in the versions that are said here (a test compares).

import { createRequire } from "node:module";

export const TRACE_LIBRARIES = {
  "@opentelemetry/api": "1.10.0",
  "@opentelemetry/exporter-trace-otlp-http": "0.301.0",
  "@opentelemetry/resources": "3.1.0",
  "@opentelemetry/sdk-trace": "3.1.0",
} as const;

const { resolve } = createRequire(import.meta.url);

function isThere(name: string): boolean {
  try {
    resolve(name);
    return true;
  } catch {
    return false;
  }
}

/** Why there are no traces though they are on, and the command that brings them. Undefined: all is there. */
export function missingLibraries(): string | undefined {
  const missing = Object.entries(TRACE_LIBRARIES).filter(([name]) => !isThere(name));
  if (missing.length === 0) return undefined;
  const packages = missing.map(([name, version]) => `${name}@${version}`).join(" ");
  return `telemetry.traces is on, but nothing is told. Install its libraries: npm install ${packages}`;
}
