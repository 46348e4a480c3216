// What sampling leaves of a distribution, as generation/sampling.py has it.

export type Settings = { temperature: number; topK: number; topP: number; minP: number };

function softmax(logits: number[]): number[] {
  const largest = Math.max(...logits);
  const exps = logits.map((logit) => Math.exp(logit - largest));
  const total = exps.reduce((sum, each) => sum + each, 0);
  return exps.map((each) => each / total);
}

/** Temperature, top-k, top-p, min-p, in this order; temperature 0 leaves the likeliest. */
export function sampleChances(logits: number[], { temperature, topK, topP, minP }: Settings): number[] {
  if (temperature === 0) {
    const best = logits.indexOf(Math.max(...logits));
    return logits.map((_, i) => (i === best ? 1 : 0));
  }
  let left = logits.map((logit) => logit / temperature);
  const drop = (isDropped: (i: number) => boolean) =>
    (left = left.map((logit, i) => (isDropped(i) ? -Infinity : logit)));
  const least = [...left].sort((a, b) => b - a)[Math.min(topK, left.length) - 1];
  drop((i) => left[i] < least);
  if (topP < 1) {
    const chances = softmax(left);
    const order = chances.map((_, i) => i).sort((a, b) => left[b] - left[a] || a - b);
    let before = 0;
    const removed = new Set<number>();
    for (const i of order) {
      if (before >= topP) removed.add(i);
      before += chances[i];
    }
    drop((i) => removed.has(i));
  }
  const chances = softmax(left);
  const bar = minP * Math.max(...chances);
  drop((i) => chances[i] < bar);
  return softmax(left);
}
