/** The texts of a block's steps, of the sites and of the walk through them in English. */

export const steps = {
  steps: {
    "look up": {
      name: "look up",
      description: "Each token id selects one row of the embedding matrix. This row is the token's vector.",
    },
    place: {
      name: "position",
      description: "Each position has a vector of its own, which tells the model where the token is.",
    },
    enter: {
      name: "input",
      description: "This is the input of the first block, where each token's residual stream begins.",
    },
    read: {
      name: "input",
      description:
        "In this model, nothing is normalized here: attention and feed-forward read the residual stream itself, and their outputs are normalized.",
    },
    mean: { name: "mean μ", description: "This is the mean of each token's vector." },
    scale: {
      name: "scale σ",
      description:
        "This is the root mean square of each token's vector: the typical size of its entries. The vector is divided by it.",
    },
    norm: {
      name: "norm",
      description:
        "Each token's vector is divided by its scale, and each dimension is multiplied by a trained gain. The strips show this for the selected token.",
    },
    project: {
      name: "project",
      description:
        "Three matrices project each token's vector to a query (what am I looking for?), a key (what do I offer?) and a value (what do I pass on?).",
    },
    level: {
      name: "QK-norm",
      description: "Queries and keys are normalized to a common scale before they are compared.",
    },
    rotate: {
      name: "rotate",
      description:
        "Pairs of numbers are rotated by an angle that grows with the position (RoPE), so that the comparison of two tokens depends on their distance.",
    },
    compare: {
      name: "compare",
      description:
        "The query of each token is compared with the key of every token. The score is their dot product.",
    },
    divide: {
      name: "divide",
      description:
        "Each score is divided by $\\sqrt{d_k}$ so that dot products of long vectors do not saturate the softmax.",
    },
    cap: {
      name: "cap",
      description:
        "Soft-capping, $c \\tanh(x / c)$, hardly changes small numbers and keeps large ones between $-c$ and $c$.",
    },
    mask: {
      name: "mask",
      description: "A token cannot attend to the tokens that come after it, so their scores are set to −∞.",
    },
    softmax: {
      name: "softmax",
      description:
        "The softmax turns each row of scores into positive weights that sum to 1. Only the differences within a row matter: the largest score gets the largest weight, even if all scores are negative.",
    },
    weigh: {
      name: "weigh",
      description: "Each value is multiplied by the weight that the selected token gives it.",
    },
    sum: {
      name: "sum",
      description: "The weighted values are summed. This is what the head gathers for each token.",
    },
    write: {
      name: "write",
      description: "The head's rows of $W^O$ project the sum back to the residual stream.",
    },
    gather: { name: "all heads", description: "The outputs of all heads in the block are summed." },
    "post norm": {
      name: "post-norm",
      description: "This model normalizes the result once more before adding it.",
    },
    add: { name: "add", description: "The result is added to the residual stream." },
    expand: {
      name: "expand",
      description: "A matrix projects each token's vector to many more numbers, the neurons.",
    },
    activate: {
      name: "nonlinearity",
      description: "The nonlinearity keeps some neurons active and suppresses others.",
    },
    contract: {
      name: "write",
      description:
        "Each active neuron writes a vector of its own. Their sum is added to the residual stream.",
    },
    score: {
      name: "logits",
      description:
        "The final vector is compared with the vector of every token in the vocabulary. The result is that token's logit.",
    },
    choose: {
      name: "softmax",
      description: "The softmax turns the logits into probabilities for the next word.",
    },
  },
  cell: {
    hover: "Point at a number to see how it was computed; click it to trace it back.",
    trained: "This is a trained weight, learned from text. The trace ends here.",
    inactive: "This neuron is 0 for every token of this text.",
    edited: (value: string, computed: string) =>
      `An edit set this number to ${value}. Without it, the formula gives ${computed}.`,
    back: "Back",
    formula: "Formula",
    more: (n: number) => `… ${n} more`,
    smaller: (n: number) => `… ${n} smaller`,
    /** The order of an input's numbers, by the operation that combines them. */
    order: {
      dot: "largest products first",
      softmax: "this, then the largest",
      mean: "largest first",
      scale: "farthest from the mean first",
      "root mean square": "largest first",
      "head norm": "this, then the largest",
    } as Partial<Record<string, string>>,
    masked: (score: string) => `This token is masked: −∞ replaces the score ${score}.`,
    of: (name: string, token: string) => `${name} of “${token}”`,
    between: (name: string, from: string, to: string) => `${name} from “${from}” to “${to}”`,
    after: (name: string, predicted: string, token: string) => `${name} of “${predicted}” after “${token}”`,
    following: (name: string, token: string) => `${name} after “${token}”`,
    headOutput: (head: string) => `${head} output`,
    sharedHead: (block: number, head: number) => `shared head ${block}.${head}`,
    attending: (token: string) => `for “${token}”`,
    entry: (name: string, [row, column]: number[]) =>
      column === undefined ? `${name} ${row}` : `${name}, row ${row}, column ${column}`,
    python: "Copy the name in Python",
  },
  /** Names of the numbers at each site. */
  sites: {
    embedding: "embedding",
    position: "position vector",
    input: "block input",
    normed: "normalized input",
    attention: "attention output",
    attention_normed: "normalized attention output",
    middle: "residual stream after attention",
    normed2: "normalized residual stream",
    hidden_raw: "neuron before the nonlinearity",
    hidden_gate: "gate",
    hidden_up: "neuron before the gate",
    hidden: "neuron",
    feedforward: "feed-forward output",
    feedforward_normed: "normalized feed-forward output",
    output: "block output",
    final: "final vector",
    logits_raw: "logit before the cap",
    logits: "logit",
    probabilities: "probability",
    query_raw: "projected query",
    key_raw: "projected key",
    query_normed: "normalized query",
    key_normed: "normalized key",
    query: "query",
    key: "key",
    value: "value",
    scores: "score",
    scaled: "scaled score",
    capped: "capped score",
    masked: "masked score",
    weights: "attention weight",
    weighed: "weighted value",
    mixed: "sum of weighted values",
    mean: "mean",
    scale: "scale",
    gain: "gain",
    shift: "shift",
    weight: "weight",
    matrix: "weights",
    bias: "bias",
  },
  norms: {
    normed: "first norm",
    attention_normed: "attention norm",
    normed2: "second norm",
    feedforward_normed: "feed-forward norm",
    final: "final norm",
  } as Record<string, string>,
  pointed: {
    axes: "from ↓ to →",
    score: (what: string, from: string, to: string, score: string) =>
      `${what} from “${from}” to “${to}”: ${score}`,
    future: (from: string, to: string) => `“${from}” cannot attend to “${to}”, which comes later`,
    outside: (from: string, to: string) => `“${to}” is outside the attention window of “${from}”`,
    unattended: (from: string, to: string) => `The mask keeps “${from}” from attending to “${to}”`,
    number: (row: string, column: string, value: string) => `“${row}”, ${column}: ${value}`,
    difference: (row: string, column: string, value: string) => `${row}, ${column}: ${value}`,
    dimension: (i: string) => `dimension ${i}`,
    neuron: (i: string) => `neuron ${i}`,
  },
  legend: {
    negative: "negative",
    positive: "positive",
    masked: "masked",
    exceeded: "A few numbers are larger and share the strongest color.",
    weights: "attention",
    strips: "color strip under a column: negative → positive",
    barsSay:
      "How much each block added to each token's vector, relative to the vector's length: a bar fills half a cell if both are equally long. Above the bars: the token that the logit lens reads after each block.",
    space: "␣ space",
    spaceSays: "A space before a word is part of its token: “␣it” and “it” are two tokens.",
    own: "Each column has its own color scale, set by its largest numbers.",
  },
  walk: {
    title: "Short tour",
    next: "Next",
    done: "Done",
    skip: "Skip",
    back: "Back",
    stops: [
      "Your text goes through the model from left to right. It is split into tokens, and each token keeps its own row throughout. The gray line is its residual stream, to which every part adds something.",
      "Attention is the only part that moves information between rows. The squares show how much each token attends to the tokens before it; the green curves are the values that the selected token receives. Click any token to select it. On the right, bars show how much each block adds; where there is room, the word above them is what the model would predict if it stopped there.",
      "Each view answers a different question about the same text. “All heads” shows the attention pattern of every head, so that you can find heads that do something recognizable. Press [ or ] to move through the heads, and Page Up or Page Down to move through the blocks.",
      "This is the selected part, step by step, with the actual numbers. Use the arrow keys to move between steps, or press P to play them. Point at a number to see its formula; click it to trace it back to the numbers it was computed from, down to the trained weights.",
      "This is what the model predicts as the next word. Change the sampling settings, click a word to append it, or let the model generate text.",
      "Type your own text here. Everything updates as you type.",
    ],
    keys: "Keyboard shortcuts",
    shortcuts: [
      ["← →", "previous or next step"],
      ["↑ ↓", "previous or next token"],
      ["[ ]", "previous or next head"],
      ["Page Up, Page Down", "previous or next block"],
      ["P", "play the steps"],
      ["Esc", "back to the previous number"],
      ["Enter", "in the text: append the next token"],
    ],
  },
};
