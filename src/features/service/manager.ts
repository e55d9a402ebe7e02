// Types for services under systemd and launchd: the values in a service file, and the commands that start,
// stop and inspect the service.
// commands.ts runs the commands.

export interface Launcher {
  /** Path of the Node binary that runs this program. */
  readonly node: string;
  /** Path of `bin/parley.js` in this installation. */
  readonly script: string;
}

/** Values for a service file. All paths are absolute. */
export interface ServiceParts {
  readonly launcher: Launcher;
  readonly home: string;
  /** Path of the configuration file. If absent, the gateway uses the default path. */
  readonly configPath?: string;
  /** Path of a file with `NAME=value` lines, which is read at each start. */
  readonly environmentFile: string;
  readonly userId: number;
  /** The user's configuration folder, if it is not ~/.config. */
  readonly configHome?: string;
}

export interface Step {
  readonly argv: readonly string[];
  /**
   * If set, a failure of this step is not final: this text is printed (unless it is empty), and the next step
   * runs.
   */
  readonly otherwise?: string;
}

export interface ServiceState {
  readonly running: boolean;
  /** True if the service starts automatically, with the machine or when the user signs in. */
  readonly enabled: boolean;
  readonly pid?: number;
  /** Status in the words of the service manager. */
  readonly text: string;
}

export interface Service {
  readonly manager: "systemd" | "launchd";
  readonly file: string;
  readonly text: string;
  /** A command that succeeds only if the service manager can be reached. */
  readonly probe: readonly string[];
  /** The error to print, with a fix, if the service manager cannot be reached. */
  readonly unreachable: string;
  readonly start: readonly Step[];
  readonly stop: readonly Step[];
  /** Steps to do after the service's file was removed. */
  readonly forget: readonly Step[];
  readonly look: readonly string[];
  /** Parses the output of `look`. */
  read(exitCode: number | null, output: string): ServiceState;
  /** The command that shows the service's log. */
  readonly logs: string;
}

/** Text at the top of files that this program writes. Files without it are never replaced or removed. */
export const MARK = "Written by parley service install";

/** Returns the command line of the service. `flags`: additional flags for Node. */
export function commandOf({ launcher, configPath }: ServiceParts, flags: readonly string[] = []): string[] {
  const config = configPath === undefined ? [] : ["--config", configPath];
  return [launcher.node, ...flags, launcher.script, ...config, "gateway"];
}

/**
 * Returns the PATH for the service. It must be set, because the service manager's own PATH does not contain
 * Node.
 */
export function searchPath({ launcher, home }: ServiceParts): string {
  const folder = launcher.node.slice(0, launcher.node.lastIndexOf("/"));
  return [...new Set([folder, `${home}/.local/bin`, "/usr/local/bin", "/usr/bin", "/bin"])].join(":");
}
