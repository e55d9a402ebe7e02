// The tab that runs the doctor and shows its findings, the problems first. A run continues while another view
// is shown, and its findings stay until the next run.

import { signal } from "@preact/signals";
import type { DoctorReport } from "../../../../src/features/doctor/contract.ts";
import { tick } from "../../clock.ts";
import { ask, onSignedOut } from "../../gateway.ts";
import { ResourceList } from "../../operations/resource-list.tsx";
import { Button } from "../../parts/button.tsx";
import { Failed } from "../../parts/failure.tsx";
import { ago, counted, duration } from "../../parts/format.ts";
import { Lines, Name } from "../../parts/name.tsx";
import { State } from "../../parts/state.tsx";

type Check =
  | { readonly kind: "running" }
  | { readonly kind: "done"; readonly report: DoctorReport }
  | { readonly kind: "failed"; readonly problem: unknown };

const GROUPS = [
  { level: "problem", title: "Problems", tone: "bad" },
  { level: "warning", title: "Warnings", tone: "warn" },
  { level: "ok", title: "In order", tone: "good" },
] as const;

function Report({ report: { findings, ts, durationMs } }: { report: DoctorReport }) {
  const groups = GROUPS.map((group) => ({
    ...group,
    rows: findings.filter(({ level }) => level === group.level),
  })).filter(({ rows }) => rows.length > 0);
  const count = (wanted: string): number => findings.filter(({ level }) => level === wanted).length;
  const [problems, warnings] = [count("problem"), count("warning")];
  return (
    <>
      <p>
        {problems === 0 ? "No problems" : counted(problems, "problem")}
        {warnings > 0 && `, ${counted(warnings, "warning")}`}.{" "}
        <span class="soft">
          Checked {ago(ts, tick.value)} in {duration(durationMs)}.
        </span>
      </p>
      {groups.map(({ level, title, tone, rows }) => (
        <section key={level} aria-label={title}>
          <ResourceList
            title={title}
            rows={rows}
            row={({ name, text, mend }) => ({
              key: `${name} ${text}`,
              state: <State state={name} tone={tone} text={<Name text={name} />} />,
              body: (
                <>
                  <Lines class="raw" text={text} />
                  {mend !== undefined && <Lines class="raw soft" text={mend} />}
                </>
              ),
            })}
          />
        </section>
      ))}
    </>
  );
}

const outside = signal(false);
const latest = signal<Check | undefined>(undefined);

onSignedOut(() => {
  latest.value = undefined;
});

async function run(): Promise<void> {
  if (latest.value?.kind === "running") return;
  const mine: Check = { kind: "running" };
  latest.value = mine;
  const end = await ask("doctor", { offline: !outside.value }).then(
    (report): Check => ({ kind: "done", report }),
    (problem: unknown): Check => ({ kind: "failed", problem }),
  );
  if (latest.value === mine) latest.value = end;
}

export function DoctorTab() {
  const check = latest.value;
  const running = check?.kind === "running";
  return (
    <>
      <h2>Doctor</h2>
      <p class="soft">Checks the gateway's machine, configuration and store. It changes nothing.</p>
      <div class="bar out-filters">
        <Button text="Run checks" class="primary" aria-disabled={running} onClick={() => void run()} />
        <label class="row">
          <input
            type="checkbox"
            checked={outside.value}
            onChange={(event) => {
              outside.value = event.currentTarget.checked;
            }}
          />
          Contact models (each call costs a few tokens), channels and MCP servers
        </label>
      </div>
      <div role="status">
        {running && <p class="loading">Checking… This can take a minute.</p>}
        {check?.kind === "done" && <Report report={check.report} />}
      </div>
      {check?.kind === "failed" && <Failed problem={check.problem} onRetry={() => void run()} />}
      {check === undefined && <p class="empty">No checks were run since you opened this page.</p>}
    </>
  );
}
