// Gives the commands the configuration file: through the running gateway, or directly if none runs. Both use
// the same checks.

import { createHmac } from "node:crypto";
import { realpath } from "node:fs/promises";
import { openConfigFile } from "../../../config/editing/editing.ts";
import { configPathOf, loadSettings, namedConfig } from "../../../config.ts";
import type { ConfigChange, ConfigSaved, ConfigText } from "../../../contract/methods/configuration.ts";
import type { PayloadOf } from "../../../contract/methods.ts";
import { findAddress } from "../../address.ts";
import { type Cli, loadOptionsOf } from "../../cli.ts";
import { type Link, openLink, type Reply } from "../../gateway-link.ts";

interface Wish {
  readonly revision: string;
  readonly dryRun: boolean;
}

export interface ConfigDesk {
  /** True if a running gateway reads and writes the file. */
  readonly isRunning: boolean;
  read(): Promise<Reply<ConfigText>>;
  /** Returns the text to edit: without secrets from a gateway, as it is from a file of this machine. */
  draft(): Promise<Reply<Pick<ConfigText, "text" | "revision">>>;
  settings(): Promise<Reply<PayloadOf<"config.schema">>>;
  patch(changes: readonly ConfigChange[], wish: Wish): Promise<Reply<ConfigSaved>>;
  set(text: string, wish: Wish): Promise<Reply<ConfigSaved>>;
}

function deskOf(link: Link): ConfigDesk {
  return {
    isRunning: true,
    read: () => link.request("config.get", {}),
    draft: () => link.request("config.get", {}),
    settings: () => link.request("config.schema", {}),
    patch: (changes, wish) => link.request("config.patch", { changes, ...wish }),
    set: (text, wish) => link.request("config.set", { text, ...wish }),
  };
}

/** Edits the file of this machine. */
function localDesk(cli: Cli): Reply<ConfigDesk> {
  const { world } = cli.parts;
  const load = loadOptionsOf(cli);
  const now = loadSettings(load);
  const running = now.ok ? now : loadSettings(load, "");
  if (!running.ok) return running;
  const file = openConfigFile(load, running.value.settings);
  const key = world.ids.uuid();
  const sealing = {
    seal: (text: string) => createHmac("sha256", key).update(text).digest("hex"),
    mask: (text: string) => world.redactor.mask(text),
    reachOf: () => [],
  };
  return {
    ok: true,
    value: {
      isRunning: false,
      read: async () => file.read(sealing),
      draft: async () => file.read(sealing, { secrets: true }),
      settings: async () => ({ ok: true, value: { settings: file.settings() } }),
      patch: async (changes, wish) => file.save(changes, wish, sealing),
      set: async (text, wish) => file.save(text, wish, sealing),
    },
  };
}

/** Returns whether the user named a file that is not the one of this gateway. */
async function isOtherFile(cli: Cli, link: Link): Promise<boolean> {
  const load = loadOptionsOf(cli);
  if (namedConfig(load) === undefined || cli.options.url !== undefined) return false;
  const its = await link.request("config.get", {});
  const wholeOf = (path: string) => realpath(path).catch(() => path);
  return its.ok && (await wholeOf(configPathOf(load))) !== (await wholeOf(its.value.path));
}

/**
 * Runs `work` with the file: that of the gateway that answers, unless the user named another one. A gateway
 * that was named with --url must be reachable.
 */
export async function withConfigFile(cli: Cli, work: (desk: ConfigDesk) => Promise<number>): Promise<number> {
  const address = await findAddress(cli);
  const isNamed = cli.options.url !== undefined;
  if (!address.ok && isNamed) return cli.fail(address);
  const opened = address.ok
    ? await openLink(address.value, { reconnect: false, world: cli.parts.world })
    : undefined;
  if (opened?.ok === true) {
    try {
      if (!(await isOtherFile(cli, opened.value))) return await work(deskOf(opened.value));
    } finally {
      opened.value.client.close();
    }
  }
  if (opened?.ok === false && (isNamed || opened.code !== "UNREACHABLE")) return cli.fail(opened);
  const local = localDesk(cli);
  return local.ok ? work(local.value) : cli.fail(local);
}
