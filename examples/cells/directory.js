// Which cell has a resource. The first part of a name is the tenant; a tenant has a home, and single
// resources of it may have been moved. An entry is a document like any other, in one of the cells.
import { withResource } from "@palisade/client";

export function createDirectory({ locker, client }, { home }) {
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
