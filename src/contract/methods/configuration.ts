// Defines the methods for the configuration file: check, read, write, and the list of settings.

import { about, anything, flag, integer, list, mapOf, named, type Of, object, text } from "../schema.ts";
import { ADMIN, idempotencyKey, type MethodSpec, NAME_MAX_CHARS, NOTHING } from "./parts.ts";

/** Maximum number of characters of an edited configuration file. */
const CONFIG_MAX_CHARS = 128 * 1024;

/** Maximum number of changes in one call. */
const CHANGES_MAX = 100;
const PATH_MAX_CHARS = 1_000;

export const CONFIG_AGE = {
  ok: flag(),
  differs: flag("True if a restart would apply settings of the file. False if the file is invalid."),
  changed: list(
    text(),
    "Sections that differ from the settings in effect, without values. New runs use them within seconds.",
  ),
  restart: list(text(), "Settings among them that only a restart applies."),
} as const;

const reach = list(
  text(),
  "Effects of a restart on how this caller reaches the gateway: another token, address or store.",
);

const CONFIG_CHECK = named(
  "ConfigCheck",
  "Result of checking the configuration file and comparing it with the running settings.",
  object(
    {
      path: text(),
      exists: flag(),
      ...CONFIG_AGE,
      errors: list(text()),
      warnings: list(text()),
      settings: about(
        mapOf(anything),
        "All effective settings. A secret is only shown as set or not. Empty if a text was checked.",
      ),
    },
    { reach },
  ),
);
export type ConfigCheck = Of<typeof CONFIG_CHECK>;

const CONFIG_TEXT = named(
  "ConfigText",
  "The text of the configuration file.",
  object({
    path: text(),
    exists: flag("False if there is no file. In this case `text` is a text to begin with."),
    text: text("Each secret is replaced by text like `[hidden 0123456789]`. Lines end with a line feed."),
    revision: text("Changes whenever the file changes. `config.set` needs it."),
    hidden: integer("Number of different secrets that are hidden."),
  }),
);

export type ConfigText = Of<typeof CONFIG_TEXT>;

const CONFIG_SAVED = named(
  "ConfigSaved",
  "Result of an edit of the configuration file.",
  object({
    path: text(),
    saved: flag("True if the file now has the edited text. False after a dry run."),
    revision: text("Revision of the file."),
    diff: list(text(), "Changed lines as a unified diff, without secrets. At most 2000 lines."),
    errors: list(text(), "Problems that a dry run found. Always empty if the file was saved."),
    changed: CONFIG_AGE.changed,
    restart: CONFIG_AGE.restart,
    warnings: list(text()),
    reach,
  }),
);

export type ConfigSaved = Of<typeof CONFIG_SAVED>;

const SETTING = named(
  "ConfigSetting",
  "A setting of the configuration file.",
  object(
    {
      path: text(
        "Names joined by dots. `[]` stands for the items of a list, `<name>` for a name of your own.",
      ),
      type: text("The type with its limits, or the valid words in backticks."),
      required: flag("True if the setting is required in the object that contains it."),
      meaning: text("Description. Empty if the name of the setting says everything."),
    },
    { unit: text(), fallback: text("The default, as JSON or with its unit.") },
  ),
);

const edited = text(
  "The whole text. Text like `[hidden 0123456789]` stands for the secret that `config.get` replaced by it.",
  { maxLength: CONFIG_MAX_CHARS },
);

const edits = {
  revision: text(
    "`revision` of the file that was edited. If the file has changed since, it is not replaced.",
    {
      maxLength: NAME_MAX_CHARS,
    },
  ),
};
const wishes = {
  idempotencyKey,
  dryRun: flag("If true, returns the diff and the problems, and writes nothing. Default false."),
};

const CHANGE = named(
  "ConfigChange",
  "A change of one setting. Give either `value` or `unset`.",
  object(
    {
      path: text(
        "Path of the setting, like `agents.list.research.model` or `agents.list[0].model`. " +
          'Quote other names: `["a.b"]`.',
        { maxLength: PATH_MAX_CHARS },
      ),
    },
    {
      value: about(
        anything,
        "The new value. In a list, the position after the last item, or a new id, adds an item.",
      ),
      unset: flag("If true, removes the setting, so that it has its default."),
    },
  ),
);

export type ConfigChange = Of<typeof CHANGE>;

export const CONFIG_METHODS = {
  "config.check": {
    scope: ADMIN,
    everySession: true,
    summary:
      "Checks the configuration file: returns its problems, and what differs from the settings in effect.",
    params: object(
      {},
      { text: about(edited, "Checks this text instead of the file, in the same way as `config.set`.") },
    ),
    result: CONFIG_CHECK,
    errors: ["invalid_config", "file_problem", "too_large"],
  },
  "config.get": {
    scope: ADMIN,
    everySession: true,
    summary: `Returns the text of the configuration file without its secrets.`,
    params: NOTHING,
    result: CONFIG_TEXT,
    errors: ["invalid_config", "file_problem", "too_large"],
  },
  "config.set": {
    scope: ADMIN,
    everySession: true,
    outlivesToken: true,
    summary: `Replaces the configuration file, if the text is valid. Takes effect within seconds.`,
    params: object({ text: edited, ...edits }, wishes),
    result: CONFIG_SAVED,
    errors: ["invalid_config", "config_changed", "file_problem", "too_large"],
  },
  "config.patch": {
    scope: ADMIN,
    everySession: true,
    outlivesToken: true,
    summary: `Changes settings in the configuration file and keeps its comments.`,
    params: object(
      { changes: list(CHANGE, "Applied in this order.", { maxItems: CHANGES_MAX }), ...edits },
      wishes,
    ),
    result: CONFIG_SAVED,
    errors: ["invalid_argument", "invalid_config", "config_changed", "file_problem", "too_large"],
  },
  "config.schema": {
    scope: ADMIN,
    everySession: true,
    summary: "Lists every setting of the configuration file with its type, default and meaning.",
    params: NOTHING,
    result: object({ settings: list(SETTING) }),
    errors: ["invalid_config"],
  },
} as const satisfies Record<string, MethodSpec>;
