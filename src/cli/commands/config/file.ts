// Gives the commands the configuration file: that of this machine, which a running gateway follows, or that
// of the gateway which --url names. Both use the same checks.

import { createHmac } from "node:crypto";
import { openConfigFile } from "../../../config/editing/editing.ts";
import { loadSettings } from "../../../config.ts";
import type { ConfigChange, ConfigSaved, ConfigText } from "../../../contract/methods/configuration.ts";
import type { PayloadOf } from "../../../contract/methods.ts";
import { readGateways } from "../../../world/gateway-address.ts";
import { configToEdit } from "../../address.ts";
import { type Cli, loadOptionsOf } from "../../cli.ts";
import { type Link, type Reply, withLink } from "../../gateway-link.ts";

interface Wish {
  readonly revision: string;
  readonly dryRun: boolean;
}

export interface ConfigDesk {
  /** True if a running gateway uses the file. */
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
async function localDesk(cli: Cli): Promise<Reply<ConfigDesk>> {
  const { world } = cli.parts;
  const path = await configToEdit(cli);
  if (!path.ok) return path;
  const load = loadOptionsOf(cli);
  const now = loadSettings(load);
  const running = now.ok ? now : loadSettings(load, "");
  if (!running.ok) return running;
  const { settings } = running.value;
  const file = openConfigFile(load, settings);
  const key = world.ids.uuid();
  const sealing = {
    seal: (text: string) => createHmac("sha256", key).update(text).digest("hex"),
    mask: (text: string) => world.redactor.mask(text),
    reachOf: () => [],
  };
  return {
    ok: true,
    value: {
      isRunning: readGateways(settings.store.dir).some(({ config }) => config === path.value),
      read: async () => file.read(sealing),
      draft: async () => file.read(sealing, { secrets: true }),
      settings: async () => ({ ok: true, value: { settings: file.settings() } }),
      patch: async (changes, wish) => file.save(changes, wish, sealing),
      set: async (text, wish) => file.save(text, wish, sealing),
    },
  };
}

/** Runs `work` with the file of this machine, or with that of the gateway which --url names. */
export async function withConfigFile(cli: Cli, work: (desk: ConfigDesk) => Promise<number>): Promise<number> {
  if (cli.options.url !== undefined) return withLink(cli, (link) => work(deskOf(link)));
  const local = await localDesk(cli);
  return local.ok ? work(local.value) : cli.fail(local);
}
