// The launchd agent of macOS: its property list and its commands.
// launchd cannot read environment variables from a file, so Node reads the file when it starts.

import { join } from "node:path";
import { commandOf, MARK, type Service, type ServiceParts, searchPath } from "./manager.ts";

const LABEL = "dev.parley.gateway";

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
};

const text = (value: string): string =>
  `<string>${value.replace(/[&<>]/g, (one) => ENTITIES[one] ?? one)}</string>`;

function listText(parts: ServiceParts, log: string): string {
  const words = commandOf(parts, [`--env-file-if-exists=${parts.environmentFile}`]);
  return `<?xml version="1.0" encoding="UTF-8"?>
<!-- ${MARK}; "npx parley-gateway service uninstall" removes it. -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  ${text(LABEL)}
  <key>ProgramArguments</key>
  <array>
${words.map((word) => `    ${text(word)}`).join("\n")}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
    <key>PATH</key>
    ${text(searchPath(parts))}
  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>10</integer>
  <key>ExitTimeOut</key>
  <integer>30</integer>
  <key>StandardOutPath</key>
  ${text(log)}
  <key>StandardErrorPath</key>
  ${text(log)}
</dict>
</plist>
`;
}

export function launchdService(parts: ServiceParts): Service {
  const domain = `gui/${parts.userId}`;
  const file = join(parts.home, "Library/LaunchAgents", `${LABEL}.plist`);
  const log = join(parts.home, ".parley/service.log");
  const bootOut = ["launchctl", "bootout", `${domain}/${LABEL}`];
  return {
    manager: "launchd",
    file,
    text: listText(parts, log),
    probe: ["launchctl", "print", domain],
    unreachable:
      "launchd has no desktop session for this user: sign in to the desktop. --no-start writes the file " +
      "anyway, --print shows it.",
    start: [
      // Stop a service that is running, so that the new one replaces it.
      { argv: bootOut, otherwise: "" },
      { argv: ["launchctl", "bootstrap", domain, file] },
    ],
    stop: [{ argv: bootOut, otherwise: "The service was not loaded." }],
    forget: [],
    look: ["launchctl", "print", `${domain}/${LABEL}`],
    read: (exitCode, output) => {
      if (exitCode !== 0) return { running: false, enabled: false, text: "not loaded" };
      const state = /^\s*state = (.+)$/m.exec(output)?.[1] ?? "unknown";
      const pid = Number(/^\s*pid = (\d+)$/m.exec(output)?.[1] ?? 0);
      return { running: state === "running", enabled: true, ...(pid > 0 ? { pid } : {}), text: state };
    },
    logs: `tail -f ${JSON.stringify(log)}`,
  };
}
