// The shape of a program that runs on this machine outside of every sandbox, and of its end.

/** A program, run without a shell and with exactly the given environment. */
export interface HostProgram {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly outputMaxBytes: number;
  /** Time after which the program and its child processes are killed. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface HostProgramEnd {
  /** `ended` if the program exited by itself, otherwise the limit that stopped it, or `aborted`. */
  readonly ending: string;
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** Start and end of its standard output. */
  readonly stdout: string;
  readonly stdoutBytes: number;
  readonly truncated: boolean;
  /** Start of its standard error. */
  readonly stderr: string;
}
