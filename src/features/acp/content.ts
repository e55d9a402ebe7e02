// Labels the session and the chain of a run by what its program reports to have read, and the files that it
// reports to have written, with the rules of Parley's own tools (tools/labels).

import { joinLabels } from "../../core/rules/labels/labels.ts";
import { readReport } from "../../core/rules/labels/reported.ts";
import type { Labels } from "../../core/shapes/labels.ts";
import { type GuardContext, markRead, outsideCaller } from "../../tools/guidance/guard.ts";
import { fileSource, noteWriting, outsideFileRead } from "../../tools/labels/files.ts";
import { readLabel } from "../../tools/labels/sinks.ts";
import type { ReportEvent } from "./program/reports.ts";

/** `agent`: with the folder in which the program works. */
export type ContentContext = Omit<GuardContext, "chain" | "sandbox" | "signal">;

export interface ContentNotes {
  onCall(event: ReportEvent): void;
  /** Waits until everything that was reported is noted. */
  settled(): Promise<void>;
}

export function openContentNotes(ctx: ContentContext): ContentNotes {
  const { db, agent } = ctx;
  /** Calls that have read an outside file. */
  const readers = new Set<string>();
  const note = async ({ id, call, phase, since }: ReportEvent): Promise<void> => {
    const { outside, reads, writes } = readReport(agent.id, call);
    let labels: Labels | undefined;
    const add = (label: "outside" | "private", source: string | undefined): void => {
      labels = joinLabels(labels, readLabel(ctx, label, source));
    };
    for (const source of outside) add("outside", source);
    for (const read of reads) {
      const file = await outsideFileRead(db, ctx, read);
      if (file !== undefined) readers.add(id);
      add("outside", file);
      add("private", await fileSource(agent.workspace, read.arguments.path));
    }
    await markRead(ctx, id, labels);
    if (phase === "begins") return;
    const isReader = readers.delete(id);
    const isCaller = writes.length > 0 && (await outsideCaller(ctx)) !== undefined;
    for (const write of writes) {
      const isOutside = isCaller || (isReader && write.name !== "write");
      await noteWriting(ctx, write, { from: since, isOutside });
    }
  };
  let last: Promise<void> = Promise.resolve();
  return {
    onCall(event) {
      last = last.then(() => note(event));
      // `settled` reports the failure.
      last.catch(() => {});
    },
    settled: () => last,
  };
}
