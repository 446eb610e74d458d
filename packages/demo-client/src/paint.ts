// Colour where people look: at a terminal. Piped output stays plain, also in CI, where picocolors by itself would colour it; NO_COLOR and FORCE_COLOR are heard.
import picocolors from "picocolors";

function wanted(stream: { readonly isTTY?: boolean }): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = process.env;
  if (NO_COLOR) return false;
  if (FORCE_COLOR) return FORCE_COLOR !== "0";
  return stream.isTTY === true && TERM !== "dumb";
}

/** For standard output. */
export const paint = picocolors.createColors(wanted(process.stdout));
/** For standard error. */
export const errorPaint = picocolors.createColors(wanted(process.stderr));
