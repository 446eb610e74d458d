// A process that stands for election and tells its parent what happens to it. Not a test.
import { once } from "node:events";
import { createLocker, type LockerOptions } from "@palisade/lock";

const locker = createLocker(JSON.parse(process.argv[2] ?? "") as LockerOptions);
const campaign = locker.campaign("scheduler", async (term) => {
  process.send?.({ kind: "leads", token: term.token });
  if (!term.signal.aborted) await once(term.signal, "abort");
  process.send?.({ kind: "over", token: term.token, leads: term.leads, reason: String(term.signal.reason.reason) });
});
process.on("message", async (order) => {
  if (order === "resign") return campaign.resign();
  await campaign.stop();
  await locker.close();
  process.disconnect();
});
process.on("disconnect", () => process.exit());
await campaign.ended;
