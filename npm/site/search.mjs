/** How the site's search ranks: guides above API pages and tables of tests. */
export const searchOptions = {
  fuzzy: 0.1,
  prefix: true,
  boost: { title: 6, text: 2, titles: 1 },
  // Sent to the page as text, so it uses nothing from outside.
  boostDocument: (id) => (id.includes("/api/") ? 0.02 : id.includes("/reference/promises") ? 0.3 : 1),
};
