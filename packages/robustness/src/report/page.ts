// A picture in a page that needs no other file.
import { escaped } from "./drawing.js";

export function page(title: string, svg: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${escaped(title)}</title>
<style>:root{color-scheme:light dark}body{margin:0}svg{display:block;margin:auto;max-width:100%;height:auto}</style></head>
<body>${svg}</body></html>
`;
}
