// A chat platform on which an agent asks its owner: a whole gateway, the real channel, and a fake platform with
// the real wire format. Ada is an owner. Bob may write on each platform, but is not an owner.

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { type App, openApp } from "../../src/app.ts";
import type { ChannelAccount } from "../../src/core/shapes/settings/channels.ts";
import type { Settings } from "../../src/core/shapes/settings/settings.ts";
import { listRules } from "../../src/store/queries/permission-rules.ts";
import { cleanup, quietWorld, temporaryFolder } from "../kit/engine/engine.ts";
import { until } from "../kit/until.ts";
import { agentSettings, settingsWith } from "../tools/app.ts";

export const MAIN = "agent:main:main";
const FILE = "approved.txt";
export const COMMAND = `echo done > ${FILE}`;

/** A fake platform on which Ada, an owner, and Bob each have a direct chat with the agent. */
export interface Place {
  readonly account: ChannelAccount;
  /** Ada and Bob, with their ids on the platform. */
  readonly ids: { readonly ada: string; readonly bob: string };
  /** How far the gateway's clock is ahead of the real one. Absent: it is not. */
  aheadMs?(): number;
  /** True when the platform can deliver messages to the gateway. */
  isReady(): boolean;
  /** Sends a person's message. `port`: the port of the gateway. */
  says(id: string, text: string, port: number): unknown;
  /** Returns the texts that a person has received, in order, without markup. */
  seenBy(id: string): string[];
  /** Absent if the platform has no buttons. */
  readonly buttons?: Buttons;
  /** Messages of Ada to the agent that quote or forward a text. */
  readonly passedOn: readonly PassedOn[];
}

export interface PassedOn {
  readonly what: string;
  /** Source of the text of others in it. Absent: Ada or the agent wrote everything. */
  readonly source?: string;
  /** True if a file comes with it. */
  readonly hasFile?: boolean;
  says(port: number): unknown;
}

/** A text of the agent with its buttons. */
export interface Shown {
  readonly id: string;
  readonly text: string;
  /** For each button, its label and the command for which it stands. */
  readonly buttons: readonly (readonly [label: string, command: string])[];
}

interface Buttons {
  /** Returns the texts in Ada's chat. */
  shown(): Shown[];
  /**
   * Presses a button, with this command. Returns a function that returns the notice that only this person
   * sees: empty if there is none, undefined until the press was answered. `isHasty`: presses at once.
   */
  press(who: "ada" | "bob", text: Shown, command: string, isHasty?: boolean): () => string | undefined;
}

/** Starts a gateway at this place. Its agent asks an owner before it runs a command. */
export async function open(place: Place) {
  const dir = temporaryFolder();
  const workspace = join(dir, "workspace");
  mkdirSync(workspace, { recursive: true });
  const { exec } = settingsWith().tools;
  const base = settingsWith({
    agents: [agentSettings("main", { workspace })],
    channels: [place.account],
    owners: [`${place.account.channel}:${place.ids.ada}`],
    tools: { exec: { ...exec, approval: "always" } },
  });
  const settings: Settings = { ...base, store: { dir, durability: "normal" } };
  const quiet = quietWorld();
  const now = (): number => quiet.clock.now() + (place.aheadMs?.() ?? 0);
  const world = { ...quiet, clock: { ...quiet.clock, now } };
  const opened = await openApp({ settings, world, version: "0.0.0-test", environment: {} });
  if (!opened.ok) throw new Error(opened.error);
  const app: App = opened.value;
  cleanup(() => app.close(0));
  await expect.poll(place.isReady, { timeout: 20_000 }).toBe(true);
  return {
    app,
    workspace,
    hasRun: () => existsSync(join(workspace, FILE)),
    says: async (who: "ada" | "bob", text: string) => place.says(place.ids[who], text, app.port),
    seenBy: (who: "ada" | "bob") => place.seenBy(place.ids[who]),
    buttons: place.buttons,
    passedOn: place.passedOn,
    runs: () => app.store.db.selectFrom("runs").select(["state", "reply", "session_key"]).execute(),
  };
}

export type Stage = Awaited<ReturnType<typeof open>>;

/** Returns the first match in the texts that Ada has received. */
export const toldAda = (stage: Stage, pattern: RegExp): Promise<string> =>
  until(() => stage.seenBy("ada").flatMap((text) => pattern.exec(text)?.[1] ?? [])[0]);

/** Starts a gateway whose agent asks Ada for a command, and returns what reads and presses the buttons. */
export async function openAsking(openPlace: () => Promise<Place>) {
  const stage = await open(await openPlace());
  const { buttons } = stage;
  if (buttons === undefined) throw new Error("no buttons");
  await stage.says("ada", `run: ${COMMAND}`);
  const asked = await until(() => buttons.shown().find((one) => one.buttons.length > 0));
  const now = () => buttons.shown().find(({ id }) => id === asked.id) ?? asked;
  const labels = (): string[] => now().buttons.map(([label]) => label);
  const commandOf = (label: string): string => now().buttons.find(([one]) => one === label)?.[1] ?? "";
  /** Presses the button with this label, and returns the notice that only the person sees. */
  const press = async (who: "ada" | "bob", command: string, isHasty = false): Promise<string> => {
    const notice = buttons.press(who, now(), command, isHasty);
    await expect.poll(notice, { timeout: 10_000 }).toBeDefined();
    return notice() ?? "";
  };
  return { ...stage, now, labels, commandOf, press, rules: () => listRules(stage.app.store.db) };
}
