// A test in which another program replaces a folder while the file tools use it.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SEARCH_OPERATIONS } from "../../src/tools/files/search.ts";
import { openToRead, replaceFile, resolvePath } from "../../src/tools/files/workspace.ts";
import { temporaryFolder } from "../kit/engine/engine.ts";
import { lacks } from "../kit/process/lacks.ts";

/**
 * Declares a test in which tools read and write `rounds` times while a program swaps the folder for a link.
 */
export function swapRace(rounds: number): void {
  const noPython = lacks("python3", existsSync("/usr/bin/python3"));
  // Needs Linux, which reports the path of an open file, and Python, which can replace the folder fast
  // enough.
  test.skipIf(lacks("Linux", process.platform === "linux") || noPython)(
    "if a program keeps swapping a folder for a link out of the workspace, tools read and write nothing outside",
    async () => {
      const base = temporaryFolder(tmpdir());
      const [workspace, outside] = [join(base, "workspace"), join(base, "outside")];
      mkdirSync(join(workspace, "folder"), { recursive: true });
      mkdirSync(outside);
      writeFileSync(join(workspace, "folder/a.txt"), "inside");
      writeFileSync(join(outside, "a.txt"), "s3cret");
      symlinkSync(outside, join(workspace, "evil"));
      const turns = '("folder", "kept"), ("evil", "folder"), ("folder", "evil"), ("kept", "folder")';
      const swaps = `while True:\n  for a, b in (${turns}): os.rename(a, b)`;
      const program = `import os\nos.chdir(${JSON.stringify(workspace)})\n${swaps}`;
      const swapping = spawn("python3", ["-c", program]);
      const texts = new Set<string>();
      const { signal } = new AbortController();
      const searching = { agent: { workspace }, signal, engine: { newId: () => "id" } };
      try {
        for (let round = 0; round < rounds; round++) {
          const seen = await resolvePath(workspace, "folder/a.txt", { createFolders: false });
          const handle = seen.ok ? await openToRead(seen.value) : seen;
          if (handle.ok) {
            texts.add(await handle.value.readFile("utf8"));
            await handle.value.close();
          }
          const found =
            round % 10 > 0 ? undefined : await SEARCH_OPERATIONS.grep(searching, { pattern: "s3cret" });
          if (found?.ok) for (const { text } of found.value.matches) texts.add(text);
          const free = await resolvePath(workspace, `folder/${round}`, { createFolders: false });
          if (free.ok) await replaceFile(free.value, "x", `id${round}`);
        }
        expect(swapping.exitCode, "Python swaps until the end").toBe(null);
      } finally {
        swapping.kill("SIGKILL");
      }
      expect(texts).not.toContain("s3cret");
      expect(readdirSync(outside)).toEqual(["a.txt"]);
    },
  );
}
