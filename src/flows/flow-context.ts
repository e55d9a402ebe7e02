// The input of each step after a run's end: the flow, its parties, and the transaction that ends the run.

import type { Run } from "../core/shapes/run.ts";
import type { Session } from "../core/shapes/session.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { Acceptor } from "../engine/run/finish.ts";
import type { Unit } from "../engine/unit.ts";
import type { Flow } from "../store/queries/chains/flows.ts";
import type { Outbound } from "./delivery/outbox.ts";

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
