// Finds the instruction files and the skills of an agent: AGENTS.md (CLAUDE.md in a folder without one) of
// its workspace and the folders above it, the files of its workspace that describe the agent and its person,
// and folders with a SKILL.md. The rules about the files that a
// session gets are in core/rules/prompt/guidance.ts.
// GU1: the search for instruction files ends at the root of a repository, else at the user's home, and never
//      reads the root of the file system. Above the workspace, only files of its owner or of root count.
// GU2: files are bounded, one by one and together. The nearest files have priority; a cut is said.

import { lstat, readdir } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import type { GuidanceReach } from "../../core/rules/prompt/guidance.ts";
import type { InstructionFile, Skill } from "../../core/rules/prompt/prompt.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { AgentSettings } from "../../core/shapes/settings/settings.ts";
import { cut } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { FileFacts } from "./file-facts.ts";
import { frontMatter } from "./front-matter.ts";
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
}

/** A skill, and where its file was found. `root`: the folder that no link may leave. */
export interface FoundSkill extends Skill {
  readonly root: string;
}

interface SkillHead {
  readonly name: string;
  readonly description: string;
}

type Agent = Pick<AgentSettings, "workspace" | "instructionFiles" | "skills">;

/** User id of root, whose files everybody may trust. */
const ROOT_USER = 0;
const NO_FILES: Omit<Guidance, "skills"> = { files: [], skipped: [] };
const NO_SKILLS: Omit<Guidance, "files"> = { skills: [], skipped: [] };

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
function withinLimit(nearestFirst: readonly { path: string; found: SmallText }[]): Omit<Guidance, "skills"> {
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

interface Folder {
  readonly isRepository: boolean;
  /** Names of the instruction files that it has. */
  readonly names: readonly string[];
}

/** Reads the texts from files. One object serves all agents, because it caches what has not changed. */
export class GuidanceFiles {
  readonly #facts: FileFacts;
  readonly #home: Promise<string | undefined>;
  readonly #folders: StatCache<Folder>;
  readonly #texts: StatCache<SmallText | string>;
  readonly #lists: StatCache<readonly string[]>;
  readonly #heads: StatCache<SkillHead | string>;

  /** `home`: the user's home folder. Absent: there is none. */
  constructor({ now, home }: { now: () => number; home?: string | undefined }) {
    const facts = new FileFacts(now);
    this.#facts = facts;
    this.#home = home === undefined ? Promise.resolve(undefined) : facts.realPath(home);
    this.#folders = new StatCache(now, facts);
    this.#texts = new StatCache(now, facts);
    this.#lists = new StatCache(now, facts);
    this.#heads = new StatCache(now, facts);
  }

  async forAgent(agent: Agent, reach: GuidanceReach): Promise<Guidance> {
    const workspace = await this.#facts.realPath(agent.workspace);
    const [found, listed] = await Promise.all([
      agent.instructionFiles && workspace !== undefined ? this.#files(workspace, reach.outside) : NO_FILES,
      agent.skills ? this.#skills(workspace, reach.outside) : NO_SKILLS,
    ]);
    return { files: found.files, skills: listed.skills, skipped: [...found.skipped, ...listed.skipped] };
  }

  async #files(workspace: string, outside: boolean): Promise<Omit<Guidance, "skills">> {
    const folders = await this.#foldersFrom(workspace, outside ? FOLDERS_MAX : 1);
    const owner = (await this.#facts.status(workspace))?.uid ?? ROOT_USER;
    const found = await Promise.all(
      folders.map(async ({ folder, name }) => {
        const owners = folder === workspace ? undefined : [owner, ROOT_USER];
        const read = () => readSmall(folder, name, FILE_MAX_BYTES, owners);
        const path = join(folder, name);
        const found = await this.#texts.get(path, read, owners?.join(" "));
        return { path, found: found ?? "could not be read" };
      }),
    );
    const unusable = found.flatMap(({ path, found: why }) =>
      typeof why === "string" ? [{ path, why }] : [],
    );
    const usable = found.flatMap(({ path, found: text }) =>
      typeof text === "string" ? [] : [{ path, found: text }],
    );
    const { files, skipped } = withinLimit(usable);
    return { files, skipped: [...unusable, ...skipped] };
  }

  /** Returns the instruction files, those of the nearest folder first (GU1). */
  async #foldersFrom(workspace: string, max: number): Promise<{ folder: string; name: string }[]> {
    const home = await this.#home;
    const found: { folder: string; name: string }[] = [];
    let folder = workspace;
    for (let steps = 0; steps < max; steps += 1) {
      const facts = await this.#folders.get(folder, () => folderFacts(folder));
      const names = [
        ...NAMES.filter((name) => facts?.names.includes(name)).slice(0, 1),
        ...(folder === workspace ? WORKSPACE_NAMES.filter((name) => facts?.names.includes(name)) : []),
      ];
      for (const name of names) found.push({ folder, name });
      const above = dirname(folder);
      if (facts?.isRepository === true || folder === home || above === dirname(above)) break;
      folder = above;
    }
    return found;
  }

  async #skills(workspace: string | undefined, outside: boolean): Promise<Omit<Guidance, "files">> {
    const home = await this.#home;
    const roots = [
      ...(workspace !== undefined ? SKILL_FOLDERS.map((below) => ({ root: workspace, below })) : []),
      ...(outside && home !== undefined ? [{ root: home, below: HOME_SKILLS }] : []),
    ];
    const lists = await Promise.all(
      roots.map(async ({ root, below }) => {
        const folder = join(root, below);
        const names = (await this.#lists.get(folder, () => foldersIn(folder))) ?? [];
        return Promise.all(names.map((name) => this.#skill(root, join(below, name))));
      }),
    );
    const skills: FoundSkill[] = [];
    const skipped: SkippedFile[] = [];
    for (const one of lists.flat()) {
      if (one === undefined) continue;
      if ("why" in one) skipped.push(one);
      else if (skills.some(({ name }) => name === one.name)) {
        skipped.push({ path: join(one.folder, SKILL_FILE), why: `another skill has the name "${one.name}"` });
      } else if (skills.length < SKILLS_MAX) skills.push(one);
      else
        skipped.push({ path: join(one.folder, SKILL_FILE), why: `there are more than ${SKILLS_MAX} skills` });
    }
    return { skills, skipped };
  }

  async #skill(root: string, below: string): Promise<FoundSkill | SkippedFile | undefined> {
    const folder = join(root, below);
    const path = join(folder, SKILL_FILE);
    const head = await this.#heads.get(path, async () => {
      const found = await readSmall(root, join(below, SKILL_FILE), SKILL_MAX_BYTES);
      return typeof found === "string" ? found : skillHead(found.text, folder);
    });
    if (head === undefined) return undefined;
    return typeof head === "string" ? { path, why: head } : { ...head, folder, root };
  }
}

/** Returns the whole text of a skill. */
export async function skillText({ root, folder }: FoundSkill): Promise<Result<SmallText>> {
  const found = await readSmall(root, join(relative(root, folder), SKILL_FILE), SKILL_MAX_BYTES);
  return typeof found === "string" ? fail("file_problem", found) : ok(found);
}

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
