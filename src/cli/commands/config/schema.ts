// Implements `parley config schema`: prints the JSON Schema that editors use to complete and check the
// configuration file.
// Replaces an existing file only if it contains a schema of Parley.

import { readFile, writeFile } from "node:fs/promises";
import { configJsonSchema } from "../../../config/schema/schema.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../../cli.ts";

/** Returns whether the file may be written: it does not exist, or it contains a schema of Parley. */
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
  const schema = configJsonSchema;
  const { write: file } = options;
  if (file === undefined) {
    // The schema is printed as JSON, with and without --json.
    cli.parts.stdout.write(`${JSON.stringify(schema, undefined, 2)}\n`);
    return EXIT.done;
  }
  if (!(await mayWrite(file, schema.title))) {
    const error = `${file} is not a schema of Parley. Name another file, or remove it.`;
    return cli.fail({ code: "invalid_request", error });
  }
  try {
    await writeFile(file, `${JSON.stringify(schema, undefined, 2)}\n`);
  } catch (error) {
    const text = `${file} could not be written: ${(error as Error).message}`;
    return cli.fail({ code: "invalid_request", error: text });
  }
  cli.line(
    safeLine(`Wrote ${file}. To use it, add this first line to the configuration: $schema: "${file}",`),
  );
  cli.document({ ok: true, file });
  return EXIT.done;
}
