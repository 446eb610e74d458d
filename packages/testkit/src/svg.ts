// Text for pictures and pages.

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** For HTML and SVG: nothing in the text is markup. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}

type Attributes = Readonly<Record<string, string | number | undefined>>;

/** An element with what is inside of it, which is markup; numbers have one decimal at most. */
export function element(name: string, attributes: Attributes, inside?: string): string {
  const written = Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [` ${key}="${typeof value === "number" ? Math.round(value * 10) / 10 : escaped(value)}"`],
  );
  return inside === undefined ? `<${name}${written.join("")}/>` : `<${name}${written.join("")}>${inside}</${name}>`;
}

/** A picture that needs no other file; its style knows light and dark. */
export function svgDocument(
  picture: { readonly width: number; readonly height: number; readonly label: string; readonly style: string },
  parts: readonly string[],
): string {
  const { width, height, label, style } = picture;
  const size = { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}`, width, height };
  const ground = element("rect", { class: "surface", width, height });
  return `${element("svg", { ...size, role: "img", "aria-label": label }, ["", `<style>\n${style}\n</style>`, ground, ...parts, ""].join("\n"))}\n`;
}
