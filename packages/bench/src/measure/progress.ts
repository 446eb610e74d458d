// What runs now: on a terminal in one line that the next overwrites, elsewhere a line for each row.
export interface Progress {
  /** A row begins. */
  begin(title: string): void;
  /** What of the row runs now. */
  step(text: string): void;
  /** Nothing runs; what is printed next stands in a line of its own. */
  end(): void;
}

export function progressOn(stream: NodeJS.WriteStream): Progress {
  let current = "";
  const overwrite = (text: string): void => {
    stream.write(`\r\x1b[2K${text.slice(0, Math.max(20, (stream.columns ?? 80) - 1))}`);
  };
  return {
    begin(title) {
      current = title;
      if (stream.isTTY) overwrite(title);
      else stream.write(`${title} …\n`);
    },
    step(text) {
      if (stream.isTTY) overwrite(`${current}: ${text}`);
    },
    end() {
      if (stream.isTTY) overwrite("");
    },
  };
}
