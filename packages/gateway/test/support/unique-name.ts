let names = 0;

/** A resource name that no other test of this process has. */
export function uniqueName(prefix = "r"): string {
  names += 1;
  return `${prefix}/${process.pid}-${names}`;
}
