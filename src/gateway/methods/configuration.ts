// Implements the methods for the configuration file. They need a token that covers every session, because the
// file is about all of them (I9). Secrets are hidden in every answer (I14).

import { createHmac } from "node:crypto";
import { reachChanges } from "../../access/reach.ts";
import type { EditorParts, openConfigFile } from "../../config/editing/editing.ts";
import type {
  CONFIG_METHODS,
  ConfigChange,
  ConfigCheck,
  ConfigSaved,
} from "../../contract/methods/configuration.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { tokenId } from "../../triggers/creator.ts";
import type { BasicDeps, CallContext, Methods } from "../call.ts";

type ConfigFile = ReturnType<typeof openConfigFile>;

export interface ConfigDeps extends BasicDeps {
  /** The gateway's own token. */
  readonly token: string;
  /** Reads the configuration file again. Absent if there is no file. */
  readonly checkConfig?: (() => ConfigCheck & { readonly next?: Settings }) | undefined;
  /** Applies the file as it is now. Absent if changes apply at the next start. */
  readonly applyConfig?: (() => void) | undefined;
  /** Loads the code that edits the file. Absent if there is no file. */
  readonly configFile?: (() => Promise<ConfigFile>) | undefined;
}

function partsOf(ctx: CallContext<ConfigDeps>): EditorParts {
  const { token, world } = ctx.deps;
  return {
    seal: (text) => createHmac("sha256", token).update(`config:${text}`).digest("hex"),
    mask: (text) => world.redactor.mask(text),
    reachOf: (next) => reachOf(ctx, next),
  };
}

/** Returns how this caller's connection would change after a restart with these settings. */
function reachOf({ deps, caller }: CallContext<ConfigDeps>, next: Settings): string[] {
  const { settings, token } = deps;
  // A generated token is stored with the store, so it changes with the store.
  const generated = settings.gateway.token === undefined && settings.store.dir === next.store.dir;
  const main = next.gateway.token ?? (generated ? token : undefined);
  const own = main !== undefined && tokenId(main) === caller.id;
  const admin = { role: "operator", scopes: ["operator.admin"] } as const;
  const listed = next.gateway.tokens.find((one) => tokenId(one.token) === caller.id);
  // A caller with an access token cannot change the file, only check a text. So its rights are not compared
  // with it.
  const entry = caller.accessToken === undefined ? (own ? admin : listed) : caller;
  return reachChanges(settings, next, { now: caller, next: entry });
}

async function editor({ deps }: CallContext<ConfigDeps>): Promise<Result<ConfigFile>> {
  const file = await deps.configFile?.();
  return file === undefined ? noFile : ok(file);
}

const noFile = fail("invalid_config", "this gateway was started without a configuration file");

/** Returns the settings as they would be after these changes of the file. Writes nothing. */
export async function settingsAfter(
  ctx: CallContext<ConfigDeps>,
  changes: readonly ConfigChange[],
): Promise<Result<Settings>> {
  const file = await editor(ctx);
  return file.ok ? file.value.settingsAfter(changes, partsOf(ctx)) : file;
}

/** Checks a text as if it were the file. */
async function checkText(ctx: CallContext<ConfigDeps>, text: string): Promise<Result<ConfigCheck>> {
  const file = await editor(ctx);
  return file.ok ? file.value.check(text, partsOf(ctx)) : file;
}

function checkFile(ctx: CallContext<ConfigDeps>): Result<ConfigCheck> {
  const { checkConfig } = ctx.deps;
  if (checkConfig === undefined) return noFile;
  const { next, ...found } = checkConfig();
  return ok({ ...found, ...optional({ reach: next && reachOf(ctx, next) }) });
}

/** Saves an edit, or only checks it. */
async function save(
  ctx: CallContext<ConfigDeps>,
  edit: string | readonly ConfigChange[],
  { revision, dryRun = false }: { readonly revision: string; readonly dryRun?: boolean },
): Promise<Result<ConfigSaved>> {
  const file = await editor(ctx);
  if (!file.ok) return file;
  const saved = file.value.save(edit, { revision, dryRun }, partsOf(ctx));
  if (!saved.ok) return saved;
  const { log, redactor } = ctx.deps.world;
  if (saved.value.saved) {
    log.info({ what: saved.value.changed.join(", ") }, "the configuration file was saved");
    // So the next request of the caller reads the new settings.
    ctx.deps.applyConfig?.();
  }
  // The diff has hidden secrets, as in the answer of `config.get`, so that a client can send them back.
  const { diff, ...rest } = saved.value;
  return ok({ ...redactor.all(rest), diff });
}

export const configMethods: Methods<keyof typeof CONFIG_METHODS, ConfigDeps> = {
  "config.check": {
    async handle(ctx, { text }) {
      const found = text === undefined ? checkFile(ctx) : await checkText(ctx, text);
      // Redacts all values, because a file may have a secret in an unexpected field.
      return found.ok ? ok(ctx.deps.world.redactor.all(found.value)) : found;
    },
  },
  "config.get": {
    async handle(ctx) {
      const file = await editor(ctx);
      return file.ok ? file.value.read(partsOf(ctx)) : file;
    },
  },
  "config.set": {
    handle: (ctx, { text, ...wish }) => save(ctx, text, wish),
  },
  "config.patch": {
    handle: (ctx, { changes, ...wish }) => save(ctx, changes, wish),
  },
  "config.schema": {
    async handle(ctx) {
      const file = await editor(ctx);
      return file.ok ? ok({ settings: file.value.settings() }) : file;
    },
  },
};
