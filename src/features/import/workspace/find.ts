// Finds the workspaces of a source's agents.

import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, isAbsolute, join, relative } from "node:path";
import { isInside } from "../../../world/folders.ts";

/** The folders of the machine and of the source, without links. */
interface Places {
  /** The source's directory. */
  readonly root: string;
  readonly home: string;
}

/** An agent of the source, and the folder that its settings name. */
export interface WorkspaceOwner {
  readonly agentId: string;
  readonly isDefault: boolean;
  readonly workspace?: string | undefined;
}

export interface SourceWorkspace {
  readonly agentId: string;
  /** Absolute path without links. */
  readonly path: string;
  /** True if the folder may hold more than the work of an agent, for example keys. */
  readonly isDelicate: boolean;
}

/** Returns a folder's path without links, or undefined if there is no such folder. */
function realFolder(path: string): string | undefined {
  try {
    const real = realpathSync(path);
    return statSync(real).isDirectory() ? real : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns whether a folder may hold more than an agent's work: all folders except those of the home whose
 * path has no hidden part, and the workspaces in the source.
 */
function isDelicate(path: string, { root, home }: Places): boolean {
  if (isInside(root, path)) return !/^workspace/.test(relative(root, path));
  const way = relative(home, path);
  const isHidden = way === "" || way.startsWith(".") || way.includes("/.") || isAbsolute(way);
  return isHidden || isInside(path, root);
}

/** Returns the folders in which a source may keep an agent's workspace, the likeliest first. */
function candidates(owner: WorkspaceOwner, shared: string | undefined, isOnly: boolean, places: Places) {
  const { root, home } = places;
  // A source that was moved has its workspaces beside its configuration.
  const at = (path: string): string[] => [path.replace(/^~(?=\/|$)/, home), join(root, basename(path))];
  if (owner.workspace !== undefined) return at(owner.workspace);
  return [
    ...(shared === undefined || isOnly ? [] : [join(shared.replace(/^~(?=\/|$)/, home), owner.agentId)]),
    join(root, `workspace-${owner.agentId}`),
    ...(owner.isDefault ? [...(shared === undefined ? [] : at(shared)), join(root, "workspace")] : []),
  ];
}

/** Finds the workspace of each agent. `shared`: the folder that the settings name for all agents. */
export function findWorkspaces(
  owners: readonly WorkspaceOwner[],
  shared: string | undefined,
  { root, home }: Places,
): SourceWorkspace[] {
  const places = { root, home: existsSync(home) ? realpathSync(home) : home };
  return owners.flatMap((owner) => {
    const folders = candidates(owner, shared, owners.length === 1, places).filter(isAbsolute);
    const path = folders.map(realFolder).find((folder) => folder !== undefined);
    if (path === undefined) return [];
    return [{ agentId: owner.agentId, path, isDelicate: isDelicate(path, places) }];
  });
}
