// Lists the own rules of tools, which their features declare.

import type { ToolRule } from "../core/rules/tool-policy.ts";
import type { FeatureTool } from "../feature.ts";
import { added } from "../features.ts";

export const TOOL_RULES: readonly ToolRule[] = Object.entries<FeatureTool>(added("tools")).flatMap(
  ([tool, { denied }]) => (denied === undefined ? [] : [{ tool, denied }]),
);
