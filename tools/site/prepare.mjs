// Copies docs/ to .src, as the generator wants it: the index is index.md, links that leave docs/ lead to the
// source, and the decisions have a list. A page that the index does not name is an error.

import fs from "node:fs";
import path from "node:path";
import { docs, here, source, src, top } from "./pages.mjs";

const titleOf = (text) => text.match(/^# (.*)$/m)[1].replaceAll("`", "");

// outside rewrites links that leave docs/.
function outside(text, file) {
  return text.replace(/\]\(([^)\s]+)\)/g, (whole, link) => {
    if (link.includes("://") || link.startsWith("#")) return whole;
    const [to, anchor] = link.split("#");
    const target = path.resolve(path.dirname(file), to);
    const tail = anchor ? "#" + anchor : "";
    if (!target.startsWith(docs + path.sep)) return `](${source}${path.relative(top, target)}${tail})`;
    if (target === path.join(docs, "decisions")) return `](${path.relative(path.dirname(file), target)}/index.md${tail})`;
    if (target === path.join(docs, "README.md")) return `](${path.relative(path.dirname(file), path.join(docs, "index.md"))}${tail})`;
    return whole;
  });
}

fs.rmSync(src, { recursive: true, force: true });
fs.cpSync(docs, src, { recursive: true, filter: (file) => !file.endsWith(".txt") });
fs.cpSync(path.join(here, "public"), path.join(src, "public"), { recursive: true });
const titles = {};
const decisions = [];
for (const name of fs.readdirSync(docs, { recursive: true })) {
  if (!name.endsWith(".md")) continue;
  const text = fs.readFileSync(path.join(docs, name), "utf8");
  titles[name] = titleOf(text);
  if (name.startsWith("decisions" + path.sep)) decisions.push(name);
  fs.writeFileSync(path.join(src, name), outside(text, path.join(docs, name)));
}
fs.renameSync(path.join(src, "README.md"), path.join(src, "index.md"));
decisions.sort();
fs.writeFileSync(
  path.join(src, "decisions/index.md"),
  "# Decisions\n\nEach choice that a reader may question, with its reason and its cost.\n\n" +
    decisions.map((name) => `- [${titles[name]}](${path.basename(name)})\n`).join(""),
);

// The sidebar is the index: its sections, and the pages that each names first.
const index = fs.readFileSync(path.join(docs, "README.md"), "utf8");
const seen = new Set(["README.md"]);
const sidebar = index
  .split("\n## ")
  .slice(1)
  .map((section) => ({
    text: section.split("\n")[0],
    items: [...section.matchAll(/\[([^\]]+)\]\(([a-z0-9-]+)(\.md)?\)/g)]
      .filter((m) => !seen.has(m[2] + ".md") && seen.add(m[2] + ".md"))
      .map((m) => ({ text: m[1], link: m[3] ? "/" + m[2] : `/${m[2]}/` })),
  }))
  .filter((group) => group.items.length > 0);
fs.writeFileSync(path.join(src, "sidebar.json"), JSON.stringify(sidebar, null, 2));
const missing = Object.keys(titles).filter((name) => !name.includes(path.sep) && !seen.has(name));
if (missing.length > 0) {
  console.error(`docs/README.md does not name ${missing.join(", ")}`);
  process.exit(1);
}
