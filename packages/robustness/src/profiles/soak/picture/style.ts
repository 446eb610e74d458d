// How the picture looks on white and on black: colours as variables, set once for each. Colour never says alone what a word says as well.

/** For up to so many curves in one panel. */
export const HUES = 6;

const light = { surface: "#fcfcfb", ink: "#1d1d1b", muted: "#6b6a64", hair: "#e4e2dc", shade: "#f3f2ee", bad: "#b3261e" };
const dark = { surface: "#16181c", ink: "#e9e8e4", muted: "#9b9a94", hair: "#2e3137", shade: "#1c1f24", bad: "#ff8a80" };
const hues = {
  light: ["#2a6fbb", "#c4651a", "#2f8a57", "#9a4fb0", "#8a7320", "#5b6770"],
  dark: ["#6aa9ee", "#e79a5b", "#63c08d", "#c78bdb", "#cbb45c", "#a3b0ba"],
};

function variables(colours: Readonly<Record<string, string>>, curves: readonly string[]): string {
  const named = Object.entries(colours).map(([name, value]) => `--${name}:${value}`);
  return [...named, ...curves.map((value, i) => `--hue${i}:${value}`)].join(";");
}

export const style = `<style>
svg{${variables(light, hues.light)};color-scheme:light dark}
@media(prefers-color-scheme:dark){svg{${variables(dark, hues.dark)}}}
text{font-family:system-ui,-apple-system,"Segoe UI","Liberation Sans",sans-serif;font-size:11px;fill:var(--muted)}
.surface{fill:var(--surface)}.warm{fill:var(--shade)}
.headline{font-size:20px;font-weight:600;fill:var(--ink)}.remark{font-size:12.5px}
.group{font-size:14px;font-weight:600;fill:var(--ink)}.title{font-size:12px;fill:var(--ink)}
.end{text-anchor:end}.middle{text-anchor:middle}
.bad{fill:var(--bad);font-weight:700}
.hair{stroke:var(--hair);stroke-width:1;fill:none}
.base{stroke:var(--muted);stroke-width:1;fill:none}
.curve{fill:none;stroke-width:1.3;stroke-linejoin:round}
${hues.light.map((_, i) => `.h${i}{stroke:var(--hue${i})}.k${i}{fill:var(--hue${i})}`).join("")}
.trend{stroke:var(--ink);stroke-width:1.3;stroke-dasharray:4 3;fill:none}
.trend.worse{stroke:var(--bad);stroke-width:2}
.mark{stroke:var(--muted);stroke-width:1.5}
</style>`;
