// Builds the outgoing hooks of a configuration, with defaults filled in.

import { createHash } from "node:crypto";
import { optional } from "../core/optional.ts";
import type { OutgoingHook } from "../core/shapes/settings/settings.ts";
import type { OutgoingInFile } from "./schema/hooks.ts";
import type { Problem } from "./source.ts";

/**
 * Returns a hook's name. The default name is the host and a hash of the address: the address cannot be
 * derived from it.
 */
function nameOf({ name, url }: OutgoingInFile): string {
  if (name !== undefined) return name;
  const { host } = new URL(url);
  return `${host}-${createHash("sha256").update(url).digest("hex").slice(0, 8)}`;
}

/** Returns the enabled hooks. Reports duplicate names. */
export function outgoingHooksOf(inFile: readonly OutgoingInFile[], problems: Problem[]): OutgoingHook[] {
  const names = inFile.map(nameOf);
  return inFile.flatMap((hook, index) => {
    const name = names[index] ?? "";
    if (names.indexOf(name) !== index) {
      const text = `"${name}" is listed twice; give each hook a different name`;
      problems.push({ path: ["hooks", "outgoing", index, "name"], text });
    }
    const { url, events, secret, sessions, enabled } = hook;
    const covered = optional({ sessions });
    return enabled ? [{ name, url, events: [...new Set(events)], secret, ...covered }] : [];
  });
}
