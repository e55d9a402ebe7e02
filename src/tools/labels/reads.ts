// Names the content of calls, which marks their session and their chain (core/rules/labels/labels.ts).

import { joinLabels, labelFrom, labelsKnownTo } from "../../core/rules/labels/labels.ts";
import type { Label, Labels } from "../../core/shapes/labels.ts";
import { labelsOfChain } from "../../store/queries/labels.ts";
import { sessionsWith } from "../../store/queries/sessions/sessions.ts";
import type { SinkContext } from "../tool.ts";

/** Returns the label of a text that a call has read. */
export const readLabel = (
  { engine, run }: Pick<SinkContext, "engine" | "run">,
  label: Label,
  source: string | undefined,
): Labels | undefined =>
  source === undefined ? undefined : labelFrom(label, source, engine.now(), run?.runId);

/** Returns the labels of the caller's chain, which the other session of the call has marked. */
export const readChain = ({ db, run }: SinkContext): Promise<Labels | undefined> =>
  labelsOfChain(db, run?.chainId);

/** Returns the labels of everything that the transcripts of these rows hold. */
export async function readSessions(
  { db, settings }: SinkContext,
  rows: readonly { readonly sessionId: string }[] = [],
): Promise<Labels | undefined> {
  const sessions = await sessionsWith(db, [...new Set(rows.map(({ sessionId }) => sessionId))]);
  return sessions.reduce<Labels | undefined>(
    (all, session) => joinLabels(all, labelsKnownTo(settings, session)),
    undefined,
  );
}
