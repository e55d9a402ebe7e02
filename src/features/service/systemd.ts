// The systemd user unit: its text and its commands.
// SY1: paths are escaped, so quotes, percent signs and dollar signs in them have no special meaning to
//      systemd.
// The unit sets no option about mount, user or network namespaces, because bubblewrap must be able to create
// its own.

import { join } from "node:path";
import { count } from "../../cli/layout.ts";
import {
  commandOf,
  MARK,
  type Service,
  type ServiceParts,
  type ServiceState,
  searchPath,
} from "./manager.ts";

const UNIT = "parley.service";

/** Quotes one word of a command. systemd expands specifiers (%) inside quotes, too, so they are doubled. */
function quoteWord(word: string): string {
  return `"${word.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("%", "%%")}"`;
}

/**
 * Returns the words for ExecStart. systemd cannot start a program whose path has a quote or a backslash, so
 * such a program is started through a shell.
 */
function startable(command: readonly string[]): string[] {
  const needsShell = /["'\\]/.test(command[0] ?? "");
  return [...(needsShell ? ["/bin/sh", "-c", 'exec "$0" "$@"'] : []), ...command].map(quoteWord);
}

function unitText(parts: ServiceParts): string {
  const [program, ...words] = startable(commandOf(parts));
  // The colon tells systemd not to expand variables ("$") in the command.
  const command = [`:${program}`, ...words].join(" ");
  return `# ${MARK}; "npx parley-gateway service uninstall" removes it.
# Settings of your own belong in a drop-in: systemctl --user edit ${UNIT}

[Unit]
Description=Parley, a gateway for AI agents
# Never give up: a database or a network may start later.
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${command}
Environment=${quoteWord(`PATH=${searchPath(parts)}`)}
# Keys and tokens, one NAME=value a line; read at each start.
EnvironmentFile=-${parts.environmentFile.replaceAll("%", "%%")}
Restart=on-failure
RestartSec=5
# A restart does not fix wrong usage.
RestartPreventExitStatus=2
# A stop takes at most about 6 s; then remaining processes are killed.
KillMode=mixed
TimeoutStopSec=30
# If a command of an agent uses up the memory, the gateway survives.
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
    return { running: false, enabled: false, text: "systemd returned no state" };
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
      "systemd does not answer for this user: it is not installed (a container, another init), or you used " +
      "su or sudo instead of signing in. --no-start writes the unit anyway, --print shows it; without " +
      'systemd, start "npx parley-gateway gateway" with your own service manager.',
    start: [
      reload,
      { argv: control("enable", UNIT) },
      // Restart the service, so that it uses the new unit.
      { argv: control("restart", UNIT) },
      {
        argv: ["loginctl", "enable-linger"],
        otherwise: "The service runs only while you are signed in. An administrator can enable lingering.",
      },
    ],
    stop: [{ argv: control("disable", "--now", UNIT) }],
    forget: [reload],
    look: control("show", UNIT, properties),
    read,
    logs: `journalctl --user -u ${UNIT}`,
  };
}
