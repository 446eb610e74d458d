// The second copy of pg is an older version under another name; its types are those of the first.
declare module "pg-second-copy" {
  import pg from "pg";
  export default pg;
}
