// The key file while the gateway runs.
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { makeApiKey } from "../../../src/http/api-keys.js";
import { Credentials } from "../../../src/settings/credentials.js";
import { readEnvironment } from "../../../src/settings/settings.js";

const origin = { headers: { host: "localhost", forwarded: false }, socket: { remoteAddress: "127.0.0.1" } };
const folder = mkdtempSync(join(tmpdir(), "palisade-credentials-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("G2 a key file whose list was emptied withdraws the last key, and opens nothing", async () => {
  const file = join(folder, "emptied.json");
  const { key, sha256 } = makeApiKey();
  const write = (keys: readonly object[]): void => writeFileSync(file, JSON.stringify({ keys }));
  const entry = { id: "worker", sha256, scopes: ["write:"] };
  write([entry]);
  const env = { DATABASE_URL: "postgres://db.example/app", PALISADE_API_KEYS_FILE: file };
  const credentials = new Credentials(readEnvironment(env).settings, (setting) => setting);
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
  const credentials = new Credentials(readEnvironment(env).settings, (setting) => setting);
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

test("G2 a good key file counts while the public keys cannot be fetched: each is told by itself, and fetched until it comes", async () => {
  const issuer = { status: 503, asked: 0 };
  const server = createServer((_request, response) => {
    issuer.asked += 1;
    response.writeHead(issuer.status, { "Content-Type": "application/json" }).end('{"keys":[]}');
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const file = join(folder, "beside-an-issuer.json");
  const [first, second] = [makeApiKey(), makeApiKey()];
  const accept = ({ sha256 }: { readonly sha256: string }): void =>
    writeFileSync(file, JSON.stringify({ keys: [{ id: "worker", sha256, scopes: ["write:"] }] }));
  accept(first);
  const env = {
    DATABASE_URL: "postgres://db.example/app",
    PALISADE_API_KEYS_FILE: file,
    PALISADE_JWT_JWKS_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`,
    PALISADE_JWT_AUDIENCE: "gateway",
    PALISADE_JWT_ISSUER: "issuer",
  };
  const credentials = new Credentials(readEnvironment(env).settings, (setting) => setting);
  const answer = ({ key }: { readonly key: string }) => credentials.authenticator.authenticate(`Bearer ${key}`, origin);
  const publicKeys = "the public keys of JWTs could not be fetched again, so those from before count until they are too old";
  try {
    accept(second);
    await expect(credentials.reload()).rejects.toThrow(`${publicKeys}: `);
    expect(answer(first)).toMatchObject({ code: "unauthenticated" });
    expect(answer(second)).toMatchObject({ id: "worker" });
    expect(credentials.readiness).toMatchObject({ status: "warning", detail: `1 API keys and JWT; ${publicKeys}` });
    credentials.watch(() => undefined);
    issuer.status = 200;
    await vi.waitFor(() => expect(credentials.readiness).toMatchObject({ status: "ok" }), { timeout: 20_000 });
    writeFileSync(file, "{");
    issuer.asked = 0;
    await expect(credentials.reload()).rejects.toThrow("the key file could not be read again, so the API keys from before are in use: ");
    expect(issuer.asked).toBe(1);
    expect(answer(second)).toMatchObject({ id: "worker" });
    expect(credentials.readiness.detail).not.toContain("public keys");
  } finally {
    credentials.close();
    server.close();
  }
});
