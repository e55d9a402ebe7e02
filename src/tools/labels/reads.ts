// Names the content of calls, which marks their session and their chain (core/rules/labels/labels.ts).

import { labelFrom } from "../../core/rules/labels/labels.ts";
import type { Label, Labels } from "../../core/shapes/labels.ts";
import type { SinkContext } from "../tool.ts";

/** Returns the label of a text that a call has read. */
export const readLabel = (
  { engine, run }: Pick<SinkContext, "engine" | "run">,
  label: Label,
  source: string | undefined,
): Labels | undefined =>
  source === undefined ? undefined : labelFrom(label, source, engine.now(), run?.runId);

/** Is not written as JSON. */
const LABELS = Symbol("labels");

/** Adds the labels of its texts to an answer. They are not part of what the caller gets. */
export const withLabels = <T extends object>(answer: T, labels: Labels | undefined): T =>
  labels === undefined ? answer : { ...answer, [LABELS]: labels };

/** Returns the labels that a tool has added to its answer. */
export const labelsIn = (answer: { readonly [LABELS]?: Labels } | undefined): Labels | undefined =>
  answer?.[LABELS];
