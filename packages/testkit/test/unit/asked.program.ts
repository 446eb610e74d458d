// Squares what it is asked for, and never answers 0.
import { answerParent } from "@palisade/testkit";

const tell = answerParent<number, string>(async (number) => {
  tell(`asked for ${number}`);
  if (number < 0) throw new RangeError(`no square of ${number}`);
  return number === 0 ? await new Promise(() => {}) : number * number;
});
