// Ten minutes of load, and whether the gateway's memory and queues stay where they were. Prints a line for every half minute.
import { fixed, heading, table, whole } from "../report.js";
import { median } from "../statistics.js";
import type { Arena } from "./contestants.js";
import { load, type Request } from "./load.js";

const sampleSeconds = 30;
const connections = 64;
const minutes = Number(process.env.PALISADE_SOAK_MINUTES ?? 10);
const perSecond = process.env.PALISADE_SOAK_RATE === undefined ? undefined : Number(process.env.PALISADE_SOAK_RATE);

interface Sample {
  readonly rssMb: number;
  readonly heapMb: number;
  readonly handles: number;
  readonly queued: number;
}

async function sample(adminUrl: string): Promise<Sample> {
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
  const value = (name: string): number => {
    const line = new RegExp(`^${name}(?:\\{[^}]*\\})? ([0-9.e+]+)$`, "m").exec(metrics)?.[1];
    if (line === undefined) throw new Error(`/metrics has no ${name}`);
    return Number(line);
  };
  return {
    rssMb: value("process_resident_memory_bytes") / 1e6,
    heapMb: value("nodejs_heap_size_used_bytes") / 1e6,
    handles: value("nodejs_active_handles_total"),
    queued: value("palisade_queued_writes"),
  };
}

function puts(connection: number): Request[] {
  return Array.from({ length: 200 }, (_, i) => ({
    method: "PUT",
    path: `/v1/resources/soak/${connection}-${i}`,
    headers: { "content-type": "application/json", "fencing-token": String(1 + (i % 5 === 0 ? 1 : 7)) },
    body: JSON.stringify({ connection, i, filler: "x".repeat(100) }),
  }));
}

export async function soak({ gateway }: Arena): Promise<void> {
  heading(`${minutes} minutes of load`, `${connections} connections of PUTs; MB and counts after each ${sampleSeconds} s`);
  const samples: Sample[] = [];
  const rows: string[][] = [];
  for (let at = 0; at < minutes * 60; at += sampleSeconds) {
    const measured = await load({ url: gateway.url, connections, seconds: sampleSeconds, perSecond, requestsOf: puts, expect: "2xx" });
    const seen = await sample(gateway.adminUrl ?? "");
    samples.push(seen);
    rows.push([
      `${at + sampleSeconds} s`,
      whole(measured.perSecond),
      fixed(seen.rssMb, 0),
      fixed(seen.heapMb, 0),
      String(seen.handles),
      String(seen.queued),
    ]);
  }
  console.log(
    table(
      [{ title: "after" }, { title: "per s" }, { title: "rss MB" }, { title: "heap MB" }, { title: "handles" }, { title: "queued" }],
      rows,
    ),
  );
  const third = Math.max(1, Math.floor(samples.length / 3));
  const rss = (part: readonly Sample[]): number => median(part.map(({ rssMb }) => rssMb));
  const growth = rss(samples.slice(-third)) / rss(samples.slice(third, 2 * third)) - 1;
  console.log(`resident memory, last third against middle third: ${fixed(growth * 100, 1)} %`);
}
