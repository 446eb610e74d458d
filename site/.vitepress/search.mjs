// What the search finds: pages for users before the reference, and of the reference what is exported.
// VitePress sends the functions to the browser as text, so each must stand by itself.

const searchOptions = {
  prefix: true,
  fuzzy: (/** @type {string} */ term) => (term.length > 5 ? 0.15 : false),
  boost: { title: 3, titles: 1, text: 1 },
  boostDocument: (/** @type {string} */ id, /** @type {string} */ term) => {
    if (/\/docs\/(errors|settings)\./.test(id)) return /[_\d]/.test(term) ? 4 : 0.3; // Lists of names.
    if (/\/(api|spec)\//.test(id)) return 0.3;
    if (/\/(deploy|docs\/citus|docs\/failure-modes)\b/.test(id)) return 0.6;
    return id.includes("/packages/lock/") ? 1.2 : 1;
  },
  /** Beside others these words say little here. */
  boostTerm: (/** @type {string} */ term, /** @type {number} */ _, /** @type {string[]} */ terms) =>
    terms.length > 1 && /^(locks?|redis|nodes?|keys?|palisade)$/i.test(term) ? 0.2 : 1,
  tokenize: (/** @type {string} */ text) => text.split(/[^\p{L}\p{N}_]+/u),
  processTerm: (/** @type {string} */ term) => {
    const word = term.toLowerCase();
    return /^(a|an|and|as|at|by|can|do|does|for|from|how|i|in|is|it|my|of|on|or|the|to|what|when|why|with)$/.test(word) ? null : word;
  },
};

/** A name with underscores is a word, and so is each part of it. @param {string} text */
const tokenize = (text) => text.split(/[^\p{L}\p{N}_]+/u).flatMap((word) => (word.includes("_") ? [word, ...word.split("_")] : [word]));

export const miniSearch = { options: { tokenize }, searchOptions };

/** The names of what a package exports are headings; their members are text. @param {string} html */
const withoutMembers = (html) => html.replaceAll(/<h([4-6])[^>]*>(.*?)<\/h\1>/gs, "<p>$2</p>");

/**
 * What is indexed of a page, when the site is built.
 * @param {string} source @param {{ relativePath: string, frontmatter?: { search?: boolean } }} env
 * @param {{ render(source: string, env: object): string }} markdown
 */
function _render(source, env, markdown) {
  const html = markdown.render(source, env);
  if (env.frontmatter?.search === false) return "";
  return env.relativePath.startsWith("api/") ? withoutMembers(html) : html;
}

export const search = { provider: /** @type {const} */ ("local"), options: { miniSearch, _render } };
