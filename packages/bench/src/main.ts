// `npm run bench [-- part…]`: every figure that the documentation claims, measured side by side in
// one run. Without arguments all parts are measured.
import { benchGateway, gatewayParts } from "./gateway/main.js";
import { benchLock, lockParts } from "./lock/main.js";

const asked = process.argv.slice(2);
const known = [...lockParts, ...gatewayParts];
const unknown = asked.filter((part) => !known.includes(part));

if (unknown.length > 0) {
  console.error(`There is no benchmark called ${unknown.join(", ")}; there are: ${known.join(", ")}.`);
  process.exitCode = 2;
} else {
  const chosen = asked.length === 0 ? known : asked;
  console.log(`Node ${process.version}, ${process.platform} ${process.arch}. Compare figures only within one run.`);
  if (chosen.some((part) => lockParts.includes(part))) await benchLock(chosen);
  if (chosen.some((part) => gatewayParts.includes(part))) await benchGateway(chosen);
}
