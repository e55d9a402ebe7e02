// Sets the version in every file that carries it.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Files that carry the version, and the text before it. npm sets package.json and package-lock.json. */
const PLACES: readonly (readonly [files: RegExp, before: RegExp])[] = [
  // The manifests for registries and for plugins of other programs.
  [/^(server|agent|(clients|\.claude-plugin)\/.*)\.json$/, /"version": "/],
  [/^clients\/.*\.toml$/, /^version = "/],
  [/^clients\/.*\.toml$/, /\/download\/v|\bparley-gateway-/],
  [/\/Chart\.yaml$/, /^(?:version|appVersion): "?/],
  // The package and the image, with a version.
  [/^(server\.json|agent\.json|compose\.yaml|(clients|deploy)\/.*)$/, /\bparley-gateway@/],
  [/^(server\.json|compose\.yaml|deploy\/.*)$/, /\bghcr\.io\/parley-gateway\/parley:(?:\$\{\w+:-)?/],
  // Output of the program, which the tests of the documents compare.
  [/^docs\/[\w-]+\.md$/, /\bParley |, version | {2}… {2}/],
];
/** A whole version. In the name of an archive, the system follows. */
const VERSION = /\d+\.\d+\.\d+(?![\w.]*\d|-(?!linux|macos|windows))/;

/** Sets this version in the files of a repository that git knows. Returns the changed files. */
export function setVersions(folder: string, version: string): string[] {
  const npm = ["version", version, "--no-git-tag-version", "--ignore-scripts", "--silent"];
  execFileSync("npm", npm, { cwd: folder });
  const listed = execFileSync("git", ["ls-files", "-z"], { cwd: folder, encoding: "utf8" }).split("\0");
  return listed.filter((file) => {
    const before = PLACES.filter(([files]) => files.test(file)).map(([, text]) => text.source);
    if (before.length === 0) return false;
    const text = readFileSync(join(folder, file), "utf8");
    const place = new RegExp(`(${before.join("|")})${VERSION.source}`, "gm");
    const changed = text.replaceAll(place, (_, words: string) => words + version);
    if (changed === text) return false;
    writeFileSync(join(folder, file), changed);
    return true;
  });
}
