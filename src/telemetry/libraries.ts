// Names the libraries that send traces, and builds the message if they are not installed.
// TE1: they are not installed by default, because few users want traces and they need 20 MB. package.json
// lists them as optional peers, in the versions given here (a test compares).

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

/**
 * Explains why enabled traces are not sent, with the command that installs the libraries. Returns undefined
 * if they are installed.
 */
export function missingLibraries(): string | undefined {
  const missing = Object.entries(TRACE_LIBRARIES).filter(([name]) => !isThere(name));
  if (missing.length === 0) return undefined;
  const packages = missing.map(([name, version]) => `${name}@${version}`).join(" ");
  return `telemetry.traces is on, but its libraries are missing. Run: npm install ${packages}`;
}
