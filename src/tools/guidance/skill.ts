// Defines the tool `skill`, which returns the instructions of one skill.

import { optional } from "../../core/optional.ts";
import { fail, ok } from "../../core/shapes/errors.ts";
import { quoted } from "../../core/text/cut.ts";
import { type Tool, tool } from "../tool.ts";
import type { FoundSkill, GuidanceFiles } from "./guidance.ts";

export interface SkillContext {
  /** The session's skills. Absent: none. */
  readonly skills?: readonly FoundSkill[] | undefined;
  /** Reads the files of skills. Absent: there are no skills. */
  readonly guidance?: GuidanceFiles | undefined;
}

export const skillTool: Tool<SkillContext> = tool("skill", {
  isUsable: ({ skills = [] }) => skills.length > 0,
  async execute({ skills = [], guidance }, args) {
    const wanted = args.name.trim();
    const skill = skills.find(({ name }) => name === wanted);
    if (skill === undefined || guidance === undefined) {
      const hint = `Skills: ${skills.map(({ name }) => name).join(", ")}.`;
      return fail("file_not_found", `there is no skill ${quoted(wanted, 80)}`, { hint });
    }
    const found = await guidance.skillText(skill);
    if (!found.ok) return found;
    const { text, bytes, cut } = found.value;
    const note = cut ? `This is the beginning of a file of ${bytes} bytes.` : undefined;
    return ok({ status: "ok", name: skill.name, folder: skill.folder, text, ...optional({ note }) });
  },
});
