/** The folders of pages, in the menu's order: its heading, and the pages that come first. The others follow by title. */
export const FOLDERS = {
  start: {
    text: "Start",
    first: ["node", "workers", "deno", "bun", "browser", "react", "react-native", "convex", "rust"],
  },
  frameworks: { text: "Frameworks", first: ["express", "fastify", "hono", "nestjs", "nextjs", "koa", "node", "fetch"] },
  stores: { text: "Stores", first: ["index", "memory", "shared", "file", "redis", "postgres"] },
  guide: { text: "Guides", first: ["algebra", "http", "outages", "errors", "testing", "limits", "security"] },
  recipes: { text: "Recipes", first: [] },
  migrate: { text: "Coming from", first: [] },
  reference: { text: "Reference", first: [] },
};
