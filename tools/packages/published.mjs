// The packages that users install, in the order in which they can be published.
export const published = ["lock", "client", "cli", "guard", "gateway", "dev"];
