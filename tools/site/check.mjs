// Looks at what was built: each link inside of the site leads to a page that is there, and to a heading that it
// has; and no page loads anything from elsewhere.

import fs from "node:fs";
import path from "node:path";
import { out } from "./pages.mjs";

const pages = new Map();
for (const name of fs.readdirSync(out, { recursive: true })) {
  if (name.endsWith(".html")) pages.set(name, fs.readFileSync(path.join(out, name), "utf8"));
}
const ids = new Map([...pages].map(([name, html]) => [name, new Set([...html.matchAll(/ id="([^"]+)"/g)].map((m) => m[1]))]));
const decode = (text) => decodeURIComponent(text.replaceAll("&amp;", "&").replaceAll("&quot;", '"').replaceAll("&#39;", "'"));
const problems = [];
let links = 0;
for (const [name, html] of pages) {
  for (const [, tag, attribute, value] of html.matchAll(/<(\w+)[^>]*? (href|src)="([^"]*)"/g)) {
    if (/^https?:|^\/\//.test(value)) {
      if (tag !== "a") problems.push(`${name}: <${tag}> loads ${value}`);
      continue;
    }
    if (/^(mailto|data):/.test(value)) continue;
    links++;
    const [to, anchor] = value.split("#");
    const at = to === "" ? name : to.startsWith("/") ? to.slice(1) : path.join(path.dirname(name), to);
    const file = [at, at + ".html", path.join(at, "index.html")].map(decode).find((f) => fs.statSync(path.join(out, f), { throwIfNoEntry: false })?.isFile());
    if (!file) problems.push(`${name}: ${value} leads nowhere`);
    else if (anchor && ids.has(file) && !ids.get(file).has(decode(anchor))) problems.push(`${name}: ${value}: there is no such heading`);
  }
}
for (const name of fs.readdirSync(out, { recursive: true })) {
  if (!name.endsWith(".css")) continue;
  if (/url\(["']?(https?:|\/\/)/.test(fs.readFileSync(path.join(out, name), "utf8"))) problems.push(`${name} loads something from elsewhere`);
}
for (const problem of new Set(problems)) console.error(problem);
console.log(`${pages.size} pages, ${links} links, ${problems.length} problems`);
process.exit(problems.length > 0 ? 1 : 0);
