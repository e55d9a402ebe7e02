// Owns what the two ways to a server have in common: what they are told, and what they need of the world.

import type { Transport } from "@modelcontextprotocol/client";

/** What outside servers need of the world: `world.ts` fits. */
import type { Redactor } from "../../core/redact.ts";

export interface OutsideWorld {
  readonly clock: {
    now(): number;
    at(atMs: number, fire: () => void): { cancel(): void };
  };
  random(): number;
  readonly redactor: Redactor;
  readonly log: {
    debug(fields: object, text: string): void;
    info(fields: object, text: string): void;
    warn(fields: object, text: string): void;
  };
}

/** One way to a server, until it is closed or breaks. */
export interface Link extends Transport {
  /** What it said beside the protocol, for people who look for a reason. Not masked. */
  lastWords(): string;
}
