// Owns the error of a gateway that can't listen on its address.

import { type Failure, fail } from "../../core/shapes/errors.ts";

/** Explains why listening failed. Returns undefined for any other error. */
export function listenFailure(error: unknown, at: { host: string; port: number }): Failure | undefined {
  const { code } = error as NodeJS.ErrnoException;
  const { host, port } = at;
  if (code === "EADDRINUSE") {
    return fail("store_unavailable", `port ${port} on ${host} is in use by another program`, {
      hint: "Stop it, or choose another port with --port or gateway.port.",
    });
  }
  if (code === "EACCES" || code === "EADDRNOTAVAIL") {
    return fail("store_unavailable", `cannot listen on ${host}:${port} (${code})`, {
      hint: "Choose another host or port with --host and --port.",
    });
  }
  return undefined;
}
