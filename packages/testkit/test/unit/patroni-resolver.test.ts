// What is said where the programs of a Patroni cluster are missing.
import { describe, expect, test } from "vitest";
import { MissingPrograms, resolvePatroniPrograms } from "../../src/resolve/patroni.js";

describe("a machine without them", () => {
  const nothing = () => resolvePatroniPrograms({ PATH: "", PALISADE_POSTGRES_BIN: "/no/such/folder" }, { patroni: [] });

  test("is told everything that is missing at once, and the packages that bring it", async () => {
    await expect(nothing()).rejects.toBeInstanceOf(MissingPrograms);
    await expect(nothing()).rejects.toThrow(
      /there is no patroni that runs; there is no Postgres with .*pg_basebackup.*PALISADE_POSTGRES_BIN/,
    );
    await expect(nothing()).rejects.toThrow(/apt-get install patroni etcd-server haproxy postgresql$/);
  });
});
