// The configuration file that `parley init` writes, with comments.

import { chmodSync, constants, copyFileSync, existsSync } from "node:fs";
import { dirname } from "node:path";
import { replaceFile } from "../../config/replace-file.ts";
import { OFFLINE_MODEL } from "../../core/shapes/settings/settings.ts";
import { ensureFolder } from "../../world/folders.ts";

const OWNER_ONLY = 0o600;

/** The model that the user chose, with the settings of its provider. */
export interface ChosenModel {
  readonly provider: string;
  readonly model: string;
  /** `${NAME}` of an environment variable, or the key. Absent if the server needs none. */
  readonly apiKey?: string;
  readonly baseUrl?: string;
  /** Models to list. Empty: the predefined models of the provider. */
  readonly models: readonly string[];
  /** Whether the provider is not predefined and speaks the OpenAI API. */
  readonly isServer: boolean;
}

const HEAD = `// Settings of Parley, written by "npx parley-gateway init". Every other setting has a default.
// "parley config check" checks this file, and "parley doctor" the whole installation.
`;

/** Returns a string for the file. A server may list any id, so none refers to an environment variable. */
const literal = (text: string): string => JSON.stringify(text.replaceAll("${", () => "$${"));

function providerLines({ provider, apiKey, baseUrl, models, isServer }: ChosenModel): string[] {
  const lines: string[] = [];
  if (isServer) lines.push(`api: "openai-completions",`);
  if (baseUrl !== undefined) lines.push(`baseUrl: ${JSON.stringify(baseUrl)},`);
  if (apiKey !== undefined) {
    const isVariable = apiKey.startsWith("${");
    lines.push(isVariable ? "// Read from the environment at each start." : "// Keep this file private.");
    lines.push(`apiKey: ${JSON.stringify(apiKey)},`);
  }
  if (models.length > 0) {
    if (isServer) lines.push("// Add contextWindow (tokens) to a model if it is not 128000.");
    lines.push("models: [", ...models.map((id) => `  { id: ${literal(id)} },`), "],");
  }
  return [`${JSON.stringify(provider)}: {`, ...lines.map((line) => `  ${line}`), "},"];
}

const indentText = (lines: readonly string[], by: number): string =>
  lines.map((line) => `${" ".repeat(by)}${line}\n`).join("");

export const modelRef = (chosen: ChosenModel | undefined): string =>
  chosen === undefined ? OFFLINE_MODEL : `${chosen.provider}/${chosen.model}`;

/** Returns the text of the file. `chosen`: absent for the offline model. */
export function fileText(chosen: ChosenModel | undefined): string {
  const models =
    chosen === undefined
      ? ""
      : `  models: {\n    providers: {\n${indentText(providerLines(chosen), 6)}    },\n  },\n`;
  const model = `      model: ${literal(modelRef(chosen))},\n`;
  const words = `      // The model of every agent. "npx parley-gateway models" lists the others.\n`;
  return `${HEAD}{\n${models}  agents: {\n    defaults: {\n${words}${model}    },\n  },\n}\n`;
}

/** Copies a file to a new name beside it, and returns that name. */
function keepCopy(path: string): string {
  for (let at = 1; ; at += 1) {
    const copy = `${path}.old${at === 1 ? "" : `-${at}`}`;
    if (existsSync(copy)) continue;
    copyFileSync(path, copy, constants.COPYFILE_EXCL);
    return copy;
  }
}

/** Writes the file so that only its owner can read it. Returns the copy of an earlier file. */
export async function writeFile(path: string, text: string): Promise<string | undefined> {
  await ensureFolder(dirname(path));
  const copy = existsSync(path) ? keepCopy(path) : undefined;
  if (copy !== undefined) chmodSync(path, OWNER_ONLY);
  replaceFile(path, text, OWNER_ONLY);
  return copy;
}
