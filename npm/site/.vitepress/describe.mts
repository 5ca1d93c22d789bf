/** What a search engine shows of a page: its first sentences. */

/** The most characters that search engines show. */
const MOST = 160;

/** The first paragraph of a page, up to the last sentence that fits; `""` where it begins with anything else. */
export function describe(markdown: string): string {
  const [, first = ""] = /^# .*\n\n((?!```)[^\n|<#-][^\n]*(?:\n[^\n]+)*)/m.exec(markdown) ?? [];
  const text = first
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/[`*]/g, "")
    .replace(/\s+/g, " ");
  const sentences = text.split(/(?<=\.) (?=[A-Z])/);
  let described = sentences[0] ?? "";
  for (const sentence of sentences.slice(1)) {
    if (described.length + 1 + sentence.length > MOST) break;
    described += ` ${sentence}`;
  }
  return described.replace(/:$/, ".");
}
