import fs from "node:fs";
import path from "node:path";
import { defineConfig } from "vitepress";
import { out, slugify, src } from "../pages.mjs";

export default defineConfig({
  title: "Starling",
  description: "A Kubernetes addon operator in one binary",
  lang: "en",
  srcDir: ".src",
  outDir: out,
  cleanUrls: false,
  metaChunk: true,
  head: [["link", { rel: "icon", href: "/icon.svg", type: "image/svg+xml" }]],
  markdown: {
    html: false, // pages say <name>, and mean it
    anchor: { slugify },
    toc: { slugify },
    headers: { slugify },
    config(md) {
      // {{ and }} of templates are text here.
      const escaped = (html) => html.replaceAll("{{", "&#123;&#123;").replaceAll("}}", "&#125;&#125;");
      for (const rule of ["text", "code_inline"]) {
        const before = md.renderer.rules[rule];
        md.renderer.rules[rule] = (...args) => escaped(before(...args));
      }
    },
    languageAlias: { console: "shellsession", helm: "yaml", starlark: "python", repl: "python" },
  },
  themeConfig: {
    logo: "/icon.svg",
    sidebar: JSON.parse(fs.readFileSync(path.join(src, "sidebar.json"), "utf8")),
    outline: { level: [2, 3] },
    search: { provider: "local" },
    docFooter: { prev: false, next: false },
  },
});
