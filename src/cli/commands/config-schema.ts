// Owns `parley config schema`: what an editor needs to complete and check the configuration file.
// CS1: a file is replaced only where it is a schema of ours, or there was none.

import { readFile, writeFile } from "node:fs/promises";
import { configJsonSchema } from "../../config/schema.ts";
import { safeLine } from "../../core/safe-text.ts";
import { type Cli, EXIT } from "../cli.ts";

/** Whether the file may be written: missing, or written by this command before. */
async function mayWrite(file: string, title: unknown): Promise<boolean> {
  try {
    const there: unknown = JSON.parse(await readFile(file, "utf8"));
    return typeof there === "object" && there !== null && "title" in there && there.title === title;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

export async function printSchema(
  cli: Cli,
  _args: readonly string[],
  options: { readonly write?: string },
): Promise<number> {
  const schema = configJsonSchema();
  const { write: file } = options;
  if (file === undefined) {
    // The answer is one JSON document, with --json and without.
    cli.parts.stdout.write(`${JSON.stringify(schema, undefined, 2)}\n`);
    return EXIT.done;
  }
  if (!(await mayWrite(file, schema.title))) {
    const error = `${file} is not a schema of Parley's: name another file, or remove it`;
    return cli.fail({ code: "invalid_request", error });
  }
  try {
    await writeFile(file, `${JSON.stringify(schema, undefined, 2)}\n`);
  } catch (error) {
    const text = `${file} could not be written: ${(error as Error).message}`;
    return cli.fail({ code: "invalid_request", error: text });
  }
  cli.line(
    safeLine(`${file} is written. The first line of the configuration may point at it: $schema: "${file}",`),
  );
  cli.document({ ok: true, file });
  return EXIT.done;
}
