// The tab that runs the doctor and shows its findings, the problems first.

import { useState } from "preact/hooks";
import type { DoctorFinding, DoctorReport } from "../../../../src/contract/methods/upkeep.ts";
import { safeText } from "../../../../src/core/text/safe-text.ts";
import { tick } from "../../clock.ts";
import { ask } from "../../gateway.ts";
import { Failed } from "../../parts/failure.tsx";
import { ago, counted, duration } from "../../parts/format.ts";
import { Name } from "../../parts/name.tsx";
import { State } from "../../parts/state.tsx";
import "../rows.css";
import "./upkeep.css";

type Check =
  | { readonly kind: "running" }
  | { readonly kind: "done"; readonly report: DoctorReport }
  | { readonly kind: "failed"; readonly problem: unknown };

const GROUPS = [
  { level: "problem", title: "Problems", tone: "bad" },
  { level: "warning", title: "Warnings", tone: "warn" },
  { level: "ok", title: "In order", tone: "good" },
] as const;

function Finding({ name, text, mend, tone }: DoctorFinding & { tone: "bad" | "warn" | "good" }) {
  return (
    <li class="out-row upkeep-row">
      <State state={name} tone={tone} text={<Name text={name} />} />
      <div class="row-main">
        <p class="upkeep-text">
          <bdi>{safeText(text)}</bdi>
        </p>
        {mend !== undefined && (
          <p class="upkeep-text soft">
            <bdi>{safeText(mend)}</bdi>
          </p>
        )}
      </div>
    </li>
  );
}

function Report({ report: { findings, ts, durationMs } }: { report: DoctorReport }) {
  const groups = GROUPS.map((group) => ({
    ...group,
    found: findings.filter(({ level }) => level === group.level),
  }));
  const [problems = 0, warnings = 0] = groups.map(({ found }) => found.length);
  const found = [
    problems === 0 ? "No problems" : counted(problems, "problem"),
    ...(warnings === 0 ? [] : [counted(warnings, "warning")]),
  ];
  return (
    <>
      <p>
        {found.join(", ")}.{" "}
        <span class="soft">
          Checked {ago(ts, tick.value)} in {duration(durationMs)}.
        </span>
      </p>
      {groups
        .filter((group) => group.found.length > 0)
        .map(({ level, title, tone, found: rows }) => (
          <section key={level} aria-label={title}>
            <h3 class="upkeep-title">{title}</h3>
            <ul class="out-rows card">
              {rows.map((finding, at) => (
                <Finding key={`${finding.name} ${at}`} tone={tone} {...finding} />
              ))}
            </ul>
          </section>
        ))}
    </>
  );
}

export function DoctorTab() {
  const [outside, setOutside] = useState(false);
  const [check, setCheck] = useState<Check>();
  const running = check?.kind === "running";
  const run = (): void => {
    if (running) return;
    setCheck({ kind: "running" });
    ask("doctor", { offline: !outside }).then(
      (report) => setCheck({ kind: "done", report }),
      (problem: unknown) => setCheck({ kind: "failed", problem }),
    );
  };
  return (
    <>
      <h2>Doctor</h2>
      <p class="soft">
        Checks the gateway's machine, configuration and store, as <code>parley doctor</code> does. It changes
        nothing.
      </p>
      <div class="bar out-filters">
        <button type="button" class="primary" aria-disabled={running} onClick={run}>
          Run checks
        </button>
        <label class="out-check">
          <input
            type="checkbox"
            checked={outside}
            onChange={(event) => setOutside(event.currentTarget.checked)}
          />
          Contact models (each call costs a few tokens), channels and MCP servers
        </label>
      </div>
      <div role="status">
        {running && <p class="loading">Checking… This can take a minute.</p>}
        {check?.kind === "done" && <Report report={check.report} />}
      </div>
      {check?.kind === "failed" && <Failed problem={check.problem} onRetry={run} />}
      {check === undefined && <p class="empty">No checks were run since you opened this view.</p>}
    </>
  );
}
