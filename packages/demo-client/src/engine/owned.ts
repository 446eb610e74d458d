// Things that were opened together and are closed together, the last one first.
export class Owned implements AsyncDisposable {
  readonly #things: AsyncDisposable[] = [];

  own<Thing extends AsyncDisposable>(thing: Thing): Thing {
    this.#things.push(thing);
    return thing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const thing of this.#things.splice(0).reverse()) await thing[Symbol.asyncDispose]();
  }
}
