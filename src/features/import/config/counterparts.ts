// Names the settings of Parley that do the same as settings of the source that the import does not convert.

const COUNTERPARTS: readonly (readonly [RegExp, string])[] = [
  [/^gateway\b/, "gateway.*"],
  [/^channels\.(whatsapp|signal|imessage)\b/, "channels.*: run npx parley-gateway channels add"],
  [/^tools\.web\b/, "tools.search and tools.fetch"],
  [/^tools\.(elevated|exec)\b/, "tools.exec"],
  [/^(approvals)\b/, "tools.exec.approval"],
  [/^hooks\b/, "hooks.*"],
  [/^logging\b/, "logging.*"],
  [/^diagnostics\b/, "telemetry.traces"],
  [/^messages\b/, "inbound.*"],
  [/^cron\b/, "cron.*"],
  [/^env\b/, "the environment of the gateway"],
  [
    /^session\.(reset|idle)/,
    "a scheduled job with the message /reset: npx parley-gateway cron add /reset --session main",
  ],
  [/\.sandbox$/, "agents.defaults.sandbox"],
  [/^(acp|nodeHost|browser)\b/, "agents.list[].runtime, nodes and MCP servers"],
];

const NAMES_SHOWN = 12;

/** Splits unused settings into those with a setting here, as notes, and those without one. */
export function splitUnused(left: readonly string[]): { notes: string[]; left: string[] } {
  const byHere = Map.groupBy(left, (path) => COUNTERPARTS.find(([one]) => one.test(path))?.[1]);
  const unknown = byHere.get(undefined) ?? [];
  byHere.delete(undefined);
  const notes = [...byHere].map(([here, paths]) => {
    const names = paths.slice(0, NAMES_SHOWN).join(", ");
    return `not converted: ${names}. The setting here: ${here}`;
  });
  return { notes, left: unknown };
}
