// Thrown where the simulated server is asked for something that it does not do. It ends the run: it must not pass for an answer of Redis.
export class Unsupported extends Error {
  constructor(what: string) {
    super(`the simulated server does not support ${what}`);
  }
}
