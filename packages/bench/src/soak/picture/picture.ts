// stub
export function draw(..._all: unknown[]): string {
  return "";
}
