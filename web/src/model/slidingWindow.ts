/** Generation through a window that slides: the model sees only the last words. */

export interface WindowStep {
  first: number; // the number of the window's first word, counted from 1
  window: string[];
  matched: number; // how many of its last words occur together in the text, followed by another word
  next: string;
  count: number; // how often the next word follows those words
  total: number; // how often any word does
}

/** Generates words, each the most frequent one after the longest part of the window that the text contains. */
export function slideWindow(
  text: readonly string[],
  start: readonly string[],
  length: number,
  count: number,
): WindowStep[] {
  const words = [...start];
  return Array.from({ length: count }, () => {
    const window = words.slice(-length);
    const step = { first: words.length - window.length + 1, window, ...followWindow(text, window) };
    words.push(step.next);
    return step;
  });
}

function followWindow(text: readonly string[], window: readonly string[]) {
  for (let matched = window.length; ; matched--) {
    const suffix = window.slice(window.length - matched);
    const following = text.filter(
      (_, i) => i >= matched && suffix.every((word, k) => word === text[i - matched + k]),
    );
    if (following.length === 0 && matched > 0) continue;
    const times = (word: string) => following.filter((each) => each === word).length;
    const next = following.reduce((best, word) => (times(word) > times(best) ? word : best), following[0]!);
    return { matched, next, count: times(next), total: following.length };
  }
}

/** The number of the first word that word `seen` cannot influence, if each is predicted from `length` words. */
export function firstOutOfReach(seen: number, length: number): number {
  let predicted = seen + 1;
  while (predicted - length <= seen) predicted++;
  return predicted;
}
