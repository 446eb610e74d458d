// Thrown when a story ends otherwise than it must: the demonstration has failed, not the program. Decides nothing.
export class StoryDiffers extends Error {
  override readonly name = "StoryDiffers";
}
