// Thrown for anything that the simulated server does not implement. It ends the run, so that it
// cannot pass for an answer of Redis.
export class Unsupported extends Error {
  constructor(what: string) {
    super(`the simulated server does not support ${what}`);
  }
}
