// Shows a notification on the desktop of the user, if there is one.

import { minimalEnvironment } from "../world/programs.ts";
import type { CliParts } from "./parts.ts";

const SHOW_MS = 10_000;
const OUTPUT_MAX_BYTES = 1_000;
/** Environment variables that a program needs to show something on the desktop. */
const DESKTOP = ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"];

/** A notification, with the environment for the program that shows it. */
interface DesktopNotice {
  readonly parts: Pick<CliParts, "env" | "home" | "runProgram">;
  readonly platform: string;
  readonly cwd: string;
  readonly title: string;
  readonly body: string;
}

/** Returns the command that shows a notification. The text of a notification can't be taken for an option. */
function commandFor({ platform, title, body }: DesktopNotice): readonly string[] {
  if (platform !== "darwin") return ["notify-send", "--app-name=Parley", "--", title, body];
  const show = "display notification (item 2 of argv) with title (item 1 of argv)";
  // osascript takes words after the script as its arguments, unless the first one looks like an option. So
  // prepend a blank.
  return ["osascript", "-e", "on run argv", "-e", show, "-e", "end run", title.replace(/^-/, " -"), body];
}

/** Shows a notification. Resolves to false if there is no desktop, or no program that can show it. */
export async function showOnDesktop(notice: DesktopNotice, signal: AbortSignal): Promise<boolean> {
  const { parts, platform, cwd } = notice;
  const desktop = DESKTOP.flatMap((name) => {
    const value = parts.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  // Without a desktop, the program would wait until there is one.
  if (platform !== "darwin" && desktop.length === 0) return false;
  try {
    const { ending, exitCode } = await parts.runProgram({
      argv: commandFor(notice),
      cwd,
      env: { ...minimalEnvironment(parts), ...Object.fromEntries(desktop) },
      outputMaxBytes: OUTPUT_MAX_BYTES,
      timeoutMs: SHOW_MS,
      signal,
    });
    return ending === "ended" && exitCode === 0;
  } catch {
    return false;
  }
}
