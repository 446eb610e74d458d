// The database that test files get: migrated, and distributed where the project runs on Citus.
import { migrate } from "@palisade/gateway";
import { type DatabaseTemplate, sharedServers } from "@palisade/testkit/vitest";
import { distribute } from "../../src/store/migrate.js";

export const isOnCitus = (): boolean => sharedServers().workers.length > 0;

export function gatewayTemplate(): DatabaseTemplate {
  if (!isOnCitus()) return { name: "gateway", migrate };
  return {
    name: "gateway-on-citus",
    migrate: async (url) => {
      await migrate(url);
      await distribute(url);
    },
  };
}
