// Shows the model and the thinking level of a session to an editor, and lets the editor change them.
// The thinking levels are also offered as modes, because some editors show only modes. An agent that runs as
// an external program chooses its own model and level, so no choices are offered for it.

import type {
  SessionConfigOption,
  SessionModeState,
  SetSessionConfigOptionRequest,
} from "@agentclientprotocol/sdk/unstable";
import type { Link, Reply } from "../../../cli/gateway-link.ts";
import type { RequestParams } from "../../../contract/client/types.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { THINKING_LEVELS } from "../../../core/shapes/settings/settings.ts";
import { quoted } from "../../../core/text/cut.ts";

/** The options of one session, as `session/new` and `session/load` return them. */
export interface Choices {
  readonly configOptions?: SessionConfigOption[];
  readonly modes?: SessionModeState;
}

type Change = Pick<RequestParams<"sessions.patch">, "model" | "thinkingLevel">;

/** The provider name in the model of an agent that runs as an external program. */
const PROGRAM = "acp";
const MODEL = "model";
const THINKING = "thinking";

/** Reads the options of a session from the gateway. */
export async function readChoices(link: Link, key: string): Promise<Reply<Choices>> {
  const listed = await link.request("sessions.list", { keys: [key], includeArchived: true });
  if (!listed.ok) return listed;
  const [row] = listed.value.sessions;
  if (row === undefined || row.modelProvider === PROGRAM) return ok({});
  const page = await link.request("chat.history", { sessionKey: key, limit: 1 });
  if (!page.ok) return page;
  const known = await link.request("models.list", {});
  if (!known.ok) return known;
  const nameChoice = (value: string) => ({ value, name: value });
  const current = `${row.modelProvider}/${row.model}`;
  const models = known.value.models.map(({ provider, id }) => `${provider}/${id}`);
  const { thinkingLevel } = page.value;
  const select = (id: string, name: string, category: string, value: string, all: readonly string[]) =>
    ({ type: "select", id, name, category, currentValue: value, options: all.map(nameChoice) }) as const;
  const all = models.includes(current) ? models : [current, ...models];
  const configOptions = [
    select(MODEL, "Model", "model", current, all),
    select(THINKING, "Thinking", "thought_level", thinkingLevel, THINKING_LEVELS),
  ];
  const availableModes = THINKING_LEVELS.map((id) => ({ id, name: `Thinking: ${id}` }));
  return ok({ configOptions, modes: { currentModeId: thinkingLevel, availableModes } });
}

/** Converts an editor's request to change an option into a change of the session's settings. */
export function changeOf({ configId, value }: SetSessionConfigOptionRequest): Result<Change> {
  if (typeof value !== "string") return fail("invalid_argument", `${quoted(configId, 40)} must be a string`);
  if (configId === MODEL) return ok({ model: value });
  if (configId === THINKING) return ok({ thinkingLevel: value });
  const text = `unknown option ${quoted(configId, 40)}; valid options: ${MODEL}, ${THINKING}`;
  return fail("invalid_argument", text);
}
