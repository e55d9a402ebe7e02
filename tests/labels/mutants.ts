// Broken variants of the mechanism of labels. The stories (story.ts) must find each of them.

import type { Mutant } from "../sim/mutants/mutant.ts";

const ACCEPT = "src/engine/run/accept.ts";
const GUARD = "src/tools/guidance/guard.ts";
const SOURCES = "src/core/rules/labels/sources.ts";
const STORE = "src/store/queries/labels.ts";
const RULES = "src/core/rules/labels/labels.ts";

export const LABEL_MUTANTS: readonly Mutant[] = [
  {
    name: "labels-lost-at-send",
    breaks: "I15: a session that gets a message does not get the labels of its chain",
    file: ACCEPT,
    from: "const labels = joinLabels(written, before?.labels);",
    to: "const labels = joinLabels(own, written && own);",
  },
  {
    name: "labels-lost-with-a-guest",
    breaks: "I15: a message of a guest has no label",
    file: SOURCES,
    from: "  if (sender !== undefined) return `guest ${sender}`;",
    to: "  if (sender !== undefined) return undefined;",
  },
  {
    name: "labels-lost-with-a-peer",
    breaks: "I15: a message of a peer has no label",
    file: SOURCES,
    from: "    if (peer !== undefined) return `peer ${peer}`;",
    to: "    if (peer !== undefined) return undefined;",
  },
  {
    name: "labels-lost-at-retry",
    breaks: "I15: a guest's message that an owner lets retry has no label",
    file: "src/flows/session/ended-run.ts",
    from: "background: ___, ...said } = failed.input;",
    to: "background: ___, guest: ____, ...said } = failed.input;",
  },
  {
    name: "labels-lost-at-restart",
    breaks: "I15: a main session has no labels after a restart",
    file: "src/flows/session/lifecycle.ts",
    from: "      const key = mainKeyOf(agent.id, rules);\n",
    to: `      const key = mainKeyOf(agent.id, rules);
      await unit.tx.updateTable("sessions").set({ labels_json: null }).where("key", "=", key).execute();
`,
  },
  {
    name: "labels-lost-with-an-attachment",
    breaks: "I15: a file that came with the task of a sub-agent is not outside",
    file: GUARD,
    from: "  if (dir === undefined || (await outsideCaller(ctx)) === undefined) return;",
    to: "  if (dir === undefined || (await outsideCaller(ctx)) !== null) return;",
  },
  {
    name: "private-session-not-in-its-chain",
    breaks: "I15: a private session passes its label on to no other session",
    file: ACCEPT,
    from: "  joinLabels(session.labels, labelOfSession?.(session));",
    to: "  labelOfSession === undefined ? undefined : session.labels;",
  },
  {
    name: "labels-lost-at-reply",
    breaks: "I15: a reply and the result of a sub-agent have no labels",
    file: "src/store/queries/runs/waits.ts",
    from: "readLabelsJson(row.labels_of_chain)",
    to: "readLabelsJson(row.labels_of_chain && undefined)",
  },
  {
    name: "labels-lost-at-announce",
    breaks: "I15: the announced result of a sub-agent has no labels",
    file: "src/flows/job/end.ts",
    from: "input, chain, successor: true };",
    to: "input: { text: input.text }, successor: true };",
  },
  {
    name: "labels-lost-at-acceptance",
    breaks: "I15: a session is not marked by the runs that it accepts, such as announcements",
    file: ACCEPT,
    from: `      : addLabels(tx, { ...session, chainId: request.chain?.chainId }, labels, {
          at: unit.now,
          runId: newId,
        }),`,
    to: "      : void session,",
  },
  {
    name: "labels-lost-at-compaction",
    breaks: "I15: a summary has no labels",
    file: "src/store/queries/transcripts/append.ts",
    from: '  if (text !== "" && kindOf(tx) === "postgres") {',
    to: `  if (row.role === "compaction")
    await tx.updateTable("sessions").set({ labels_json: null }).where("key", "=", sessionKey).execute();
  if (text !== "" && kindOf(tx) === "postgres") {`,
  },
  {
    name: "labels-lost-at-fork",
    breaks: "I15: a fork has the texts of its origin without their labels",
    file: "src/flows/session/fork.ts",
    from: "labels: labelsKnownTo(settings, origin),",
    to: "labels: settings.labels.mode === undefined ? labelsKnownTo(settings, origin) : undefined,",
  },
  {
    name: "labels-lost-in-a-file",
    breaks: "I15: a file that a run with outside content wrote is not outside",
    file: GUARD,
    from: "noteWriting(ctx, call, { from, isOutside });",
    to: "noteWriting(ctx, call, { from, isOutside: isOutside && from < 0 });",
  },
  {
    name: "file-not-looked-up",
    breaks: "I15: nobody looks up who wrote the file that a run reads",
    file: GUARD,
    from: 'readLabel(ctx, "outside", file)',
    to: 'readLabel(ctx, "outside", file && undefined)',
  },
  {
    name: "labels-lost-with-an-mcp-result",
    breaks: "I15: the result of an MCP server has no label",
    file: "src/tools/mcp/servers.ts",
    from: 'const outside = readLabel(ctx, "outside", source);',
    to: 'const outside = readLabel(ctx, "outside", source && undefined);',
  },
  {
    name: "labels-lost-with-a-page",
    breaks: "I15: a page has no label",
    file: "src/tools/files/files.ts",
    from: `      readLabel(ctx, "outside", webSource(url)),
      result && readLabel(ctx, "outside", webSource(result.url)),`,
    to: `      readLabel(ctx, "outside", url && undefined && webSource(url)),
      result && undefined,`,
  },
  {
    name: "labels-lost-with-a-history",
    breaks: "I15: the history of another session has no labels",
    file: "src/tools/sessions/history.ts",
    from: "joinLabels(page.value.labels, labelsKnownTo(ctx.settings, session));",
    to: "joinLabels(undefined, labelsKnownTo(ctx.settings, { ...session, labels: undefined }));",
  },
  {
    name: "first-source-only",
    breaks: "I15: a session with one source gets no other",
    file: RULES,
    from: "  if (sources.has(FURTHER)) return known;",
    to: "  if (sources.size > 0 || sources.has(FURTHER)) return known;",
  },
  {
    name: "chain-not-marked",
    breaks: "I15: a chain does not get the labels of the results in it",
    file: STORE,
    from: "  if (chainId === undefined) return;",
    to: '  if (chainId === undefined || chainId !== "") return;',
  },
  {
    name: "labels-overwritten",
    breaks: "I15: new labels of a session replace the ones before",
    file: STORE,
    from: "    const after = joinLabels(before, added);",
    to: "    const after = before === undefined ? added : joinLabels(undefined, added);",
  },
  {
    name: "private-file-not-marked",
    breaks: "I15: a file that a guest's run reads is not private",
    file: GUARD,
    from: 'readLabel(ctx, "private", hidden)',
    to: 'readLabel(ctx, "private", hidden && undefined)',
  },
  {
    name: "gate-without-a-sink",
    breaks: "I16: a run that is outside and private fetches any address",
    file: "src/tools/labels/gate.ts",
    from: "  if (sink === undefined) return free;",
    to: '  if (sink === undefined || sink.kind === "fetch") return free;',
  },
  {
    name: "only-what-the-run-has-read",
    breaks: "I16: the gate forgets the session of a run that has read nothing itself",
    file: GUARD,
    from: "known.labels : readLabels(db, { key, sessionId, chainId: run?.chainId });",
    to: 'known.labels : readLabels(db, { key: "", sessionId, chainId: "" });',
  },
  {
    name: "labels-unknown-before-calls",
    breaks: "I16: a run does not know before its calls what its session has read",
    file: "src/store/queries/runs/holds.ts",
    from: "readLabelsJson(row?.of_session, row?.of_chain)",
    to: "readLabelsJson(row && undefined)",
  },
];
