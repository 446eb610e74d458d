// Runs a curl command line of the documentation with fetch, so that a machine without curl can
// check it. An option that is not listed here is an error.

/** What `curl -i` would print. */
export async function curl(command: string): Promise<string> {
  const { url, ...request } = requestOf(wordsOf(command));
  const response = await fetch(url, request);
  const head = [`HTTP/1.1 ${response.status} ${response.statusText}`, ...[...response.headers].map(([name, value]) => `${name}: ${value}`)];
  return `${head.join("\r\n")}\r\n\r\n${await response.text()}`;
}

/**
 * As a shell would split it: at white space, not inside '…', and a backslash at the end of a line
 * joins it to the next.
 */
function wordsOf(command: string): readonly string[] {
  const words = command.replaceAll("\\\n", " ").match(/'[^']*'|[^\s']+/g) ?? [];
  return words.map((word) => word.replace(/^'(.*)'$/s, "$1"));
}

function requestOf([program, ...words]: readonly string[]): RequestInit & { readonly url: string } {
  if (program !== "curl") throw new Error(`not a curl command: ${program}`);
  const request = { url: "", method: "GET", headers: new Headers(), body: null as string | null };
  const rest = words.values();
  const next = (): string => rest.next().value ?? "";
  for (const word of rest) {
    if (word === "-X") request.method = next();
    else if (word === "-H") request.headers.append(...headerOf(next()));
    else if (word === "-d") request.body = next();
    else if (word.startsWith("-") && word !== "-i") throw new Error(`an option of curl that these tests do not know: ${word}`);
    else if (word !== "-i") request.url = word;
  }
  return request;
}

function headerOf(line: string): [string, string] {
  const [, name = "", value = ""] = /^([^:]+): ?(.*)$/.exec(line) ?? [];
  return [name, value];
}
