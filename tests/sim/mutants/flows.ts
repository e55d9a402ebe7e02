// Mutants of what happens between sessions: sends, replies, jobs, and the lives of sessions.

import type { Mutant } from "./mutant.ts";

export const FLOW_MUTANTS: readonly Mutant[] = [
  {
    name: "hop-of-a-send-not-counted",
    breaks: "I8: a message to another session is no further step",
    file: "src/flows/send.ts",
    from: "hop: (requesterRun?.hop ?? 0) + 1 }",
    to: "hop: requesterRun?.hop ?? 0 }",
  },
  {
    name: "hop-of-a-spawn-not-counted",
    breaks: "I8: a sub-agent is no further step",
    file: "src/flows/spawn.ts",
    from: "hop: (requesterRun?.hop ?? 0) + 1 }",
    to: "hop: requesterRun?.hop ?? 0 }",
  },
  {
    name: "call-judged-again",
    breaks: "I4: a call that was accepted before a restart is put to the rules of today",
    file: "src/tools/catalog.ts",
    from: "const before = args.ok ? await known?.before?.(ctx, args.value, call) : undefined;",
    to: "const before = undefined;",
  },
  {
    name: "notice-beside-an-answer",
    breaks: "I4: a sender that got its answer is told of it again",
    file: "src/flows/reply-back.ts",
    from: `step === "round1" && !answered && !carried`,
    to: `step === "round1" && !carried`,
  },
  {
    name: "notice-beside-a-turn",
    breaks: "I4: a sender that takes a reply turn is told by a notice, too",
    file: "src/flows/reply-back.ts",
    from: `step === "round1" && !answered && !carried`,
    to: `step === "round1" && !answered`,
  },
  {
    name: "notice-left-out",
    breaks: "I2: a sender that no longer waits never learns what became of its message",
    file: "src/flows/reply-back.ts",
    from: "await tellSender(latest);",
    to: "void latest;",
  },
  {
    name: "turn-from-oneself",
    breaks: "I11: a reply turn says that it comes from the one who is to answer",
    file: "src/flows/reply-back.ts",
    from: "provenance: provenanceFrom(other, chain),",
    to: "provenance: provenanceFrom(speaker, chain),",
  },
  {
    name: "silence-announced",
    breaks: "I5: an announce step that said nothing is delivered",
    file: "src/flows/reply-back.ts",
    from: `if (words !== "" && flow.open) await deliverAnnouncement(moment, words);`,
    to: `if (flow.open) await deliverAnnouncement(moment, run.reply ?? "");`,
  },
  {
    name: "outbox-not-woken",
    breaks: "I2: nobody is told that a delivery waits",
    file: "src/flows/outbox.ts",
    from: "  if (verdict.allowed) unit.after(() => ports.outbound.deliveryQueued());\n",
    to: "",
  },
  {
    name: "denied-text-delivered",
    breaks: "SP: a text leaves although the send policy forbids it",
    file: "src/flows/outbox.ts",
    from: `state: verdict.allowed ? "pending" : "skipped",\n    createdAt`,
    to: `state: "pending",\n    createdAt`,
  },
  {
    name: "internal-traffic-moves-the-route",
    breaks: "I10: a result that wakes its requester moves the requester's route",
    file: "src/engine/accept.ts",
    from: "  await insertRun(tx, run);\n",
    to: `  await insertRun(tx, run);
  const { updateSession } = await import("../store/sessions.ts");
  if (request.route) await updateSession(tx, session.key, { lastRoute: request.route });
`,
  },
  {
    name: "status-from-nowhere",
    breaks: "I12: every job is announced as a success",
    file: "src/flows/job.ts",
    from: `status: waited ? "aborted" : statusOf(last),\n      result,`,
    to: `status: "ok",\n      result,`,
  },
  {
    name: "job-ends-before-those-below",
    breaks: "JB1: a job is announced while sub-agents of its own are at work",
    file: "src/flows/job.ts",
    from: "return (await openSpawnsOf(unit.tx, { sessionKey: flow.targetKey })).length > 0;",
    to: "return false;",
  },
  {
    name: "job-above-not-looked-at",
    breaks: "I2: a job that only waited for one below it never ends",
    file: "src/flows/job.ts",
    from: "  if (above !== undefined) await jobMayHaveEnded(parts, acceptor, unit, above);\n",
    to: "  void above;\n",
  },
  {
    name: "job-told-twice",
    breaks: "I4: a result is posted, and the requester is woken with it, too",
    file: "src/flows/job.ts",
    from: "if (wakes && (await wake(moment, requester, text, last))) return;",
    to: "if (wakes) await wake(moment, requester, text, last);",
  },
  {
    name: "no-date-for-the-clean-up",
    breaks: "I2: a finished child is never archived or deleted",
    file: "src/flows/job.ts",
    from: "  await acceptor.setDeadline(unit, { kind: CHILD_DEADLINE, key: child.key, dueAt });\n",
    to: "",
  },
  {
    name: "archived-before-its-result-left",
    breaks: "AR1: a child goes while its announcement is still on its way",
    file: "src/flows/archive.ts",
    from: "return hasPendingDelivery(db, runIds);",
    to: "return (await hasPendingDelivery(db, runIds)) && false;",
  },
  {
    name: "reset-keeps-queued-runs",
    breaks: "LC1: what was accepted before a reset reaches the new transcript",
    file: "src/flows/lifecycle.ts",
    from: `    await ctx.engine.abortIn(unit, { sessionKey: key, reason: "session_reset", keepChildren: true });\n`,
    to: "",
  },
  {
    name: "more-children-than-allowed",
    breaks: "the limit of unfinished children is not asked for where the child is written down",
    file: "src/flows/spawn.ts",
    from: "  if (tooMany !== undefined) return tooMany;\n",
    to: "  void tooMany;\n",
  },
  {
    name: "attachments-left-behind",
    breaks: "the files of a job that is over stay in the workspace",
    file: "src/flows/archive.ts",
    from: "    if (attachments !== undefined && retainAttachments !== true) dropAttachments(parts, unit, child);\n",
    to: "    void attachments;\n    void retainAttachments;\n",
  },
];
