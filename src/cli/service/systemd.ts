// Owns the systemd user unit: its text, and the commands that go with it.
// SY1: every path stands in it as it is, whatever characters it has: quotes, percent and dollar signs mean
//      nothing to systemd there.
// SY2: it restricts nothing that a sandbox needs: no mount, user or network namespace is set up or forbidden,
//      because bubblewrap makes its own.

import { join } from "node:path";
import { count } from "../layout.ts";
import {
  commandOf,
  MARK,
  type Service,
  type ServiceParts,
  type ServiceState,
  searchPath,
} from "./manager.ts";

const UNIT = "parley.service";

/** As one word of a command. Specifiers (%) are expanded inside quotes, too. */
function quoted(word: string): string {
  return `"${word.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("%", "%%")}"`;
}

/** The words of a command for ExecStart. systemd starts no program whose name has a quote or a backslash. */
function startable(command: readonly string[]): string[] {
  const needsShell = /["'\\]/.test(command[0] ?? "");
  return [...(needsShell ? ["/bin/sh", "-c", 'exec "$0" "$@"'] : []), ...command].map(quoted);
}

function unitText(parts: ServiceParts): string {
  const [program, ...words] = startable(commandOf(parts));
  // The colon: no "$" in the command is a variable.
  const command = [`:${program}`, ...words].join(" ");
  return `# ${MARK}; "parley service uninstall" removes it.
# Settings of your own belong in a drop-in: systemctl --user edit ${UNIT}

[Unit]
Description=Parley, a gateway for AI agents
# A database or a network that comes later is waited for.
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${command}
Environment=${quoted(`PATH=${searchPath(parts)}`)}
# Keys and tokens, one NAME=value a line; read at each start.
EnvironmentFile=-${parts.environmentFile.replaceAll("%", "%%")}
Restart=on-failure
RestartSec=5
# Wrong usage does not mend itself.
RestartPreventExitStatus=2
# The gateway ends what it started, or parks it, within 10 s; what is left then is killed.
KillMode=mixed
TimeoutStopSec=30
# A command of an agent that takes all memory does not take the gateway with it.
OOMPolicy=continue
NoNewPrivileges=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
LockPersonality=yes
SystemCallArchitectures=native

[Install]
WantedBy=default.target
`;
}

function read(exitCode: number | null, output: string): ServiceState {
  const lines = output.split("\n").map((line) => line.split("=", 2));
  const facts = new Map(lines.map(([name = "", value = ""]) => [name, value]));
  const active = facts.get("ActiveState");
  if (exitCode !== 0 || active === undefined)
    return { running: false, enabled: false, text: "systemd does not say" };
  const pid = Number(facts.get("MainPID") ?? 0);
  const restarts = Number(facts.get("NRestarts") ?? 0);
  const again = restarts > 0 ? `, restarted ${count(restarts, "time")}` : "";
  const text = `${active} (${facts.get("SubState")})${again}`;
  const running = active === "active";
  const enabled = facts.get("UnitFileState") === "enabled";
  return { running, enabled, ...(pid > 0 ? { pid } : {}), text };
}

export function systemdService(parts: ServiceParts): Service {
  const control = (...words: string[]): string[] => ["systemctl", "--user", ...words];
  const reload = { argv: control("daemon-reload") };
  const properties = "--property=ActiveState,SubState,UnitFileState,MainPID,NRestarts";
  return {
    manager: "systemd",
    file: join(parts.configHome ?? join(parts.home, ".config"), "systemd/user", UNIT),
    text: unitText(parts),
    probe: control("show-environment"),
    unreachable:
      "No systemd of this user answers here: there is none on this machine (a container, another init), or " +
      "you came by su or sudo and not by signing in. --no-start writes the unit all the same, --print " +
      'shows it; without systemd let what you have start "parley gateway".',
    start: [
      reload,
      { argv: control("enable", UNIT) },
      // Also one that runs already gets the new unit.
      { argv: control("restart", UNIT) },
      {
        argv: ["loginctl", "enable-linger"],
        otherwise: "The service runs only while you are signed in: somebody who may must allow lingering.",
      },
    ],
    stop: [{ argv: control("disable", "--now", UNIT) }],
    forget: [reload],
    look: control("show", UNIT, properties),
    read,
    logs: `journalctl --user -u ${UNIT}`,
  };
}
