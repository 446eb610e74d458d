// Colours of the pictures on white and on black, as variables. A word stands beside every colour that means something.

/** For up to so many curves in one panel. */
export const HUES = 6;

const light = {
  ...{ surface: "#fcfcfb", ink: "#1d1d1b", muted: "#6b6a64", hair: "#e4e2dc", shade: "#f3f2ee", bad: "#b3261e" },
  ...{ good: "#2f8f5b", doubt: "#d99a1c", look: "#5b8bd0", lease: "#dfe9f6", silence: "#f6e3e1", nodes: "#d9782d", links: "#7f8fa9" },
  ...{ gateways: "#8a5fc7", store: "#b8484f", clients: "#2c9a9a", ambush: "#4b5563" },
};
const dark = {
  ...{ surface: "#16181c", ink: "#e9e8e4", muted: "#9b9a94", hair: "#2e3137", shade: "#1c1f24", bad: "#ff8a80" },
  ...{ good: "#4dbd83", doubt: "#e6b24c", look: "#7aa7e8", lease: "#26364a", silence: "#3b2423", nodes: "#e9975a", links: "#7888a3" },
  ...{ gateways: "#ad8be3", store: "#dd7479", clients: "#4fbcbc", ambush: "#a3acb9" },
};
const hues = {
  light: ["#2a6fbb", "#c4651a", "#2f8a57", "#9a4fb0", "#8a7320", "#5b6770"],
  dark: ["#6aa9ee", "#e79a5b", "#63c08d", "#c78bdb", "#cbb45c", "#a3b0ba"],
};

function variables(colours: Readonly<Record<string, string>>, curves: readonly string[]): string {
  const named = Object.entries(colours).map(([name, value]) => `--${name}:${value}`);
  return [...named, ...curves.map((value, i) => `--hue${i}:${value}`)].join(";");
}

const fills = ["good", "doubt", "look", "lease", "silence", "nodes", "links", "gateways", "store", "clients", "ambush"];

export const style = `<style>
svg{${variables(light, hues.light)};color-scheme:light dark}
@media(prefers-color-scheme:dark){svg{${variables(dark, hues.dark)}}}
text{font-family:system-ui,-apple-system,"Segoe UI","Liberation Sans",sans-serif;font-size:11px;fill:var(--muted)}
.surface{fill:var(--surface)}.warm{fill:var(--shade)}
.headline{font-size:20px;font-weight:600;fill:var(--ink)}.remark{font-size:12.5px}
.group{font-size:14px;font-weight:600;fill:var(--ink)}.title{font-size:12px;fill:var(--ink)}
.end{text-anchor:end}.middle{text-anchor:middle}
.bad{fill:var(--bad);font-weight:700}.pause,.revision{fill:var(--ink)}
${fills.map((name) => `.${name}{fill:var(--${name})}`).join("")}
.hair{stroke:var(--hair);stroke-width:1;fill:none}.moment{stroke:var(--bad);stroke-dasharray:3 3}
.base{stroke:var(--muted);stroke-width:1;fill:none}
.curve{fill:none;stroke-width:1.3;stroke-linejoin:round}
${hues.light.map((_, i) => `.h${i}{stroke:var(--hue${i})}.k${i}{fill:var(--hue${i})}`).join("")}
.trend{stroke:var(--ink);stroke-width:1.3;stroke-dasharray:4 3;fill:none}
.trend.worse{stroke:var(--bad);stroke-width:2}
.mark{stroke:var(--muted);stroke-width:1.5}
</style>`;
