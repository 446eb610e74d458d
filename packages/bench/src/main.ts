// `npm run bench [-- quick | usual | all | part…]`: every figure that the documentation claims,
// measured side by side in one run.
import { writeFileSync } from "node:fs";
import { type Asked, readCommandLine, usage } from "./command-line.js";
import { benchGateway, gatewayParts } from "./gateway/main.js";
import { lockParts } from "./lock/main.js";
import { thisMachine, versionsHere } from "./measure/machine.js";
import { type Context, countFor, effortFor, type Part } from "./measure/part.js";
import { progressOn } from "./measure/progress.js";
import type { Report, Result } from "./measure/results.js";
import { asText } from "./measure/text.js";

const parts: readonly Part[] = [...lockParts, ...gatewayParts];

async function measure(asked: Asked): Promise<Report> {
  const machine = thisMachine();
  const startedAt = new Date();
  console.log(`Node ${process.version}, ${process.platform} ${process.arch}. Compare figures only within one run.`);
  const results: Result[] = [];
  const progress = progressOn(process.stderr);
  const context: Context = {
    ...{ scope: asked.scope, beside: asked.beside, progress, effort: effortFor(asked.scope, asked), count: countFor(asked) },
    publish(result) {
      progress.end();
      results.push(result);
      console.log(asText(result));
    },
  };
  for (const part of lockParts) if (asked.parts.includes(part.name)) await part.run(context);
  const ofGateway = gatewayParts.filter(({ name }) => asked.parts.includes(name));
  if (ofGateway.length > 0) await benchGateway(ofGateway, context);
  return {
    ...{ format: 1, scope: asked.scope, leftOut: asked.leftOut, machine, results, versions: versionsHere() },
    command: ["npm run bench", ...(process.argv.length > 2 ? ["--", ...process.argv.slice(2)] : [])].join(" "),
    startedAt: startedAt.toISOString(),
    tookSeconds: Math.round((Date.now() - startedAt.getTime()) / 1_000),
  };
}

async function main(): Promise<void> {
  let asked: Asked | undefined;
  try {
    asked = readCommandLine(process.argv.slice(2), parts);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage(parts)}`);
    process.exitCode = 2;
    return;
  }
  if (asked === undefined) return console.log(usage(parts));
  const report = await measure(asked);
  if (asked.json !== undefined) writeFileSync(asked.json, `${JSON.stringify(report)}\n`);
}

await main();
