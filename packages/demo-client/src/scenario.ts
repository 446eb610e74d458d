// What a scenario is: a story in acts, one of which shows the damage without the measure it is about. Decides nothing.
import type { Story } from "./story.js";
import type { Door } from "./worker-protocol.js";

export interface Scenario {
  readonly name: string;
  /** One line for the list. */
  readonly about: string;
  readonly acts: readonly Act[];
  /** The last line, when every claim of every act came true. */
  readonly proven: string;
}

export interface Act {
  readonly title: string;
  /** Lanes from left to right; who is first spoken of elsewhere joins at the right. */
  readonly actors: readonly string[];
  /** Through which the workers of this act reach the store. */
  readonly door: Door;
  readonly play: (story: Story) => Promise<void>;
}
