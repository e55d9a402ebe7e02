// Checks the events that a gateway sends in tests against the contract.

import { Compile, type Validator } from "typebox/schema";
import { EVENTS } from "../../src/contract/events.ts";
import { EVENT_FRAME } from "../../src/contract/frames.ts";

const validators = new Map<object, Validator>();

/** Returns the parts of a value that violate the schema. */
export function misfits(schema: object, value: unknown): readonly object[] {
  const validator = validators.get(schema) ?? (Compile(schema) as Validator);
  validators.set(schema, validator);
  return validator.Check(value) ? [] : validator.Errors(value)[1];
}

/** Fails the test run if an event violates the contract. May be called in a listener. */
export function checkEvent(frame: { readonly event?: string; readonly payload?: unknown }): void {
  const event = Object.entries(EVENTS).find(([name]) => name === frame.event)?.[1];
  const problems =
    event === undefined
      ? ["unknown event"]
      : [...misfits(EVENT_FRAME, frame), ...misfits(event.payload, frame.payload)];
  if (problems.length === 0) return;
  const text = JSON.stringify({ frame, problems }).slice(0, 2_000);
  // Thrown later, because the client catches exceptions that its listeners throw.
  queueMicrotask(() => {
    throw new Error(`the event does not fit the contract: ${text}`);
  });
}
