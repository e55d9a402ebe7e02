// Owns what the two service managers have in common: what a service is made of, and the steps by which one is
// started, stopped and looked at.
// SM1: a manager only writes texts and commands down; who runs them is commands/service.ts.

export interface Launcher {
  /** The Node that runs this program. */
  readonly node: string;
  /** `bin/parley.js` of this installation. */
  readonly script: string;
}

/** What a service is made of. All paths are absolute. */
export interface ServiceParts {
  readonly launcher: Launcher;
  readonly home: string;
  /** Absent: the gateway finds its configuration in the usual place. */
  readonly configPath?: string;
  /** `NAME=value` lines, read at each start. */
  readonly environmentFile: string;
  readonly userId: number;
  /** Where the manager keeps units, if not in the usual place. */
  readonly configHome?: string;
}

export interface Step {
  readonly argv: readonly string[];
  /** It may fail: then this is said, or nothing if it is empty, and the next step is made. */
  readonly otherwise?: string;
}

export interface ServiceState {
  readonly running: boolean;
  /** Starts by itself with the machine, or when the user signs in. */
  readonly enabled: boolean;
  readonly pid?: number;
  /** In the manager's own words. */
  readonly text: string;
}

export interface Service {
  readonly manager: "systemd" | "launchd";
  readonly file: string;
  readonly text: string;
  /** Succeeds where the manager can be reached. */
  readonly probe: readonly string[];
  /** What to do where it can't. */
  readonly unreachable: string;
  readonly start: readonly Step[];
  readonly stop: readonly Step[];
  /** After the file was removed. */
  readonly forget: readonly Step[];
  readonly look: readonly string[];
  /** What looking came to. */
  read(exitCode: number | null, output: string): ServiceState;
  /** The command that shows what the service wrote. */
  readonly logs: string;
}

/** The first lines of a file say this, so that a file of somebody else's is never replaced or removed. */
export const MARK = "Written by parley service install";

/** Keeps the young generation small, as the command itself does. */
const NODE_FLAGS = ["--max-semi-space-size=16"];

/** The command of the service. `flags`: further ones for Node. */
export function commandOf({ launcher, configPath }: ServiceParts, flags: readonly string[] = []): string[] {
  const config = configPath === undefined ? [] : ["--config", configPath];
  return [launcher.node, ...NODE_FLAGS, ...flags, launcher.script, ...config, "gateway"];
}

/** Programs that agents and tools start are looked for here; a manager's own list has no Node. */
export function searchPath({ launcher, home }: ServiceParts): string {
  const folder = launcher.node.slice(0, launcher.node.lastIndexOf("/"));
  return [...new Set([folder, `${home}/.local/bin`, "/usr/local/bin", "/usr/bin", "/bin"])].join(":");
}
