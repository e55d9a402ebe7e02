// Helpers for tests of chat commands: a real engine with sub-agents, and a person whose command runs in a
// transaction.

import { expect } from "vitest";
import type { CommandRequest } from "../../../src/channels/commands/context.ts";
import { performCommand } from "../../../src/channels/commands.ts";
import { type CommandCall, parseCommand } from "../../../src/core/rules/command.ts";
import { fail, ok } from "../../../src/core/shapes/errors.ts";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import { getRun } from "../../../src/store/queries/runs/runs.ts";
import { insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import { sessionRow } from "../../kit/engine/engine.ts";
import { openSpawnApp, type SpawnApp, type SpawnPlay } from "../../kit/engine/spawn-app.ts";
import { settingsWith } from "../../tools/app.ts";

export const MAIN = "agent:main:main";
export const GROUP = "agent:main:telegram:group:-100";

interface Who {
  readonly id?: string;
  readonly isOwner?: boolean;
  readonly chatType?: CommandRequest["chatType"];
  readonly sessionKey?: string;
}

export interface Stage extends SpawnApp {
  readonly settings: Settings;
  /** Gives a command and returns its answer. */
  give(line: string, who?: Who): Promise<string>;
  /** Sends a message as a person. The run executes (`held`), or is only accepted. */
  says(sender: string, text: string, sessionKey?: string): Promise<string>;
}

function callOf(line: string): CommandCall {
  const call = parseCommand(line, { isOurs: () => false, fromMenu: true });
  if (call === undefined) throw new Error(`${line} is no command`);
  return call;
}

export function requestOf(line: string, who: Who): CommandRequest {
  const { id = "7", isOwner = false, chatType = "direct", sessionKey = MAIN } = who;
  return {
    ...callOf(line),
    sender: { channel: "telegram", id, isOwner },
    ...{ chatType, sessionKey, accountId: "default" },
    route: { channel: "telegram", to: chatType === "direct" ? id : "-100", accountId: "default" },
  };
}

export async function open(
  options: { play?: SpawnPlay; settings?: Parameters<typeof settingsWith>[0] } = {},
): Promise<Stage> {
  const settings = settingsWith({ tools: { visibility: "tree" }, ...options.settings });
  const app = await openSpawnApp({ settings, play: options.play ?? (({ input }) => `echo ${input}`) });
  await app.store.transaction((tx) => insertSession(tx, sessionRow(GROUP, { kind: "group" })));
  const parts = {
    engine: app.engine,
    settings,
    checkModel: (name: string) =>
      name === "offline/rehearsal"
        ? ok(name)
        : fail("invalid_model", `unknown model "${name}"; valid: offline/rehearsal`),
  };
  return {
    ...app,
    settings,
    give: async (line, who = {}) => {
      const { text } = await app.engine.commit((unit) => performCommand(parts, unit, requestOf(line, who)));
      return text;
    },
    async says(sender, text, sessionKey = MAIN) {
      const accepted = await app.engine.accept({ sessionKey, input: { text, sender } });
      if (!accepted.ok) throw new Error(accepted.error);
      return accepted.value.run.runId;
    },
  };
}

/** A turn that runs until it is stopped. */
export const held: SpawnPlay = ({ handle: { signal } }) =>
  new Promise((_, reject) => {
    const end = (): void => reject(new Error("stopped"));
    if (signal.aborted) end();
    signal.addEventListener("abort", end, { once: true });
  });

export const stateOf = async ({ store }: Stage, runId: string) => (await getRun(store.db, runId))?.state;
export const running = (stage: Stage, runId: string) =>
  expect.poll(() => stateOf(stage, runId)).toBe("running");
