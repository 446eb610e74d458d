// A failure the reader can act on. It is printed as its one sentence, without a stack; every other
// error is a defect of ours and keeps its stack.
export class Refusal extends Error {}
