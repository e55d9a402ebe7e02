// Decides whether the configuration of a git repository is harmless.
// GC1: a file is harmless only if each of its lines has one of the plain forms below, with a listed key. The
//      keys neither start a program nor name another place or file. So `.gitattributes` is harmless as well:
//      it names drivers and filters that only the configuration can define.

const HEADER = /^\[(core|user|(?:remote|branch) "[\w./@+-]+")\]$/;
const SETTING = /^([\w-]+) = ([\w ./:@+*%~-]*)$/;
const IGNORED = /^$|^[#;][^\\]*$/;

const OF_FILES = "filemode|ignorecase|symlinks|precomposeunicode|autocrlf|logallrefupdates";
const KEYS: Readonly<Record<string, RegExp>> = {
  core: new RegExp(`^(repositoryformatversion = 0|bare = false|(${OF_FILES}) = \\w+)$`, "i"),
  user: /^(name|email) = /,
  remote: /^(url|pushurl|fetch) = /,
  branch: /^(remote|merge|rebase|vscode-merge-base) = /,
};

/** Returns the first line of a configuration file that may not be harmless, or undefined (GC1). */
export function findGitRisk(config: string): string | undefined {
  let section = "";
  return config.split("\n").find((text) => {
    const line = text.replace(/^[\t ]+/, "");
    const header = HEADER.exec(line)?.[1];
    if (header !== undefined) section = header.split(" ")[0] ?? "";
    return !(header !== undefined || IGNORED.test(line) || (SETTING.test(line) && KEYS[section]?.test(line)));
  });
}
