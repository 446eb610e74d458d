// What the search finds: pages for users before the reference, and of the reference what is exported.

/** The names of what a package exports are headings; their members are text. @param {string} html */
const withoutMembers = (html) => html.replaceAll(/<h([4-6])[^>]*>(.*?)<\/h\1>/gs, "<p>$2</p>");

/** VitePress sends the functions to the browser as text, so each must stand by itself. */
export const searchOptions = {
  prefix: true,
  fuzzy: (/** @type {string} */ term) => (term.length > 5 ? 0.15 : false),
  boost: { title: 3, titles: 2, text: 1 },
  boostDocument: (/** @type {string} */ id) => (id.includes("/api/") ? 0.3 : /\/(spec|deploy)\//.test(id) ? 0.6 : 1),
  processTerm: (/** @type {string} */ term) => {
    const word = term.toLowerCase();
    return /^(a|an|and|as|at|by|can|do|does|for|from|how|i|in|is|it|my|of|on|or|the|to|what|when|why|with)$/.test(word) ? null : word;
  },
};

export const search = {
  provider: /** @type {const} */ ("local"),
  options: {
    miniSearch: { searchOptions },
    /** @param {string} source @param {{ relativePath: string, frontmatter?: { search?: boolean } }} env @param {{ render(source: string, env: object): string }} markdown */
    _render(source, env, markdown) {
      const html = markdown.render(source, env);
      if (env.frontmatter?.search === false) return "";
      return env.relativePath.startsWith("api/") ? withoutMembers(html) : html;
    },
  },
};
