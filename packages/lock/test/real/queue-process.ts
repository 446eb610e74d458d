// A process that waits for a lock, and tells its parent when it has it. Not a test.
import { createLocker, type LockerOptions } from "@palisade/lock";

const locker = createLocker(JSON.parse(process.argv[2] ?? "") as LockerOptions);
process.on("disconnect", () => process.exit());
const lease = await locker.acquire("r", { waitMs: 60_000 });
process.send?.(lease.token);
