// The types that systemd and launchd share: the parts of a service, and the commands that start, stop and
// inspect it. commands/gateway/service.ts runs the commands.

export interface Launcher {
  /** Path of the Node that runs this program. */
  readonly node: string;
  /** `bin/parley.js` of this installation. */
  readonly script: string;
}

/** Input of a service file. All paths are absolute. */
export interface ServiceParts {
  readonly launcher: Launcher;
  readonly home: string;
  /** Absent: the gateway uses the default configuration file. */
  readonly configPath?: string;
  /** `NAME=value` lines, read at each start. */
  readonly environmentFile: string;
  readonly userId: number;
  /** The user's configuration folder, if not ~/.config. */
  readonly configHome?: string;
}

export interface Step {
  readonly argv: readonly string[];
  /** If set, the step may fail: this is printed (unless empty) and the next step runs. */
  readonly otherwise?: string;
}

export interface ServiceState {
  readonly running: boolean;
  /** Starts automatically with the machine or when the user signs in. */
  readonly enabled: boolean;
  readonly pid?: number;
  /** Status as the service manager names it. */
  readonly text: string;
}

export interface Service {
  readonly manager: "systemd" | "launchd";
  readonly file: string;
  readonly text: string;
  /** Succeeds if the service manager can be reached. */
  readonly probe: readonly string[];
  /** The error, and how to fix it, if the service manager cannot be reached. */
  readonly unreachable: string;
  readonly start: readonly Step[];
  readonly stop: readonly Step[];
  /** Runs after the file was removed. */
  readonly forget: readonly Step[];
  readonly look: readonly string[];
  /** Reads the output of `look`. */
  read(exitCode: number | null, output: string): ServiceState;
  /** The command that shows the service's log. */
  readonly logs: string;
}

/** Text at the top of our files, so that a file of another program is never replaced or removed. */
export const MARK = "Written by parley service install";

/** Returns the command of the service. `flags`: further flags for Node. */
export function commandOf({ launcher, configPath }: ServiceParts, flags: readonly string[] = []): string[] {
  const config = configPath === undefined ? [] : ["--config", configPath];
  return [launcher.node, ...flags, launcher.script, ...config, "gateway"];
}

/** Returns the PATH of the service, because the service manager's PATH does not contain Node. */
export function searchPath({ launcher, home }: ServiceParts): string {
  const folder = launcher.node.slice(0, launcher.node.lastIndexOf("/"));
  return [...new Set([folder, `${home}/.local/bin`, "/usr/local/bin", "/usr/bin", "/bin"])].join(":");
}
