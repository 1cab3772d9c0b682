/** The texts of the diagram in English: its columns, heads, matrices and predictions. */

export const diagram = {
  /** Below a matrix that does not fit. */
  matrix: {
    columns: "columns",
    rows: "rows",
    range: (name: string, first: number, last: number, total: number) =>
      `${name} ${first}–${last} of ${total}`,
    back: (name: string) => `Scroll to the previous ${name}`,
    forth: (name: string) => `Scroll to the next ${name}`,
  },
  flow: {
    title: "Forward pass",
    tokens: "tokens",
    embedding: "embedding",
    block: (i: number) => `block ${i}`,
    blockOf: (i: number, last: number) => `Block ${i}. Blocks are numbered from 0 to ${last}.`,
    norm: "norm",
    query: "query",
    key: "key",
    value: "value",
    attention: (j: number) => `attention · head ${j}`,
    headOf: (j: number, last: number) => `Head ${j} of this block. Heads are numbered from 0 to ${last}.`,
    feedforward: "feed-forward",
    others: (first: number, last: number) =>
      first === last ? `added by block ${first}` : `added by blocks ${first}–${last}`,
    added: (block: number, token: string, attention: string, feedforward: string) =>
      `Block ${block} at “${token}”: attention added ${attention} and feed-forward ${feedforward} times the length of the incoming vector.`,
    read: (token: string, share: string) => `The logit lens reads “${token}” here (${share}).`,
    final: "norm",
    nextWord: "next word",
    nextToken: "next token",
    lastWord: "word at the last position",
    previousBlock: "Previous block",
    nextBlock: "Next block",
    previousHead: "Previous head",
    nextHead: "Next head",
    pages: (page: number, count: number) => `${page} / ${count}`,
    pagesSay: "The columns do not all fit side by side.",
    previousPage: "Previous columns",
    nextPage: "Next columns",
    above: (n: number) => `▴ ${n} more`,
    below: (n: number) => `▾ ${n} more`,
  },
  /** The flow in one line, above most views. */
  strip: {
    legend: (token: string) =>
      `How much of its attention “${token}” puts on each token, in the selected head`,
    head: (j: number) => `head ${j}`,
    weight: (from: string, to: string, weight: string, head: string) =>
      `“${from}” puts ${weight} of its attention on “${to}” (${head})`,
  },
  heads: {
    title: "All heads",
    label: (block: number, head: number) => `Block ${block}, head ${head}`,
    order: "Sort by",
    orders: {
      block: "block",
      previous: "previous token",
      first: "first token",
      repeated: "duplicate token",
      induction: "induction",
      antecedent: "antecedent",
    },
    kinds: {
      previous: "attends to the previous token",
      first: "attends to the first token",
      repeated: "attends to earlier occurrences of the same token",
      induction: "attends to what followed earlier occurrences of the same token",
      antecedent: "attends from a pronoun to its antecedent",
    },
    block: (i: number) => `block ${i}`,
    head: (j: number) => `head ${j}`,
    description:
      "One row per block, one column per head. In each pattern, a row is a token and a column is a token it attends to; the stronger the color, the more attention. Click a pattern to see it step by step.",
    explained: {
      previous:
        "Previous token: attention one position back, whatever the tokens are. It tells each token what came just before it.",
      first:
        "First token: attention to the first token, where heads often rest when they have nothing to move.",
      repeated: "Duplicate token: attention to earlier occurrences of the same token.",
      induction:
        "Induction: attention to the token after an earlier occurrence of the current one. After “A B … A”, it finds “B”.",
      antecedent:
        "Antecedent: attention from a pronoun to what it refers to, measured on stories in which the antecedent of every pronoun is known.",
    },
    measured:
      "Each score is a mean attention weight, measured on random tokens repeated once, not on the text above.",
    best: (kind: string, score: string) => `${kind}: ${score} of its attention`,
    nothing: "no known pattern",
    only: "Only clear cases",
    count: (clear: number, all: number) => `: ${clear} of ${all}`,
    onlyHint: (least: string) =>
      `Show only heads that put at least ${least} of their attention there, and at least twice what uniform attention would`,
    none: (least: string) =>
      `No head shows this pattern clearly: none puts at least ${least} of its attention there, and at least twice what uniform attention would.`,
    finding: "Scoring every head on small texts with known answers. This takes a while, once per model…",
    failed: (error: string) => `The heads could not be scored: ${error}`,
    find: "Find a head",
    findHint: (block: number, head: number) => `e.g. ${block}.${head}`,
    missed: (block: number, head: number) =>
      `There is no such head. Blocks are numbered from 0 to ${block}, heads from 0 to ${head}. Type the name of a pattern, such as induction, to sort by it.`,
  },
  next: {
    logit: "logit",
    chance: "softmax",
    temperature: "temperature",
    topK: "top-k",
    topP: "top-p",
    minP: "min-p",
    all: "all",
    append: (token: string) => `Append “${token}”`,
    cut: "excluded",
    divided: "logit ÷ T",
    write: "Generate",
    stop: "Stop",
    unknown: (words: string[]) =>
      `The model has no token for ${words.map((word) => `“${word}”`).join(", ")} and reads ${words.length === 1 ? "it" : "them"} in small pieces. It has probably seen few such words.`,
    context: (n: number, most: number) => `${n} of ${most} context tokens`,
    slid: (n: number) => `· the first ${n} are outside the context`,
  },
  parts: {
    embedding: "Embedding",
    norm: "First norm",
    head: "Head",
    add: "Add attention",
    norm2: "Second norm",
    feedforward: "Feed-forward",
    add2: "Add feed-forward",
    final: "Final norm and next word",
  },
  titles: {
    block: (part: string, block: number) => `Block ${block}: ${part}`,
    head: (block: number, head: number, token: string) =>
      `Block ${block}, head ${head}: attention from “${token}”`,
  },
  /** What the steps of a layer norm do. */
  layerNorm: {
    scale:
      "This is the standard deviation of each token's vector. After the mean is subtracted, the vector is divided by it.",
    norm: "Each number becomes a z-score: subtract the vector's mean and divide by its standard deviation. A trained gain $\\gamma$ then scales each dimension, and a trained shift $\\beta$ moves it. The strips show this for the selected token.",
  },
  normed: {
    title: (token: string) => `The vector of “${token}” before and after the norm`,
    stages: {
      layer: { before: "before", standardized: "z-scores", after: "after" },
      rms: { before: "before", standardized: "scaled", after: "after" },
    },
    moments: (mean: string, deviation: string) => `mean ${mean}, standard deviation ${deviation}`,
    root: (size: string) => `root mean square ${size}`,
    oneScale: "one scale for all three",
  },
};
