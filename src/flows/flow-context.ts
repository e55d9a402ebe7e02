// The input of each step after a run's end: the flow, its parties, and the transaction that ends the run.

import type { Run } from "../core/run.ts";
import type { Session } from "../core/session.ts";
import type { Settings } from "../core/settings.ts";
import type { Acceptor } from "../engine/finish.ts";
import type { Unit } from "../engine/unit.ts";
import type { Flow } from "../store/flows.ts";
import type { Outbound } from "./outbox.ts";

/** A flow at the end of one of its runs. */
export interface FlowContext {
  readonly acceptor: Acceptor;
  readonly unit: Unit;
  readonly settings: Settings;
  readonly outbound: Outbound;
  readonly flow: Flow;
  readonly run: Run;
  /** Absent: deleted meanwhile. */
  readonly requester: Session | undefined;
  readonly target: Session | undefined;
}
