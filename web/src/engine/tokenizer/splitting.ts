/** Splitting a text at the matches of a regular expression. */

/** Part of a text; `first` is whether it is the start of the whole text. */
export interface PreToken {
  text: string;
  first: boolean;
}

/** What becomes of the matches: pieces of their own, nothing, or parts of their neighbors. */
export type SplitBehavior = "Isolated" | "Removed" | "Contiguous" | "MergedWithPrevious" | "MergedWithNext";

interface SplitSpan {
  start: number;
  stop: number;
  matched: boolean;
}

/** With `invert`, the text between the matches is treated as the matches. */
export function splitPiece(
  piece: PreToken,
  regex: RegExp,
  behavior: SplitBehavior,
  invert = false,
): PreToken[] {
  const spans = findSpans(piece.text, regex);
  if (invert) for (const span of spans) span.matched = !span.matched;
  const pieces: PreToken[] = [];
  for (const { start, stop } of BEHAVIORS[behavior](spans))
    if (start < stop) pieces.push({ text: piece.text.slice(start, stop), first: piece.first && start === 0 });
  return pieces;
}

/** The matches and the text between them, in order. */
function findSpans(text: string, regex: RegExp): SplitSpan[] {
  const spans: SplitSpan[] = [];
  let done = 0;
  for (const match of text.matchAll(regex)) {
    const [start, stop] = [match.index, match.index + match[0].length];
    if (done < start) spans.push({ start: done, stop: start, matched: false });
    spans.push({ start, stop, matched: true });
    done = stop;
  }
  if (done < text.length) spans.push({ start: done, stop: text.length, matched: false });
  return spans;
}

const BEHAVIORS: Record<SplitBehavior, (spans: SplitSpan[]) => SplitSpan[]> = {
  Isolated: (spans) => spans,
  Removed: (spans) => spans.filter(({ matched }) => !matched),
  Contiguous: (spans) => join(spans, (span, previous) => span.matched === previous),
  MergedWithPrevious: (spans) => join(spans, (span, previous) => span.matched && !previous),
  MergedWithNext: (spans) => join(spans.reverse(), (span, previous) => span.matched && !previous).reverse(),
};

/** Joins a span with the one before it if `joins` says so, given the span and whether the one before was a match. */
function join(spans: SplitSpan[], joins: (span: SplitSpan, previous: boolean) => boolean): SplitSpan[] {
  const joined: SplitSpan[] = [];
  let previous = false;
  for (const span of spans) {
    const last = joined.at(-1);
    if (last && joins(span, previous)) {
      last.start = Math.min(last.start, span.start);
      last.stop = Math.max(last.stop, span.stop);
    } else joined.push({ ...span });
    previous = span.matched;
  }
  return joined;
}
