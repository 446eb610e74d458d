// The key file while the gateway runs.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { makeApiKey } from "../../../src/http/api-keys.js";
import { loadCredentials } from "../../../src/settings/credentials.js";
import { readEnvironment } from "../../../src/settings/environment.js";

const folder = mkdtempSync(join(tmpdir(), "palisade-credentials-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("G2 a key file whose list was emptied withdraws the last key, and opens nothing", async () => {
  const file = join(folder, "emptied.json");
  const { key, sha256 } = makeApiKey();
  const write = (keys: readonly object[]): void => writeFileSync(file, JSON.stringify({ keys }));
  const entry = { id: "worker", sha256, scopes: ["write:"] };
  write([entry]);
  const env = { DATABASE_URL: "postgres://db.example/app", PALISADE_API_KEYS_FILE: file };
  const credentials = loadCredentials(readEnvironment(env).settings, (setting) => setting);
  const origin = { headers: { host: "localhost", forwarded: false }, socket: { remoteAddress: "127.0.0.1" } };
  const answer = () => credentials.authenticator.authenticate(`Bearer ${key}`, origin);
  expect(answer()).toMatchObject({ id: "worker" });
  write([]);
  await credentials.reload();
  expect(answer()).toMatchObject({ code: "unauthenticated" });
  expect(credentials.isOpen).toBe(false);
  expect(credentials.readiness).toMatchObject({ status: "warning", detail: "no API keys: every call is refused" });
  writeFileSync(file, "{}");
  await expect(credentials.reload()).rejects.toThrow("not a list of keys");
  expect(answer()).toMatchObject({ code: "unauthenticated" });
  write([entry]);
  await credentials.reload();
  expect(answer()).toMatchObject({ id: "worker" });
  expect(credentials.readiness).toMatchObject({ status: "ok" });
});

test("G2 a key file that changes while the gateway starts is read again, once for each change", async () => {
  const file = join(folder, "keys.json");
  const write = (id: string): void =>
    writeFileSync(file, JSON.stringify({ keys: [{ id, sha256: makeApiKey().sha256, scopes: ["write:"] }] }));
  write("old");
  const env = { DATABASE_URL: "postgres://db.example/app", PALISADE_API_KEYS_FILE: file };
  const credentials = loadCredentials(readEnvironment(env).settings, (setting) => setting);
  write("new");
  const onChange = vi.fn(() => void credentials.reload());
  credentials.watch(onChange);
  try {
    await vi.waitFor(() => expect(onChange).toHaveBeenCalledTimes(1), { timeout: 20_000 });
    write("newer");
    await vi.waitFor(() => expect(onChange).toHaveBeenCalledTimes(2), { timeout: 20_000 });
  } finally {
    credentials.close();
  }
});
