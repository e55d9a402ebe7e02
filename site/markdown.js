// Changes how the documents become HTML: links lead to the site's pages, or to the repository for files
// that are no pages; mermaid diagrams are drawn in the browser; headings have the anchors of GitHub.

import { existsSync } from "node:fs";
import { posix, relative } from "node:path";
import { addressOf, PAGES, REPOSITORY, ROOT } from "./pages.js";

/** Returns the anchor that GitHub gives to a heading. */
export const slugOf = (heading) =>
  heading
    .toLowerCase()
    .trim()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
    .replaceAll(" ", "-");

/** Returns the target of a link in the document `from`. A link to nothing stays, and the build reports it. */
function targetOf(href, from) {
  const [path, hash] = href.split("#");
  if (path === "" || /^[a-z]+:|^\//.test(href)) return href;
  const file = posix.join(posix.dirname(from), path);
  const anchor = hash === undefined ? "" : `#${hash}`;
  if (PAGES.includes(file)) return addressOf(file) + anchor;
  if (!existsSync(`${ROOT}${file}`)) throw new Error(`${from}: ${href} does not exist`);
  return `${REPOSITORY}/blob/main/${file}${anchor}`;
}

const visit = (tokens, change) => {
  for (const token of tokens) {
    change(token);
    if (token.children) visit(token.children, change);
  }
};

export function changeMarkdown(md) {
  md.core.ruler.push("links", ({ tokens, env }) => {
    const from = relative(ROOT, env.realPath ?? env.path);
    visit(tokens, (token) => {
      if (token.type === "link_open") token.attrSet("href", targetOf(token.attrGet("href"), from));
      // Vite finds pictures only by paths that begin with a dot.
      if (token.type.startsWith("html_"))
        token.content = token.content.replace(/ src="(?=\w)(?!\w+:)/g, ' src="./');
    });
  });
  // The recording is on the first page, after its section Start.
  md.core.ruler.push("recording", ({ tokens, env, Token }) => {
    if (relative(ROOT, env.realPath ?? env.path) !== "README.md") return;
    const [, second] = tokens.filter(({ type, tag }) => type === "heading_open" && tag === "h2");
    const recording = Object.assign(new Token("html_block", "", 0), { content: "<Recording />\n" });
    tokens.splice(tokens.indexOf(second), 0, recording);
  });
  // Vue would read a template of a document, such as {{body.a}}, as its own.
  const { fence } = md.renderer.rules;
  for (const name of ["text", "code_inline"]) {
    const write = md.renderer.rules[name];
    md.renderer.rules[name] = (...all) => write(...all).replaceAll("{{", "&#123;&#123;");
  }
  md.renderer.rules.fence = (tokens, at, ...rest) =>
    tokens[at].info.trim() === "mermaid"
      ? `<Diagram source="${encodeURIComponent(tokens[at].content)}" />`
      : fence(tokens, at, ...rest);
}
