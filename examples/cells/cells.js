// node cells.js get RESOURCE | set RESOURCE JSON | move RESOURCE CELL
// CELLS is a JSON object: by the name of each cell its nodes, and the url and the key of its
// gateway. The first one keeps the directory, and is the home of every tenant that has no other.
import { createGatewayClient, rawJson, withResource } from "@palisade/client";
import { createLocker } from "@palisade/lock";
import { moveResource } from "./move.js";

const [command = "", resource, argument = ""] = process.argv.slice(2);
if (!["get", "set", "move"].includes(command) || resource === undefined || (command !== "get" && argument === ""))
  throw new Error("usage: node cells.js get RESOURCE | set RESOURCE JSON | move RESOURCE CELL");

const ttlMs = Number(process.env.TTL_MS ?? 10_000);
/** @type {{ [name: string]: { nodes: string[], url: string, apiKey?: string, namespace?: string } }} */
const given = JSON.parse(process.env.CELLS ?? "{}");
const cells = Object.entries(given).map(([name, { nodes, url, apiKey, namespace }]) => {
  return { name, locker: createLocker({ nodes, ttlMs, ...(namespace && { namespace }) }), client: createGatewayClient({ url, apiKey }) };
});
const cellOf = (/** @type {string} */ name) => {
  const cell = cells.find((cell) => cell.name === name);
  if (cell === undefined) throw new Error(`there is no cell ${name}`);
  return cell;
};
const [first] = cells;
if (first === undefined) throw new Error("CELLS names no cell");
const directory = createDirectory(first);

try {
  // One cell for the lock and for the gateway: a lease of one cell means nothing in another.
  const cell = cellOf(await directory.cellOf(resource));
  if (command === "get") {
    const read = await cell.client.get(resource);
    console.log(JSON.stringify(read.ok ? read.value : null), "in", cell.name);
  }
  if (command === "set") {
    await withResource(cell.locker, cell.client, resource, () => rawJson(argument));
    console.log("stored in", cell.name);
  }
  if (command === "move") {
    const step = (/** @type {string} */ name) => console.log(name);
    console.log(await moveResource({ resource, from: cell, to: cellOf(argument), directory, step }));
  }
} finally {
  await Promise.all(cells.map(({ locker }) => locker.close()));
}

// Which cell has a resource. The first part of a name is the tenant; a tenant has a home, and single
// resources of it may have been moved. An entry is a document like any other, in one of the cells.
/** @param {import("./move.js").Cell} first */
function createDirectory({ name: home, locker, client }) {
  /** @typedef {{ home: string, moved: { [resource: string]: string } }} Entry */
  const entryOf = (/** @type {string} */ resource) => `cells/${resource.split("/")[0]}`;
  return {
    async cellOf(/** @type {string} */ resource) {
      const entry = await client.get(entryOf(resource));
      if (!entry.ok && entry.code !== "not_found") throw new Error(`${entryOf(resource)} cannot be read: ${entry.code}`);
      const known = entry.ok ? /** @type {Entry} */ (entry.value) : undefined;
      return known?.moved[resource] ?? known?.home ?? home;
    },
    async move(/** @type {string} */ resource, /** @type {string} */ cell) {
      /** @type {(entry: Entry | null) => Entry} */
      const moved = (entry) => ({ home: entry?.home ?? home, moved: { ...entry?.moved, [resource]: cell } });
      await withResource(locker, client, entryOf(resource), moved);
    },
  };
}
