// Takes more ports than one block has, prints them, and keeps its claim until its stdin ends.
import { takePort } from "@palisade/testkit";

const ports: number[] = [];
for (let count = 0; count < 120; count += 1) ports.push(await takePort());
process.stdout.write(`${JSON.stringify(ports)}\n`);
process.stdin.resume();
