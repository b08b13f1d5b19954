// What the steps of the build share: where things are, and how a heading is named in links.

import { fileURLToPath } from "node:url";
import path from "node:path";

export const here = path.dirname(fileURLToPath(import.meta.url));
export const top = path.resolve(here, "../..");
export const docs = path.join(top, "docs");
export const src = path.join(here, ".src");
export const out = process.env.SITE || path.join(top, "bin/site");

// Links that leave docs/ lead to the source.
export const source = "https://github.com/starling-operator/starling/blob/main/";

// slugify names a heading as links in docs/ do: the rule of links_test.go.
export function slugify(text) {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
}
