// Owns what the programs of a configuration that are told of events are, complete.

import { createHash } from "node:crypto";
import type { OutgoingHook } from "../core/settings.ts";
import type { OutgoingInFile } from "./hooks-schema.ts";
import type { Problem } from "./source.ts";

/** The same for the same address, and no way back to it. */
function nameOf({ name, url }: OutgoingInFile): string {
  if (name !== undefined) return name;
  const { host } = new URL(url);
  return `${host}-${createHash("sha256").update(url).digest("hex").slice(0, 8)}`;
}

/** Those that are enabled; two of one name are a problem. */
export function outgoingHooksOf(inFile: readonly OutgoingInFile[], problems: Problem[]): OutgoingHook[] {
  const names = inFile.map(nameOf);
  return inFile.flatMap((hook, index) => {
    const name = names[index] ?? "";
    if (names.indexOf(name) !== index) {
      const text = `"${name}" is there twice: give each of them a name of its own`;
      problems.push({ path: ["hooks", "outgoing", index, "name"], text });
    }
    const { url, events, secret, sessions, enabled } = hook;
    const covered = sessions === undefined ? {} : { sessions };
    return enabled ? [{ name, url, events: [...new Set(events)], secret, ...covered }] : [];
  });
}
