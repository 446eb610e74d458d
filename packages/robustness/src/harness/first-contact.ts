// The first contact of a locker with its nodes. Where a whole crew starts at once, on a busy machine, it may take longer than one call waits. Decides only how often it is
// tried.
const TRIES = 10;

export async function firstContact(contender: { ready(): Promise<unknown> }): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await contender.ready();
      return;
    } catch (error) {
      if (tries === TRIES) throw error;
    }
  }
}
