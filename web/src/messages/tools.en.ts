/** The texts of comparisons, edits, effects and the other tools in English. */

export const tools = {
  asking: { target: "Target token" },
  compare: {
    description:
      "Run two texts through one model, or one text through two models. Matching tokens are aligned, and each value is compared with its counterpart.",
    text: "Other text",
    hint: "another text; leave empty to use the same one",
    model: "Model",
    same: "same model",
    example: (second: string, one: string) => `${one} / ${second}`,
    exampleSays: (one: string, second: string) => `Sets both texts: “${one}” and “${second}”`,
    restore: (text: string) => `Back to “${text}”`,
    begin: (examples: boolean) =>
      `Nothing is compared yet. Type another text above${examples ? ", choose another model, or click one of the examples" : " or choose another model"} to see which numbers differ, and by how much.`,
    next: (which: number): string =>
      which === 0 ? "Predictions for this text" : "Predictions for the other text",
    where: "Largest differences",
    nowhere: "There are no differences here.",
    group: "Filter sites",
    groups: {
      all: "all sites",
      attention: "attention weights",
      heads: "head outputs",
      stream: "residual stream",
      feedforward: "feed-forward",
    },
    modes: { difference: "Difference", one: "This text", other: "Other text" },
    /** If the texts are the same and the models differ. */
    modelModes: { difference: "Difference", one: "This model", other: "Other model" },
    number:
      "Each number is $\\lVert x' - x \\rVert / \\lVert x \\rVert$, with $x$ the value for this text and model and $x'$ the other value: 0 means no difference, 1 means a difference as large as $x$ itself. The difference is $x' - x$.",
    largest: (shown: number, all: number) =>
      `Showing the ${shown} largest of ${all}; use the filter to find the others.`,
    shapes:
      "The two models have different shapes, so their activations cannot be compared. Their predictions can.",
  },
  change: {
    description:
      "Edit an activation and see immediately how the next word changes. Choose a head or a token in the line above, or open a neuron of the feed-forward network: it then appears under “Selected”.",
    what: "Selected",
    head: (block: number, head: number) => `head ${block}.${head}`,
    stream: (token: string, block: number) => `residual stream of “${token}” entering block ${block}`,
    neuron: (neuron: number, block: number) => `neuron ${neuron} of block ${block}`,
    weights: (block: number, head: number, token: string) =>
      `attention weights of “${token}” in head ${block}.${head}`,
    share: (token: string, weight: string) => `“${token}” ${weight}`,
    silence: "Ablate",
    silenceSays: "Ablate: set these numbers to zero.",
    scaleSays: "Multiply these numbers by the scale factor below.",
    factor: "Scale factor",
    take: "Patch from other text",
    noOther: "Enter another text first.",
    hint: "a text to patch from",
    other: "Other text",
    weight: (block: number, head: number, from: string, to: string) =>
      `head ${block}.${head}: attention from “${from}” to “${to}”`,
    list: "Active edits",
    aside: (count: number) =>
      count === 1
        ? "One edit does not apply to this text or model and was removed."
        : `${count} edits do not apply to this text or model and were removed.`,
    none: "None. The model is unchanged.",
    done: {
      ablated: (what: string) => `${what}: ablated`,
      scaled: (what: string, amount: string) => `${what}: × ${amount}`,
      patched: (what: string, text: string) => `${what}: patched from “${text}”`,
      set: (what: string, value: string) => `${what}: set to ${value}`,
    } as Record<"ablated" | "scaled" | "patched" | "set", (what: string, detail: string) => string>,
    active: (count: number) => (count === 1 ? "1 edit active" : `${count} edits active`),
    unused: "This view does not use edits.",
    usedByNeighbors: "Here, only the nearest neighbors use edits.",
    edited: "edited",
    undo: "Undo last",
    undoOne: (what: string) => `Undo: ${what}`,
    clear: "Undo all",
    prediction: "The likeliest tokens before and after the edits",
    before: "before",
    after: "after",
    rises: "after",
    falls: "after, if lower",
    difference: "bar chart",
  },
  effects: {
    title: "Effect on the target token",
    description:
      "Each head or position is ablated (set to zero) in turn, or patched from the other text. The number is the change in the target token's log-probability: −0.69 halves the probability. Click a cell to select it.",
    over: { head: "Heads", position: "Positions" },
    leftOut: "Change in log-probability when a token is left out",
    leavingOut: (done: number, all: number) => `Leaving out each token in turn: ${done} of ${all}`,
    decides: (token: string) => `Apart from the last token, “${token}” matters most.`,
    without: (token: string, target: string, before: string, after: string) =>
      `The probability of “${target}” is ${before} after the whole text and ${after} without “${token}”.`,
    ablated:
      "The map shows where the information is: the vector of one position is set to zero as it enters a block. At block 0, this also removes what all vectors have in common, so almost every position seems to matter; to find the decisive token, leave tokens out (above) or patch from another text.",
    progress: {
      head: (done: number, all: number) => `${done} of ${all} heads`,
      position: (done: number, all: number) => `${done} of ${all} positions`,
    },
    withEdits: "The active edits stay in place: the change is relative to the edited prediction.",
    patched: "patch from the other text instead of ablating",
    block: (i: number) => `block ${i}`,
    summary: (what: string, before: string, after: string) => `${what}: ${before} → ${after}`,
  },
  why: {
    description:
      "The residual stream is the sum of everything written to it, so a token's logit is a sum too, and so is the difference between two logits: why this token and not that one. Follow the largest contributions back: through a head to the token it attends to, and to what was written there earlier.",
    capped: "This model caps its logits; the sum is the logit before the cap.",
    ask: "Why?",
    askSays: "Open Attribution to see where this attention comes from.",
    way: "Attribution path",
    insteadOf: "instead of",
    none: "no other token",
    noDifference: "To see why this token and not another one, open the model in Clearhead.",
    lowers: (against: string | null) => (against === null ? "lowers" : `for “${against}”`),
    raises: (target: string | null) => (target === null ? "raises" : `for “${target}”`),
    logit: (target: string, against: string | null) =>
      against === null ? `logit of “${target}”` : `logit of “${target}” − logit of “${against}”`,
    hop: (block: number, head: number, token: string) => `head ${block}.${head} from “${token}”`,
    wrote: (target: string, token: string, against: string | null) =>
      `Contributions to the logit of “${target}”${against === null ? "" : ` minus that of “${against}”`}, written to the residual stream of “${token}”:`,
    brought: (token: string, block: number) =>
      `Contributions along this path, written to the residual stream of “${token}” before block ${block}:`,
    follow: (token: string) => `Follow back to “${token}”`,
    feedforward: (block: number) => `feed-forward ${block}`,
    parts: {
      embedding: "embedding",
      position: "position",
      edits: "your edits",
      bias: "bias",
      shift: "norm shift",
      "head shift": "head norm shift",
      "final.shift": "final norm shift",
    } as Record<string, string>,
    ofBlock: {
      "attention.bias": "attention bias",
      "feedforward.bias": "feed-forward bias",
      "attention_normed.shift": "attention norm shift",
      "feedforward_normed.shift": "feed-forward norm shift",
    } as Record<string, string>,
    picture: "Contributions to the logit, by token and block",
    legend: (target: string, against: string | null) =>
      `Curves show what heads move from a token; circles show what feed-forward networks write. Widths and diameters show the amount: they grow with its square root. ${against === null ? "Violet raises the logit, ocher lowers it." : `Violet favors “${target}”, ocher “${against}”.`}`,
    looks: (block: number, head: number, from: string, to: string) =>
      `Why head ${block}.${head} attends from “${from}” to “${to}”`,
    token: (token: string) => `“${token}”`,
    rest: (n: number) => (n === 1 ? "1 other part" : `${n} other parts combined`),
    apart: (key: string, share: string, other: string, otherShare: string) =>
      `“${key}” gets ${share} of the attention and the runner-up “${other}” gets ${otherShare}. Their scores differ by`,
    divided: (value: string) => `before they are divided by $\\sqrt{d_k}$, and by ${value} after.`,
    bySide: "Sum over contributions",
    atKeys: (key: string, other: string) => `written at “${key}” and “${other}”`,
    atQuery: (query: string) => `written at “${query}”`,
    byKeys: (query: string, key: string, other: string) =>
      `The difference is a sum over the components before this block: what each wrote at “${key}” minus what it wrote at “${other}”, projected to keys and multiplied by the query of “${query}”. What is the same at both cancels out: the softmax ignores it too.`,
    byQuery: (query: string, key: string, other: string) =>
      `The same difference as a sum over what each component wrote at “${query}”, projected to queries and multiplied by the key of “${key}” minus that of “${other}”.`,
    strongestPairs: "Strongest pairs of both sides:",
    alone: (token: string) =>
      `“${token}” can attend to no other token, so the weight is 100%, whatever the score.`,
  },
  words: {
    description:
      "A token has one static vector, whatever its context. From block to block, it takes in more of its context: the same word gets a different vector in each sentence, and its senses separate.",
    word: "Word",
    sentences: (most: number) => `Sentences, one per line (at most ${most})`,
    noWord: (model: string) =>
      `No single token of ${model} is a word, so there is no example. You can type a word: the vectors shown are those of its last token.`,
    many: (count: number, most: number) => `You entered ${count} sentences. The limit is ${most}.`,
    split: (word: string, pieces: string[]) =>
      `This model does not always encode “${word}” as one token. The vectors shown are those of its last token: ${pieces.map((piece) => `“${piece}”`).join(", ")}.`,
    without: (word: string, sentences: string[]) =>
      `“${word}” does not occur in ${sentences.map((each) => `“${each}”`).join(", ")}.`,
    stage: "Stage",
    static: "static",
    entering: (block: number) => `input of block ${block}`,
    end: "final",
    alike: "The static vectors are identical.",
    shares: (share: string) => `The first two principal components explain ${share} of the variance.`,
    map: (stage: string) => `Map of the word's vectors (${stage})`,
    curves:
      "Cosine similarity between the vector in sentence 0 and those in the other sentences, from the static to the final vectors",
    cosine: "Cosine similarity to the vector in sentence 0",
    neighbors: (token: string) => `Nearest neighbors of the selected token “${token}”`,
    nearSays:
      "At each stage, these are the tokens whose own vectors are closest in direction (cosine similarity) to the selected token's vector.",
    alongSays:
      "Select another token in the line above, or enter two words below to add to its vector the direction from the first to the second.",
    cosineColumn: "cosine",
    token: "Token",
    from: "From",
    to: "To",
  },
  tiny: {
    description:
      "This attention head is small enough to compute by hand: 0 is [1, 0] and 1 is [0, 1]. Change the sequence or any number in the four matrices, and every step updates.",
    sequence: "Sequence",
    divided: "divide by $\\sqrt{d_k}$",
    causal: "mask the future",
    base3: "3 instead of $e$",
    base3Says: "The softmax uses powers of 3, which are easier to compute in your head.",
    examples: { boosted: "Boosted keys", plain: "Plain keys", own: "Self-matching queries" },
    examplesSay: {
      boosted:
        "Loads the sequence 0010, queries that all look for a 1, and keys of length 10: almost all weight goes to the 1.",
      plain: "Loads the sequence 0010, queries that all look for a 1, and keys of length 1.",
      own: "Loads the sequence 01, queries with which each token looks for its own digit, and keys of length 10.",
    },
    matrices: { query: "query matrix", key: "key matrix", value: "value matrix", output: "output matrix" },
    entry: (matrix: string, row: number, column: number) => `${matrix}, row ${row}, column ${column}`,
    empty: (most: number) => `Enter 1 to ${most} digits, each 0 or 1.`,
    left: "Only the digits 0 and 1 count; everything else is ignored.",
    blank: "This is not a number. The previous number is used until you enter one.",
    steps: {
      query: "query",
      key: "key",
      value: "value",
      scores: "compare",
      scaled: "divide",
      masked: "mask",
      weights: "softmax",
      mixed: "weigh and sum",
      output: "write",
    },
  },
  lens: {
    description:
      "The logit lens decodes the residual stream after each block as if that block were the last one. For every position, it shows what the model would predict if it stopped there. Read it from the top down: block 0 is the first row, and the last row is the model's own prediction.",
    only: "show the probability of the target token",
    summary: (token: string, share: string) => `“${token}” ${share}`,
    here: (block: number, token: string) => `After block ${block}, at “${token}”:`,
  },
};
