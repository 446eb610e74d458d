// A worker's computation, as its director sees it: under way until it is told to be done. The worker hears no message meanwhile, so it is told by a file.
// Decides no moment.
import { writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { scratchFolder } from "@palisade/testkit";

export class Computation implements AsyncDisposable {
  readonly #folder = scratchFolder("computation");
  /** The file that ends it. */
  readonly doneWhen = join(this.#folder, "done");

  isDone(): void {
    writeFileSync(this.doneWhen, "");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}
