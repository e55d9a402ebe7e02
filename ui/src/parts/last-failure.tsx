// Shows that the last turn of a session failed, when and why.

import type { ListedRow } from "../../../src/contract/client/web.ts";
import { tick } from "../clock.ts";
import { ago, clockTime } from "./format.ts";
import { Name } from "./name.tsx";
import { State } from "./state.tsx";

export function LastFailure({ failure }: { failure: NonNullable<ListedRow["failure"]> }) {
  const { endedAt, code, reason = code } = failure;
  const words = `failed ${ago(endedAt, tick.value)}: ${reason}`;
  return (
    <span class="session-failed">
      <State
        state="failed"
        text={<Name text={words} title={`${clockTime(endedAt, true)}, ${code}: ${reason}`} />}
      />
    </span>
  );
}
