/** An n-gram model counted from a small text that has one sentence per line. */

export interface CountedToken {
  token: string;
  past: string[]; // the context: the earlier tokens that the model knows
  count: number; // how often the token follows this context
  total: number; // how often any token follows this context
  probability: number;
  product: number; // of the probabilities up to this token
}

const START = "";

export function splitWords(sentence: string): string[] {
  return sentence.toLowerCase().split(/\s+/).filter(Boolean);
}

/** The words without punctuation. */
export function bareWords(sentence: string): string[] {
  return sentence.toLowerCase().match(/[\p{L}\p{M}\p{N}'’]+/gu) ?? [];
}

/**
 * The probabilities of a sentence's tokens, each given the `order - 1` tokens before it.
 * With an infinite order, each is given all tokens before it.
 */
export function countSentence(text: string, sentence: string, order: number): CountedToken[] {
  const events = text.split("\n").flatMap((line) => contexts(splitWords(line), order));
  let product = 1;
  return contexts(splitWords(sentence), order).map(({ token, past }) => {
    const following = events.filter((event) => event.past.join(" ") === past.join(" "));
    const [count, total] = [following.filter((event) => event.token === token).length, following.length];
    const probability = total === 0 ? 0 : count / total;
    product *= probability;
    return { token, past: past.filter((word) => word !== START), count, total, probability, product };
  });
}

function contexts(tokens: string[], order: number): { token: string; past: string[] }[] {
  return tokens.map((token, i) => {
    const before = [START, ...tokens.slice(0, i)];
    return { token, past: before.slice(Math.max(0, before.length - (order - 1))) };
  });
}
