// Finds the instruction files and the skills of an agent: AGENTS.md (CLAUDE.md in a folder without one) of
// its workspace and the folders above it, the files of its workspace that describe the agent and its person,
// and folders with a SKILL.md. The rules about the files that a session gets are in
// core/rules/prompt/guidance.ts.
// GU1: the search for instruction files ends at the root of a repository, else at the user's home, and never
//      reads the root of the file system. Above the workspace, only files of its owner or of root count.
// GU2: files are bounded, one by one and together. The nearest files have priority; a cut is said.
// GU3: a file counts with the text that `countedText` returns. The rows about changes are read after the
//      files, so that a change of a file that was just read is known.

import { lstat, readdir, rm } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { optional } from "../../core/optional.ts";
import { countedText } from "../../core/rules/prompt/confirmed.ts";
import type { GuidanceReach } from "../../core/rules/prompt/guidance.ts";
import type { InstructionFile, Skill } from "../../core/rules/prompt/prompt.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { AgentSettings, Settings } from "../../core/shapes/settings/settings.ts";
import { cut } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { isGuarded, type PromptFile, type PromptFiles } from "../../flows/instructions.ts";
import { type InstructionRows, readInstructionRows } from "../../store/queries/instruction-contents.ts";
import type { Db } from "../../store/sql.ts";
import { fileFailure, replaceFile, resolvePath } from "../files/workspace.ts";
import { FileFacts } from "./file-facts.ts";
import { readSmall, type SmallText } from "./small-file.ts";
import { StatCache } from "./stat-cache.ts";

/** Names of instruction files, by priority: a folder's first one counts. */
const NAMES: readonly string[] = ["AGENTS.md", "CLAUDE.md"];
/** Further instruction files of a workspace, in the order in which OpenClaw reads them. */
const WORKSPACE_NAMES: readonly string[] = ["SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md"];
const FILE_MAX_BYTES = 32 * 1024;
const FILES_MAX_BYTES = 64 * 1024;
const FOLDERS_MAX = 16;

/** Folders of skills in a workspace, by priority. */
const SKILL_FOLDERS = ["skills", ".agents/skills", ".claude/skills"] as const;
/** Folder of skills in the user's home, for all agents. */
const HOME_SKILLS = ".parley/skills";
const SKILL_PARENTS: readonly string[] = [...SKILL_FOLDERS, HOME_SKILLS].map(dirname);
const SKILL_FILE = "SKILL.md";
const SKILLS_MAX = 64;
const SKILL_NAME_MAX_CHARS = 64;
const SKILL_DESCRIPTION_MAX_CHARS = 1_024;
const SKILL_MAX_BYTES = 64 * 1024;

/** A file that is not used, and the reason. */
export interface SkippedFile {
  readonly path: string;
  readonly why: string;
}

/** The texts from files for one session. */
export interface Guidance {
  readonly files: readonly InstructionFile[];
  readonly skills: readonly FoundSkill[];
  readonly skipped: readonly SkippedFile[];
  /** True if the store does not know yet which of the files wait for an owner. */
  readonly unsettled: boolean;
}

/** A skill, and where its file was found. `root`: the folder that no link may leave. */
export interface FoundSkill extends Skill {
  readonly root: string;
}

interface SkillFolder {
  readonly root: string;
  readonly below: string;
}

type SkillPlace = Pick<FoundSkill, "root" | "folder">;

type Listed<K extends "files" | "skills"> = Pick<Guidance, K | "skipped">;

interface SkillHead {
  readonly name: string;
  readonly description: string;
}

type Agent = Pick<AgentSettings, "workspace" | "instructionFiles" | "skills">;

/** User id of root, whose files everybody may trust. */
const ROOT_USER = 0;
const NO_ROWS: InstructionRows = { calls: [], kept: new Map() };
const WAITS = "was changed by a run with outside content, and waits for an owner's answer";

const nothing = (): undefined => undefined;

/** Returns a skill's name and description, or why its file is not one. */
function skillHead(text: string, folder: string): SkillHead | string {
  const fields = frontMatter(text);
  const name = safeLine(fields?.get("name") ?? basename(folder)).trim();
  const description = cut(safeLine(fields?.get("description") ?? "").trim(), SKILL_DESCRIPTION_MAX_CHARS);
  if (name === "" || name.length > SKILL_NAME_MAX_CHARS) {
    return `has no name of 1 to ${SKILL_NAME_MAX_CHARS} characters`;
  }
  return description === "" ? "has no description in its front matter" : { name, description };
}

/**
 * Takes the nearest files first until the limit is reached. Returns them with the outermost folder first, and
 * the files of one folder in their order.
 */
function withinLimit(nearestFirst: readonly { path: string; found: SmallText }[]): Listed<"files"> {
  const files: InstructionFile[] = [];
  const skipped: SkippedFile[] = [];
  let left = FILES_MAX_BYTES;
  for (const { path, found } of nearestFirst) {
    const size = Buffer.byteLength(found.text);
    if (size > left) {
      skipped.push({ path, why: `exceeds the limit of ${FILES_MAX_BYTES} bytes for all files` });
      continue;
    }
    left -= size;
    if (found.text.trim() === "") continue;
    files.push({ path, text: found.text.trim(), ...(found.cut ? { cutFromBytes: found.bytes } : {}) });
  }
  // A folder has a longer path than the folders above it.
  files.sort((a, b) => dirname(a.path).length - dirname(b.path).length);
  return { files, skipped };
}

/** The folder of a workspace, or one above it. */
interface Folder {
  readonly isRepository: boolean;
  /** Names of its instruction files, by priority. */
  readonly names: readonly string[];
}

/** Returns what counts of a file (GU3), and whether its current text waits for an owner. */
function countFile(
  rows: InstructionRows,
  path: string,
  found: SmallText | string | undefined,
): { readonly counts: SmallText | string | undefined; readonly waits: boolean } {
  const { text: current, real = path } = typeof found === "object" ? found : {};
  if (!isGuarded(rows, { path, real })) return { counts: found, waits: false };
  const { text: confirmed, bytes } = rows.kept.get(path) ?? {};
  const { text, waits } = countedText({ current, confirmed, guarded: true });
  if (!waits) return { counts: found, waits };
  if (text === undefined) return { counts: undefined, waits };
  const size = bytes ?? Buffer.byteLength(text);
  return { counts: { text, real, bytes: size, cut: size > Buffer.byteLength(text) }, waits };
}

/** Reads the texts from files. One object serves all agents, because it caches what has not changed. */
export class GuidanceFiles implements PromptFiles {
  readonly #facts: FileFacts;
  readonly #home: Promise<string | undefined>;
  readonly #rows: () => Promise<InstructionRows>;
  readonly #folders: StatCache<Folder>;
  readonly #texts: StatCache<SmallText | string>;
  readonly #lists: StatCache<readonly string[]>;
  readonly #heads: StatCache<SkillHead | string>;

  /**
   * `home`: the user's home folder; absent: there is none. `db`: the store; absent: all files count as they
   * are.
   */
  constructor({ now, home, db }: { now: () => number; home?: string | undefined; db?: Db }) {
    const facts = new FileFacts(now);
    this.#facts = facts;
    this.#home = home === undefined ? Promise.resolve(undefined) : facts.realPath(home);
    this.#rows = async () => (db === undefined ? NO_ROWS : readInstructionRows(db));
    this.#folders = new StatCache(now, facts);
    this.#texts = new StatCache(now, facts);
    this.#lists = new StatCache(now, facts);
    this.#heads = new StatCache(now, facts);
  }

  async forAgent(agent: Agent, reach: GuidanceReach): Promise<Guidance> {
    const workspace = await this.#facts.realPath(agent.workspace);
    const wanted = agent.instructionFiles ? workspace : undefined;
    const folders = await this.#foldersFrom(wanted, reach.outside ? FOLDERS_MAX : 1);
    const skillFolders = agent.skills ? await this.#skillFolders(workspace, reach) : [];
    const [texts, places] = await Promise.all([
      this.#textsIn(folders, workspace ?? ""),
      this.#skillPlaces(skillFolders),
    ]);
    const heads = new Map(
      await Promise.all(places.map(async (place) => [place.folder, await this.#head(place)] as const)),
    );
    const rows = await this.#rows();
    const waiting = new Set<string>();
    const files = countedFiles(folders, texts, rows, waiting);
    const skills = await this.#countedSkills(skillFolders, heads, rows, waiting);
    const isWaiting = (path: string): boolean => rows.kept.get(path)?.state === "pending";
    return {
      ...files,
      ...skills,
      skipped: [...[...waiting].map((path) => ({ path, why: WAITS })), ...files.skipped, ...skills.skipped],
      unsettled: rows.calls.some(({ lasts }) => !lasts) || ![...waiting].every(isWaiting),
    };
  }

  /** Reads all files that may be part of the prompt of an agent, whatever its settings are. */
  async readAll({ agents }: Settings): Promise<PromptFile[]> {
    const files = new Map<string, PromptFile>();
    const add = (path: string, found: SmallText | string | undefined): void => {
      if (found === undefined) return;
      const { text, bytes, real = path } = typeof found === "string" ? {} : found;
      files.set(path, { path, real, ...optional({ text, bytes }) });
    };
    for (const folder of new Set(agents.map(({ workspace }) => workspace))) {
      const workspace = (await this.#facts.realPath(folder)) ?? folder;
      const folders = await this.#foldersFrom(workspace, FOLDERS_MAX);
      for (const [path, found] of await this.#textsIn(folders, workspace)) add(path, found);
      const skillFolders = await this.#skillFolders(workspace, { outside: true });
      for (const place of await this.#skillPlaces(skillFolders)) {
        const path = join(place.folder, SKILL_FILE);
        add(path, await this.#texts.get(path, () => readSkill(place)));
      }
    }
    return [...files.values()];
  }

  async restore(path: string, text: string | undefined, temporaryId: string): Promise<Result<void>> {
    const root = basename(path) === SKILL_FILE ? skillRoot(path) : dirname(path);
    const shown = relative(root, path);
    try {
      if (text === undefined) return await removeNew(root, shown);
      // The path of a file that nothing has, so that a link in the place of the file is not followed.
      const beside = join(dirname(shown), `.parley-${temporaryId}`);
      const place = await resolvePath(root, beside, { createFolders: true });
      if (!place.ok) return place;
      const real = join(dirname(place.value.real), basename(path));
      const found = await lstat(real).catch(nothing);
      const mode = found?.isFile() === true ? found.mode & 0o777 : 0o644;
      return await replaceFile({ shown, real, found: "file", mode }, text, temporaryId);
    } catch (error) {
      return fileFailure(error, shown);
    }
  }

  async skillText(skill: SkillPlace & Pick<Skill, "name">): Promise<Result<SmallText>> {
    const found = await readSkill(skill);
    const { counts } = countFile(await this.#rows(), join(skill.folder, SKILL_FILE), found);
    if (typeof counts === "object") return ok(counts);
    return fail("file_problem", counts ?? `the skill ${skill.name} ${WAITS}`);
  }

  /** Reads the instruction files of folders. Above the workspace, the owner of a file counts (GU1). */
  async #textsIn(
    folders: readonly { folder: string; names: readonly string[] }[],
    workspace: string,
  ): Promise<Map<string, SmallText | string>> {
    const owner = (await this.#facts.status(workspace))?.uid ?? ROOT_USER;
    const all = folders.flatMap(({ folder, names }) =>
      names.map(async (name) => {
        const owners = folder === workspace ? undefined : [owner, ROOT_USER];
        const read = () => readSmall(folder, name, FILE_MAX_BYTES, owners);
        const path = join(folder, name);
        return [path, (await this.#texts.get(path, read, owners?.join(" "))) ?? "could not be read"] as const;
      }),
    );
    return new Map(await Promise.all(all));
  }

  /** Returns the workspace and the folders above it, the nearest first (GU1). */
  async #foldersFrom(
    workspace: string | undefined,
    max: number,
  ): Promise<{ folder: string; names: readonly string[] }[]> {
    if (workspace === undefined) return [];
    const home = await this.#home;
    const found: { folder: string; names: readonly string[] }[] = [];
    let folder = workspace;
    for (let steps = 0; steps < max; steps += 1) {
      const facts = await this.#folders.get(folder, () => folderFacts(folder));
      const names = facts?.names ?? [];
      found.push({
        folder,
        names: folder === workspace ? names : names.filter((name) => NAMES.includes(name)),
      });
      const above = dirname(folder);
      if (facts?.isRepository === true || folder === home || above === dirname(above)) break;
      folder = above;
    }
    return found;
  }

  async #skillFolders(
    workspace: string | undefined,
    { outside }: Pick<GuidanceReach, "outside">,
  ): Promise<SkillFolder[]> {
    const home = outside ? await this.#home : undefined;
    return [
      ...(workspace === undefined ? [] : SKILL_FOLDERS.map((below) => ({ root: workspace, below }))),
      ...(home === undefined ? [] : [{ root: home, below: HOME_SKILLS }]),
    ];
  }

  async #skillPlaces(folders: readonly SkillFolder[]): Promise<SkillPlace[]> {
    const lists = folders.map(async ({ root, below }) => {
      const folder = join(root, below);
      const names = (await this.#lists.get(folder, () => foldersIn(folder))) ?? [];
      return names.map((name) => ({ root, folder: join(folder, name) }));
    });
    return (await Promise.all(lists)).flat();
  }

  #head(place: SkillPlace): Promise<SkillHead | string | undefined> {
    const path = join(place.folder, SKILL_FILE);
    return this.#heads.get(path, async () => headOf(await readSkill(place), place.folder));
  }

  /** Returns the skills that count. `heads`: the skills as they are, by folder. */
  async #countedSkills(
    folders: readonly SkillFolder[],
    heads: ReadonlyMap<string, SkillHead | string | undefined>,
    rows: InstructionRows,
    waiting: Set<string>,
  ): Promise<Listed<"skills">> {
    const skills: FoundSkill[] = [];
    const skipped: SkippedFile[] = [];
    for (const { root, below } of folders) {
      const isHere = (folder: string): boolean => dirname(folder) === join(root, below);
      const lost = [...rows.kept.keys()].filter((path) => basename(path) === SKILL_FILE).map(dirname);
      const all = [...new Set([...heads.keys(), ...lost])].filter(isHere).sort();
      for (const folder of all) {
        const path = join(folder, SKILL_FILE);
        let head = heads.get(folder);
        if (rows.calls.length > 0 || rows.kept.size > 0) {
          const { counts, waits } = countFile(rows, path, await readSkill({ root, folder }));
          if (waits) waiting.add(path);
          head = counts && headOf(counts, folder);
        }
        if (head === undefined) continue;
        const why = typeof head === "string" ? head : whyLeftOut(head.name, skills);
        if (why !== undefined) skipped.push({ path, why });
        else if (typeof head === "object") skills.push({ ...head, folder, root });
      }
    }
    return { skills, skipped };
  }
}

/** Deletes a file, or the link that is in the place of the file or of its skill's folder. */
async function removeNew(root: string, shown: string): Promise<Result<void>> {
  const folder = dirname(shown);
  if (folder !== ".") {
    const above = await resolvePath(root, dirname(folder), { createFolders: false });
    if (!above.ok) return ok(undefined);
    if (above.value.real !== join(root, dirname(folder))) {
      return fail("file_problem", `${dirname(folder)} is a link, so nothing was deleted in it`, {
        hint: "Answer about the file to which it leads, or delete the link.",
      });
    }
    const isLink = (await lstat(join(root, folder)).catch(nothing))?.isSymbolicLink() === true;
    if (isLink) return ok(await rm(join(root, folder)));
  }
  return ok(await rm(join(root, shown), { force: true }));
}

function whyLeftOut(name: string, skills: readonly FoundSkill[]): string | undefined {
  if (skills.some((skill) => skill.name === name)) return `another skill has the name "${name}"`;
  return skills.length < SKILLS_MAX ? undefined : `there are more than ${SKILLS_MAX} skills`;
}

/** Returns the folder in which a folder of skills is, from the path of a skill's file. */
function skillRoot(path: string): string {
  const above = join(path, "../../..");
  return SKILL_PARENTS.includes(basename(above)) ? dirname(above) : above;
}

/**
 * Returns the instruction files that count: of each folder the first one, and the further ones of the
 * workspace, which is the first folder.
 */
function countedFiles(
  folders: readonly { readonly folder: string }[],
  texts: ReadonlyMap<string, SmallText | string>,
  rows: InstructionRows,
  waiting: Set<string>,
): Listed<"files"> {
  const unusable: SkippedFile[] = [];
  const usable: { path: string; found: SmallText }[] = [];
  const take = (path: string): boolean => {
    const { counts, waits } = countFile(rows, path, texts.get(path));
    if (waits) waiting.add(path);
    if (typeof counts === "string") unusable.push({ path, why: counts });
    else if (counts !== undefined) usable.push({ path, found: counts });
    return counts !== undefined;
  };
  for (const [at, { folder }] of folders.entries()) {
    NAMES.some((name) => take(join(folder, name)));
    if (at === 0) for (const name of WORKSPACE_NAMES) take(join(folder, name));
  }
  const { files, skipped } = withinLimit(usable);
  return { files, skipped: [...unusable, ...skipped] };
}

const readSkill = ({ root, folder }: SkillPlace): Promise<SmallText | string> =>
  readSmall(root, join(relative(root, folder), SKILL_FILE), SKILL_MAX_BYTES);

const headOf = (found: SmallText | string, folder: string): SkillHead | string =>
  typeof found === "string" ? found : skillHead(found.text, folder);

async function folderFacts(folder: string): Promise<Folder> {
  const isThere = async (name: string): Promise<boolean> =>
    (await lstat(join(folder, name)).catch(nothing)) !== undefined;
  const names = [...NAMES, ...WORKSPACE_NAMES];
  const [isRepository = false, ...has] = await Promise.all([".git", ...names].map(isThere));
  return { isRepository, names: names.filter((_, at) => has[at]) };
}

/** Returns the names in a folder in their order, without hidden ones. */
async function foldersIn(folder: string): Promise<string[]> {
  const names: string[] = await readdir(folder).catch(() => []);
  return names
    .filter((name) => !name.startsWith("."))
    .sort()
    .slice(0, 2 * SKILLS_MAX);
}

const QUOTED = /^(["'])(.*)\1$/;
const BLOCK = /^[>|][+-]?$/;

/**
 * Returns the fields of the front matter of a SKILL.md, or undefined if the text has none. It is lines
 * `key: value` between two lines `---`. Understands quotes, and values on the following indented lines; any
 * other YAML is kept as text.
 */
export function frontMatter(text: string): ReadonlyMap<string, string> | undefined {
  const lines = text.split(/\r?\n/);
  const end = lines.indexOf("---", 1);
  if (lines[0] !== "---" || end === -1) return undefined;
  const fields = new Map<string, string>();
  let key: string | undefined;
  for (const line of lines.slice(1, end)) {
    const [, name, value = ""] = /^([\w-]+):(?:\s+(.*))?$/.exec(line) ?? [];
    if (name !== undefined) {
      key = name;
      const plain = value.trim();
      fields.set(name, BLOCK.test(plain) ? "" : (QUOTED.exec(plain)?.[2] ?? plain));
    } else if (key !== undefined && /^\s+\S/.test(line)) {
      fields.set(key, `${fields.get(key) ?? ""} ${line.trim()}`.trim());
    }
  }
  return fields;
}
