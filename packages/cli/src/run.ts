// One run of the program: arguments to a command, its report to the output, what went wrong to the
// errors.
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { type Command, commands, type Flag, flagHelp, generalFlags } from "./command-list.js";
import { Context, type Terminal } from "./context.js";
import { exitCodeOf, UsageError } from "./failure.js";
import { render, type Style } from "./report.js";
import { type Environment, type GeneralFlags, settingsFrom } from "./settings.js";
import { printable } from "./text.js";

export interface Program extends Terminal {
  readonly args: readonly string[];
  readonly env: Environment;
}

export async function run(program: Program): Promise<number> {
  try {
    return await started(program);
  } catch (error) {
    program.errors.write(`palisade: ${printable(error instanceof Error ? error.message : String(error))}\n`);
    return exitCodeOf(error);
  }
}

type Given = Readonly<Record<string, string | boolean | undefined>>;

async function started(program: Program): Promise<number> {
  const { values, positionals } = parsed(program.args);
  const [name, ...words] = positionals;
  const say = (text: string): 0 => {
    program.output.write(text);
    return 0;
  };
  if (values.version === true) return say(`${version()}\n`);
  if (name === undefined) return say(helpText(widthOf(program)));
  if (name === "completion") return say(completionFor(words));
  const command = commandNamed(name);
  if (values.help === true) return say(commandHelp(name, command, widthOf(program)));
  checkWords(name, command, words);
  checkFlags(name, command, values);
  const style = styleOf(program, values);
  await using context = new Context(settingsFrom(values as GeneralFlags, program.env), program, style);
  const report = await command.run(context, words, values);
  if (report === 0) return 0;
  program.output.write(values.json === true ? `${JSON.stringify(report.json, null, 2)}\n` : render(report, style));
  return report.exitCode ?? 0;
}

function parsed(args: readonly string[]): { readonly values: Given; readonly positionals: readonly string[] } {
  const known = Object.entries({ ...generalFlags, ...flagHelp });
  const options = Object.fromEntries(
    known.map(([flag, { value }]) => [flag, { type: value === undefined ? "boolean" : "string" } as const]),
  );
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    const [said = ""] = (error instanceof Error ? error.message : String(error)).split(/\.?\s*\n|\. To /);
    throw new UsageError(`${said}; palisade --help lists what there is.`);
  }
}

function commandNamed(name: string): Command {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command !== undefined) return command;
  throw new UsageError(`${JSON.stringify(name)} is no command; palisade --help lists them.`);
}

function checkWords(name: string, { words }: Command, given: readonly string[]): void {
  const needed = words.filter((word) => !word.startsWith("["));
  if (given.length < needed.length) throw new UsageError(`${name} needs ${needed[given.length]}: palisade ${[name, ...words].join(" ")}`);
  if (given.length > words.length)
    throw new UsageError(`${JSON.stringify(given[words.length])} is not understood: palisade ${[name, ...words].join(" ")}`);
}

function checkFlags(name: string, { flags }: Command, values: Given): void {
  const foreign = Object.keys(flagHelp).find((flag) => values[flag] !== undefined && !flags.includes(flag as keyof typeof flagHelp));
  if (foreign !== undefined) throw new UsageError(`${name} has no --${foreign}; palisade ${name} --help says what it has.`);
}

function completionFor([shell = "", ...rest]: readonly string[]): string {
  const script = rest.length === 0 ? completionScript(shell) : undefined;
  if (script === undefined) throw new UsageError("completion needs the name of a shell: bash or zsh.");
  return script;
}

function styleOf({ output, env }: Program, values: Given): Style {
  if (output.isTTY !== true) return { colours: false, columns: undefined };
  const colours = values["no-color"] !== true && (env.NO_COLOR ?? "") === "" && env.TERM !== "dumb";
  return { colours, columns: widthOf({ output }) };
}

function widthOf({ output }: Pick<Program, "output">): number {
  return Math.max(20, output.columns ?? 80);
}

function version(): string {
  return (JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { version: string }).version;
}

// The help texts and the completion of shells, from the table of commands.

const usage = (name: string, { words }: Command) => ["palisade", name, ...words].join(" ");

type HelpLine = readonly [name: string, help: string];
const flagLine = ([name, { value, help }]: readonly [string, Flag]): HelpLine => [
  `--${name}${value === undefined ? "" : ` ${value}`}`,
  help,
];

/** In two columns, the second of which goes on in its own lines. */
function inColumns(lines: readonly HelpLine[], width: number): string {
  const first = 2 + Math.max(...Object.entries(commands).map(([name, { words }]) => [name, ...words].join(" ").length)) + 2;
  return lines
    .map(([name, help]) => {
      const rest = wrapped(help, Math.max(20, width - first));
      return `  ${name.padEnd(first - 2)}${rest.join(`\n${" ".repeat(first)}`)}`;
    })
    .join("\n");
}

function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

function helpText(width: number): string {
  const list = Object.entries(commands).map(([name, command]): HelpLine => [[name, ...command.words].join(" "), command.help]);
  return `palisade: look at the lock and its fences, and act on them

${inColumns([...list, ["completion bash|zsh", 'a script for the shell: eval "$(palisade completion bash)"']], width)}

${inColumns(Object.entries(generalFlags).map(flagLine), width)}

${wrapped("Exit codes: 0 done, 1 the answer is no, 2 wrong arguments, 3 too few nodes or no gateway answered, 4 refused.", width).join("\n")}
Examples:
${Object.values(commands)
  .map(({ example }) => `  ${example}`)
  .join("\n")}
  palisade ls --json | jq '.held[].resource'
`;
}

function commandHelp(name: string, command: Command, width: number): string {
  const flags = command.flags.map((flag) => flagLine([flag, flagHelp[flag]]));
  const own = flags.length === 0 ? "" : `\n${inColumns(flags, width)}\n`;
  return `${usage(name, command)}: ${command.help}\n${own}\nExample: ${command.example}\npalisade --help lists what every command takes.\n`;
}

function completionScript(shell: string): string | undefined {
  const names = [...Object.keys(commands), "completion"].join(" ");
  const flags = [...new Set([...Object.keys(generalFlags), ...Object.keys(flagHelp)])].map((flag) => `--${flag}`).join(" ");
  if (shell === "bash")
    return `_palisade() {
  local word="\${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "${names} ${flags}" -- "$word"))
  else COMPREPLY=($(compgen -W "${flags}" -- "$word")); fi
}
complete -F _palisade palisade
`;
  if (shell === "zsh")
    return `#compdef palisade
_palisade() {
  if (( CURRENT == 2 )); then compadd -- ${names} ${flags}; else compadd -- ${flags}; fi
}
compdef _palisade palisade
`;
  return undefined;
}
