// Runs the checks of features for `parley doctor`.

import type { Settings } from "../core/shapes/settings/settings.ts";
import type { Finding } from "../feature.ts";
import { FEATURES } from "../features.ts";

export async function featureFindings(settings: Settings): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const { checks } of FEATURES)
    findings.push(...((await (await checks?.())?.findings?.(settings)) ?? []));
  return findings;
}
