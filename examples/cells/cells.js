// node cells.js get RESOURCE | set RESOURCE JSON | move RESOURCE CELL
// CELLS is a JSON object: by the name of each cell its nodes, and the url and the key of its
// gateway. The first one keeps the directory, and is the home of every tenant that has no other.
import { createGatewayClient, rawJson, withResource } from "@palisade/client";
import { createLocker } from "@palisade/lock";
import { moveResource } from "./move.js";

const [command, resource, argument] = process.argv.slice(2);
if (!["get", "set", "move"].includes(command) || resource === undefined || (command !== "get" && argument === undefined))
  throw new Error("usage: node cells.js get RESOURCE | set RESOURCE JSON | move RESOURCE CELL");

const ttlMs = Number(process.env.TTL_MS ?? 10_000);
const cells = Object.entries(JSON.parse(process.env.CELLS)).map(([name, { nodes, url, apiKey, namespace }]) => {
  return { name, locker: createLocker({ nodes, ttlMs, ...(namespace && { namespace }) }), client: createGatewayClient({ url, apiKey }) };
});
const cellOf = (name) => cells.find((cell) => cell.name === name);
const directory = createDirectory(cells[0], { home: cells[0].name });

try {
  // One cell for the lock and for the gateway: a lease of one cell means nothing in another.
  const cell = cellOf(await directory.cellOf(resource));
  if (command === "get") console.log(JSON.stringify((await cell.client.get(resource)).value ?? null), "in", cell.name);
  else if (command === "set") {
    await withResource(cell.locker, cell.client, resource, () => rawJson(argument));
    console.log("stored in", cell.name);
  } else {
    const to = cellOf(argument);
    if (to === undefined) throw new Error(`there is no cell ${argument}`);
    console.log(await moveResource({ resource, from: cell, to, directory, step: (name) => console.log(name) }));
  }
} finally {
  await Promise.all(cells.map(({ locker }) => locker.close()));
}

// Which cell has a resource. The first part of a name is the tenant; a tenant has a home, and single
// resources of it may have been moved. An entry is a document like any other, in one of the cells.
function createDirectory({ locker, client }, { home }) {
  const entryOf = (resource) => `cells/${resource.split("/")[0]}`;
  return {
    async cellOf(resource) {
      const entry = await client.get(entryOf(resource));
      if (!entry.ok && entry.code !== "not_found") throw new Error(`${entryOf(resource)} cannot be read: ${entry.code}`);
      return entry.ok ? (entry.value.moved[resource] ?? entry.value.home) : home;
    },
    async move(resource, cell) {
      const moved = (entry) => ({ home: entry?.home ?? home, moved: { ...entry?.moved, [resource]: cell } });
      await withResource(locker, client, entryOf(resource), moved);
    },
  };
}
