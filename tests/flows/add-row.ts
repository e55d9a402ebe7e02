// The shape of a function that adds a row of which only a limited number may exist.

import type { Unit } from "../../src/engine/unit.ts";
import type { FlowApp } from "../kit/engine/flow-app.ts";

/** Adds a row, unless there are too many. Calls `then` before the commit. Returns whether it was added. */
export type Add = (app: FlowApp, at: number, then: (unit: Unit) => Promise<void>) => Promise<boolean>;
