// The dialog that compares a chain with another one.

import { useState } from "preact/hooks";
import { tick } from "../../clock.ts";
import { ask } from "../../gateway.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { Awaited } from "../../parts/failure.tsx";
import { ago } from "../../parts/format.ts";
import { useReading } from "../../parts/reading.ts";
import { Select } from "../../parts/select.tsx";
import { nameOf } from "../state.ts";
import { Columns } from "./columns.tsx";

/** Period from which chains are offered. */
const OFFERED_MINUTES = 7 * 24 * 60;

export function Compare({ chainId, onClose }: { chainId: string; onClose: () => void }) {
  const read = useReading("chains to compare", () =>
    ask("chains.list", { activeMinutes: OFFERED_MINUTES, limit: 200, includeSingle: true }),
  );
  const [other, pick] = useState("");
  const diff = useReading(`diff ${chainId} ${other}`, async () =>
    other === "" ? undefined : ask("chains.diff", { a: chainId, b: other }),
  );
  const others = (read.value?.chains ?? []).filter((one) => one.chainId !== chainId && !one.active);
  const options = others.map(({ chainId: id, opening, rootSessionKey = "", lastAt }) => {
    const name = opening || nameOf(rootSessionKey);
    return [id, `${name} (${ago(lastAt, tick.value)})`] as const;
  });
  return (
    <Dialog title="Compare" class="wide" onClose={onClose}>
      <label>
        Compare with
        <Select value={other} options={[["", "Choose a chain"], ...options]} onPick={pick} />
      </label>
      {read.value === undefined && <Awaited {...read} />}
      {other !== "" && diff.value === undefined && <Awaited {...diff} />}
      {diff.value !== undefined && <Columns diff={diff.value} names={["This chain", "Other chain"]} />}
      <button type="button" onClick={onClose}>
        Close
      </button>
    </Dialog>
  );
}
