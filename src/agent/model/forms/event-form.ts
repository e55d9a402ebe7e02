// Collects the plain events of an answer until they are passed on.

import type { Json, PlainForm } from "./plain-stream.ts";

export abstract class EventForm implements PlainForm {
  hasEnded = false;
  isOver = false;
  hasContent = false;
  #events: Json[] = [];

  abstract take(event: Json): void;
  abstract end(isWhole: boolean): void;

  flush(): readonly Json[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  protected push(event: Json): void {
    this.#events.push(event);
  }

  /** The last event that was not passed on yet. */
  protected get last(): Json | undefined {
    return this.#events.at(-1);
  }
}
