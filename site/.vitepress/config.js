// Configures the site of the documents: `npm run site` builds it in site/.vitepress/dist. The pages are the
// Markdown files of the repository in their places; a dead link fails the build.

import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";
import { writeLlms } from "../llms.js";
import { changeMarkdown, slugOf } from "../markdown.js";
import { addressOf, nameOf, REPOSITORY, ROOT, readGroups, readText, titleOf } from "../pages.js";

const BASE = "/parley/";
const SITE = `https://parley-gateway.github.io${BASE}`;
const { version, description } = JSON.parse(readText("package.json"));

/** Returns the released versions, newest first: the tags that this clone has. */
function listReleased() {
  const git = ["-C", ROOT, "tag", "--list", "v*", "--sort=-version:refname"];
  const tags = execFileSync("git", git, { encoding: "utf8" }).split("\n");
  return tags.filter((tag) => tag !== "");
}

const versions = [
  { text: `main, after ${version} (this site)`, link: "/" },
  ...listReleased().map((tag) => ({ text: tag.slice(1), link: `${REPOSITORY}/tree/${tag}/docs` })),
  { text: "Changes", link: addressOf("CHANGELOG.md") },
];

const sidebar = readGroups().map(({ title, pages }, at) => ({
  text: title,
  collapsed: at > 2,
  items: [
    ...(at === 0 ? [{ text: "Five minutes", link: "/#five-minutes" }] : []),
    ...pages.map((path) => ({ text: titleOf(path), link: addressOf(path) })),
  ],
}));

/** Leaves Vue to Node while pages are rendered: Vite would look for it beside the documents. */
const vueOfNode = {
  name: "vue-of-node",
  enforce: "pre",
  resolveId: (id, _, { ssr }) => (ssr && /^vue(\/|$)/.test(id) ? { id, external: true } : null),
};

export default defineConfig({
  srcDir: "..",
  srcExclude: [
    "{.ci,.github,bench,clients,coverage,deploy,dist,release,site,src,tests,ui}/**",
    "**/coverage/**",
    "{CODE_OF_CONDUCT,GOVERNANCE}.md",
  ],
  base: BASE,
  cleanUrls: true,
  lang: "en",
  title: "Parley",
  description,
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${BASE}icon.svg` }]],
  rewrites: nameOf,
  markdown: {
    anchor: { slugify: slugOf },
    config: changeMarkdown,
    languageAlias: { chat: "md" },
  },
  vite: {
    publicDir: fileURLToPath(new URL("../public", import.meta.url)),
    plugins: [vueOfNode],
  },
  transformPageData: ({ filePath }) =>
    filePath === "README.md"
      ? {
          frontmatter: {
            layout: "home",
            title: "Parley",
            titleTemplate: description,
            hero: {
              name: "Parley",
              text: description,
              actions: [
                { text: "Start", link: "#start" },
                { text: "Join your coding agents", link: "/coding-agents", theme: "alt" },
                { text: "All documents", link: "/documents", theme: "alt" },
              ],
            },
          },
        }
      : undefined,
  themeConfig: {
    logo: "/icon.svg",
    nav: [
      { text: "Tour", link: "/tour" },
      { text: "Coding agents", link: "/coding-agents" },
      { text: "Documents", link: "/documents" },
      { text: version, items: versions },
    ],
    sidebar,
    outline: [2, 3],
    search: {
      provider: "local",
      options: {
        miniSearch: {
          // The default would split names such as sessions_send.
          options: { tokenize: (text) => text.split(/[^\p{L}\p{N}_]+/u) },
        },
      },
    },
    socialLinks: [{ icon: "github", link: REPOSITORY }],
    editLink: { pattern: `${REPOSITORY}/blob/main/:path`, text: "This page on GitHub" },
  },
  buildEnd: ({ outDir }) => writeLlms(outDir, SITE, description),
});
