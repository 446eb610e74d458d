// The help texts and the completion of shells, from the table of commands.
import { type Command, commands, type Flag, flagHelp, generalFlags } from "./command-list.js";

const usage = (name: string, { words }: Command) => ["palisade", name, ...words].join(" ");
const flagLine = ([name, { value, help }]: readonly [string, Flag]) =>
  `  ${`--${name}${value === undefined ? "" : ` ${value}`}`.padEnd(20)}${help}`;

export function helpText(): string {
  const list = Object.entries(commands).map(([name, command]) => `  ${[name, ...command.words].join(" ").padEnd(26)}${command.help}`);
  return `palisade: look at the lock and its fences, and act on them

${list.join("\n")}
  ${"completion bash|zsh".padEnd(26)}a script for the shell: eval "$(palisade completion bash)"

${Object.entries(generalFlags).map(flagLine).join("\n")}

Exit codes: 0 done, 1 the answer is no, 2 wrong arguments, 3 too few nodes or no gateway answered, 4 refused.
Examples:
${Object.values(commands)
  .map(({ example }) => `  ${example}`)
  .join("\n")}
  palisade ls --json | jq '.held[].resource'
`;
}

export function commandHelp(name: string, command: Command): string {
  const flags = command.flags.map((flag): [string, Flag] => [flag, flagHelp[flag]]);
  const own = flags.length === 0 ? "" : `\n${flags.map(flagLine).join("\n")}\n`;
  return `${usage(name, command)}: ${command.help}\n${own}\nExample: ${command.example}\npalisade --help lists what every command takes.\n`;
}

export function completionScript(shell: string): string | undefined {
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
