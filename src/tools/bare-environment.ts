// Owns the home folder and the environment of commands that run without a sandbox.
// BE1: the home is in the gateway's state directory and accessible to its owner only. So a sandboxed agent,
//      which can write to the workspace, can't leave a start-up file (.gitconfig, .bashrc, .npmrc,
//      usercustomize.py) in the home.
// BE2: start-up files of a project are disabled if an environment variable can do that. docs/SANDBOX.md
//      lists the start-up files that can't be disabled.

import { join } from "node:path";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { ensureFolder } from "../world/folders.ts";
import { SEARCH_PATH } from "../world/programs.ts";
import type { CallerContext, ReadingContext } from "./tool.ts";

/**
 * Git settings that name a program to run. Values from the environment override those of a repository; only
 * `git -c` overrides them.
 */
const GIT_SETTINGS: readonly (readonly [name: string, value: string])[] = [
  ["core.hooksPath", "/dev/null"],
  ["core.fsmonitor", "false"],
  ["core.pager", "cat"],
  ["core.editor", "false"],
  ["sequence.editor", "false"],
  ["core.sshCommand", "ssh"],
  ["core.askPass", ""],
  ["credential.helper", ""],
  ["commit.gpgSign", "false"],
  ["tag.gpgSign", "false"],
  ["push.gpgSign", "false"],
  ["log.showSignature", "false"],
  ["protocol.ext.allow", "never"],
  ["safe.bareRepository", "explicit"],
];

const NO_STARTUP_FILES: Readonly<Record<string, string>> = {
  GIT_CONFIG_COUNT: String(GIT_SETTINGS.length),
  ...Object.fromEntries(
    GIT_SETTINGS.flatMap(([name, value], index) => [
      [`GIT_CONFIG_KEY_${index}`, name],
      [`GIT_CONFIG_VALUE_${index}`, value],
    ]),
  ),
  GIT_PROXY_COMMAND: "",
  PYTHONNOUSERSITE: "1",
  // npm prefers these values to a project's .npmrc. An empty option is written as a blank, because npm
  // ignores empty values and trims blanks.
  npm_config_script_shell: "/bin/sh",
  npm_config_shell: "/bin/sh",
  npm_config_node_options: " ",
  npm_config_git: "git",
  npm_config_editor: "false",
  YARN_IGNORE_PATH: "1",
};

/**
 * Returns the full environment of a command without a sandbox. Creates the command's home folder if it is
 * missing.
 */
export async function bareEnvironment(
  ctx: Pick<CallerContext, "agent"> & Pick<ReadingContext, "settings">,
): Promise<Result<Record<string, string>>> {
  const home = join(ctx.settings.store.dir, "homes", ctx.agent.id);
  const temporary = join(home, "tmp");
  try {
    await ensureFolder(temporary);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return fail(
      "exec_failed",
      `can't create the home directory for the agent's commands, ${home}: ${reason}`,
    );
  }
  return ok({
    PATH: ctx.settings.tools.exec.searchPath ?? SEARCH_PATH,
    HOME: home,
    LANG: "C.UTF-8",
    TERM: "dumb",
    TMPDIR: temporary,
    ...NO_STARTUP_FILES,
  });
}
