// Shows the permission requests of a session and of the sessions that it spawned, and answers them.
// AP1: one request is shown at a time, and an answer is valid only for it, if the user began to type
//      after it was shown, and not at once: so a "y" that was meant for the agent or for another request,
//      or a second key press, never allows an action.

import type { ParamsOf } from "../../contract/methods.ts";
import type { PermissionQuestion } from "../../core/shapes/permission.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { Cli } from "../cli.ts";
import type { Link, Reply } from "../gateway-link.ts";
import { wholeText } from "../layout.ts";
import type { Typed } from "./screen.ts";

/** Maximum number of ancestors that are read to find out whether a session belongs to another one. */
const DEPTH_MAX = 8;

/** Longer than the time between two hasty key presses. */
const SETTLE_MS = 1_000;

type Answer = Omit<ParamsOf<"permissions.answer">, "id" | "idempotencyKey">;

const ANSWERS: ReadonlyMap<string, Answer> = new Map([
  ["y", { decision: "allow" }],
  ["yes", { decision: "allow" }],
  ["n", { decision: "deny" }],
  ["no", { decision: "deny" }],
]);

interface Shown {
  readonly question: PermissionQuestion;
  readonly shownAt: number;
}

export class Approvals {
  readonly #link: Link;
  readonly #sessionKey: string;
  /** The request that is shown. */
  #shown: Shown | undefined;
  readonly #inTree = new Map<string, boolean>();

  constructor(link: Link, sessionKey: string) {
    this.#link = link;
    this.#sessionKey = sessionKey;
  }

  /** Reads the open requests. Resolves with undefined if the gateway did not answer. */
  async open(): Promise<readonly PermissionQuestion[] | undefined> {
    const listed = await this.#link.request("permissions.list", {});
    if (!listed.ok) return undefined;
    const { permissions } = listed.value;
    const mine = await Promise.all(permissions.map(({ sessionKey }) => this.#belongs(sessionKey)));
    return permissions.filter((_, at) => mine[at]);
  }

  /** Reads the open requests. Returns the next one if it has to be shown now. */
  async read(nowMs: number): Promise<PermissionQuestion | undefined> {
    const open = await this.open();
    if (open === undefined) return undefined;
    if (open.some(({ id }) => id === this.#shown?.question.id)) return undefined;
    const [question] = open;
    this.#shown = question && { question, shownAt: nowMs };
    return question;
  }

  /**
   * Returns the answer that a typed text gives to the request, or undefined if it is a message. `hasty`: it
   * may have been meant for the request before.
   */
  answerOf({ text, begunAt }: Typed): Answer | "hasty" | undefined {
    if (this.#shown === undefined || begunAt < this.#shown.shownAt) return undefined;
    const answer = ANSWERS.get(text.toLowerCase());
    return answer !== undefined && begunAt < this.#shown.shownAt + SETTLE_MS ? "hasty" : answer;
  }

  async answer(answer: Answer): Promise<Reply<unknown>> {
    const id = this.#shown?.question.id ?? "";
    this.#shown = undefined;
    return this.#link.request("permissions.answer", { id, ...answer });
  }

  async #belongs(sessionKey: string): Promise<boolean> {
    const known = this.#inTree.get(sessionKey) ?? (await this.#descends(sessionKey));
    if (known !== undefined) this.#inTree.set(sessionKey, known);
    return known ?? false;
  }

  /** Resolves with undefined if the gateway did not answer. */
  async #descends(from: string): Promise<boolean | undefined> {
    let key: string | undefined = from;
    for (let depth = 0; depth < DEPTH_MAX && key !== undefined; depth++) {
      if (key === this.#sessionKey) return true;
      const listed: Reply<{ sessions: readonly { spawnedBy?: string }[] }> = await this.#link.request(
        "sessions.list",
        { keys: [key], includeArchived: true },
      );
      if (!listed.ok) return undefined;
      key = listed.value.sessions[0]?.spawnedBy;
    }
    return false;
  }
}

/**
 * For a command that waits for a run: prints a note on standard error for each open permission request of a
 * session and its sub-agents. Returns the function that ends this.
 */
export function noteApprovals(cli: Cli, link: Link, sessionKey: string): () => void {
  const approvals = new Approvals(link, sessionKey);
  const read = async (): Promise<void> => {
    const question = await approvals.read(0);
    if (question === undefined) return;
    cli.note(`Agent ${safeLine(question.agentId)} asks for permission: ${wholeText(question.title, "  ")}`);
    const { id } = question;
    cli.note(safeLine(`Answer with: npx parley-gateway permissions allow ${id}   (or: deny ${id})`));
  };
  return link.client.on("attention", () => void read());
}
