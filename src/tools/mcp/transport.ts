// Defines the common types of the two transports, stdio and HTTP.

import type { Transport } from "@modelcontextprotocol/client";
import type { Redactor } from "../../core/text/redact/redact.ts";

/** The parts of the world that MCP servers need. */
export interface OutsideWorld {
  readonly clock: {
    now(): number;
    monotonic(): number;
    after(ms: number, fire: () => void): { cancel(): void };
  };
  random(): number;
  readonly ids: { uuid(): string };
  readonly redactor: Redactor;
  readonly log: {
    debug(fields: object, text: string): void;
    info(fields: object, text: string): void;
    warn(fields: object, text: string): void;
    error(fields: object, text: string): void;
  };
}

/** A connection to a server, until it is closed or breaks. */
export interface Link extends Transport {
  /**
   * Returns the server's last output besides protocol messages, for diagnosis by people. Secrets in it are
   * not redacted.
   */
  lastWords(): string;
}
