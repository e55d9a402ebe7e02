// A new home folder with a configuration file for every test.

import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect } from "vitest";
import { type Loaded, type LoadOptions, loadSettings } from "../../../src/config.ts";
import type { Result } from "../../../src/core/shapes/errors.ts";

export interface ConfigHome {
  readonly home: string;
  readonly defaultPath: string;
  /** Writes a configuration file, by default the file in the home folder. */
  write(text: string, path?: string, mode?: number): void;
  /** Loads the configuration. `text` is written to the default file first. */
  load(text?: string, more?: Partial<LoadOptions>): Result<Loaded>;
  /** Loads a configuration that must be valid. */
  good(text?: string, more?: Partial<LoadOptions>): Loaded;
  /** Returns the error lines of an invalid file. */
  problems(text: string, more?: Partial<LoadOptions>): string[];
}

function makeHome(home: string): ConfigHome {
  const defaultPath = join(home, ".parley/parley.json5");
  const write: ConfigHome["write"] = (text, path = defaultPath, mode = 0o600) => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    chmodSync(path, mode);
  };
  const load: ConfigHome["load"] = (text, more = {}) => {
    if (text !== undefined) write(text);
    return loadSettings({ env: {}, home, ...more });
  };
  return {
    home,
    defaultPath,
    write,
    load,
    good: (text, more) => {
      const loaded = load(text, more);
      if (!loaded.ok) throw new Error(loaded.error);
      return loaded.value;
    },
    problems: (text, more) => {
      const loaded = load(text, more);
      if (loaded.ok) throw new Error("no problem found");
      expect(loaded.code).toBe("invalid_config");
      const lines = loaded.details?.problems;
      return Array.isArray(lines) ? lines : [loaded.error.replaceAll(home, "HOME")];
    },
  };
}

/** Makes a home folder for each test of the calling file. The returned function returns the current home. */
export function useConfigHome(): () => ConfigHome {
  let current: ConfigHome | undefined;
  beforeEach(() => {
    current = makeHome(mkdtempSync(join(tmpdir(), "parley-config-")));
  });
  afterEach(() => rmSync(current?.home ?? "", { recursive: true, force: true }));
  return () => {
    if (current === undefined) throw new Error("only inside a test");
    return current;
  };
}
