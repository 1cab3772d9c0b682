/** The page's text in English. Every other language is a file of the same shape. */

import { learning } from "./learning.en";
import { lectures } from "./lectures.en";
import { report } from "./report.en";

export const en = {
  name: "English",
  header: {
    keys: "Press Enter to sample the next word, Shift+Enter to start a new line.",
    reading: "Running the model…",
    empty: "The text is empty. Type something to run the model on it.",
    ignored: (names: string[]) =>
      `Part of this address is invalid or does not fit this model and text: ${names.join(", ")}. The nearest match is shown instead.`,
    refused: (reason: string) =>
      `The text in this address does not fit this model, so a different one is shown: ${reason}`,
    missing: (name: string, instead: string) =>
      `There is no model named “${name}” here. Showing ${instead} instead.`,
    model: "Model",
    prompt: "Input text",
    examples: "Examples",
    next: "Next word",
    nextToken: "Next token", // of a model whose tokens are characters or bytes
    samples: "Sample the next word from the predicted probabilities",
    theme: "Switch between light and dark mode",
    language: "Language",
    help: "Start the tour",
  },
  picker: {
    choose: "Choose a model",
    none: "no model yet",
    here: "On this computer",
    onPage: "On this page",
    empty: "There are no models here yet. Pull one, or run clearhead demo to train one.",
    more: "Available to pull",
    shape: (blocks: number, heads: number) => `${blocks} × ${heads}`,
    blocks: (blocks: number, heads: number) =>
      `${blocks} ${blocks === 1 ? "block" : "blocks"} × ${heads} ${heads === 1 ? "head" : "heads"}`,
    unseen: (kind: string) => `${kind}: generates text, but has no attention heads to show`,
    parameters: (n: string) => `${n} parameters`,
    origins: { run: "trained here", pulled: "pulled", "built-in": "built in", file: "from a file" },
    states: { loaded: "loaded", loading: "loading…", "not loaded": "", failed: "failed to load" },
    size: (megabytes: string) => `${megabytes} MB`,
    pull: "Pull",
    pullName: (title: string) => `Pull ${title}`,
    cancel: "Cancel",
    downloading: (done: string, total: string) => `${done} of ${total} MB downloaded`,
    unpacking: (done: string, total: string) => `${done} of ${total} MB unpacked and verified`,
    cancelled: "Canceled. Nothing was saved.",
    failed: (error: string) => `The model could not be pulled: ${error}`,
  },
  views: {
    title: "Views",
    names: {
      steps: "Step by step",
      heads: "All heads",
      compare: "Compare",
      change: "Edit",
      why: "Attribution",
      lens: "Logit lens",
      words: "Word vectors",
      learning: "Learning",
      lectures: "Lectures",
      tiny: "Tiny head",
      labs: "Labs",
      training: "Training",
      report: "Report",
    },
    description: {
      steps: "See every number of the selected part and how it was computed.",
      heads: "See the attention patterns of all heads, and find heads by what they do.",
      compare: "Compare two texts or two models side by side.",
      change: "Ablate, scale or patch activations and see how the prediction changes.",
      why: "See how much each head, feed-forward network and token contributes to the next word.",
      lens: "See what each block would predict if the model stopped there.",
      words: "Explore words as vectors: static and contextual embeddings, word senses and nearest neighbors.",
      learning: "See one training step on your text: every loss, gradient and update.",
      lectures: "Go through the lectures stop by stop: an idea, a figure to change, and a question.",
      tiny: "Edit a tiny attention head by hand: two numbers per token.",
      labs: "Repeat the lectures' experiments with settings of your own.",
      training: "Watch training runs and start your own.",
      report: "Measure how good the model is, and what would help.",
    },
  },
  lectures,
  learning,
  report,
  labs: {
    list: "Labs",
    run: "Run",
    again: "Run again",
    usual: "Reset settings",
    trains: "This lab trains small networks, which takes between a few seconds and a few minutes.",
    looks: (model: string) => `This lab inspects ${model}.`,
    designed: (usual: string) => `It was designed for ${usual}.`,
    use: (usual: string) => `Switch to ${usual}`,
    pull: (usual: string) => `To use it, pull ${usual} in the list of models at the top left.`,
    command: (usual: string) => `To use it, run clearhead pull ${usual} and open it here.`,
    ownText: "This lab uses its own sentences or numbers, not the text above.",
    otherText: "This lab uses the text below, not the one above.",
    useText: "Use the text above",
    working: "Running…",
    elapsed: (seconds: number) => `${seconds} s`,
    waiting: "Another lab is running. This one starts when that one is finished.",
    cancel: "Cancel",
    findings: "Key figures",
    question: "Question",
    byHand: "Edit the matrices by hand",
    yes: "yes",
    no: "no",
    /** Translations of each lab's headings by the server's English text; * matches anything. Empty in English. */
    headings: {} as Record<string, Record<string, string>>,
    /** Names of the settings by lab, and under "" for all labs. Empty in English. */
    settingNames: {} as Record<string, Record<string, string>>,
    translated: {} as Record<
      string,
      { title: string; description: string; question: string; settings?: Record<string, string> }
    >,
  },
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
  training: {
    description:
      "Watch the loss of a run on its training text and on held-out validation text. Start a run on your own text, stop and resume it, and extend it once it is finished.",
    runs: "Runs",
    loading: "Loading the runs…",
    loadingSteps: "Loading the curves…",
    none: "There are no runs yet. Start one below.",
    nowhere: "There are no runs here. Use clearhead explore to see the runs in runs/ and to start new ones.",
    states: {
      starting: "starting…",
      running: "training",
      stopping: "saving…",
      stopped: "stopped",
      finished: "finished",
      failed: "failed to start",
    },
    steps: (done: string, planned: string, about: boolean) =>
      done === planned
        ? `${done} ${done === "1" ? "step" : "steps"}`
        : `step ${done} of ${about ? "about " : ""}${planned}`,
    snapshots: (n: number, latest: boolean) =>
      `${n} ${n === 1 ? "snapshot" : "snapshots"}${latest ? " and the latest model" : ""}`,
    validatedOn: (share: string) => `validated on ${share} of the held-out text`,
    partial:
      "Measured on only part of the held-out text because time was short: do not compare it with the losses of other runs.",
    teacher: (n: number, count: number, student: string) => `teacher ${n} of ${count} for ${student}`,
    student: (count: number) => `student of ${count} ${count === 1 ? "teacher" : "teachers"}`,
    speed: (n: string) => `${n} tokens/s`,
    progress: (run: string) => `Progress of ${run}`,
    open: "Inspect",
    openName: (run: string) => `Inspect ${run}`,
    stop: "Stop",
    stopName: (run: string) => `Stop ${run}`,
    resume: "Resume",
    resumeName: (run: string) => `Resume ${run}`,
    extend: "Extend",
    extendName: (run: string) => `Extend ${run}`,
    moreMinutes: "More minutes",
    extendStart: "Start",
    loss: "Loss in nats per token. Pale line: training; thin line: training, smoothed; bold line with dots: validation.",
    lossBuiltIn:
      "The built-in model's training loss is higher than its validation loss, because lists of random words occur only in the training text.",
    lossLabel: (spoken: string) => `Loss by step: ${spoken}`,
    spoken: (run: string, step: number, loss: string, validation: string) =>
      `${run}, step ${step}: training ${loss}, validation ${validation}`,
    rate: "Learning rate of the matrices",
    readAt: "Select a step",
    numbers: "Values at the selected step",
    log: "Log scale",
    run: "run",
    step: "step",
    trainingLoss: "loss",
    smoothed: "smoothed",
    validation: "validation",
    since: (step: string) => `at step ${step}`,
    rateShort: "learning rate",
    tokens: "tokens seen",
    samples: "Samples during training",
    heads: "Heads as they form",
    headsOn: (text: string) => `Attention patterns on “${text}”. Click one to see it step by step.`,
    trains: (run: string, done: string, planned: string) =>
      planned === "" ? `${run} is starting…` : `${run} is training: step ${done} of about ${planned}`,
    watch: "Watch",
    done: (run: string, steps: string) =>
      `${run} has finished training (${steps} ${steps === "1" ? "step" : "steps"}).`,
    tooShort: "That is too few to learn from: extend the run under Training, or start a longer one.",
    shortTime:
      "In less than a minute, a run has time for a few steps at most: reading the text and measuring the speed come first. Choose one minute or more to see the model learn.",
    measured: (run: string, steps: string, minutes: string) =>
      `For comparison: ${run} took ${steps} ${steps === "1" ? "step" : "steps"} in ${minutes} min on this computer.`,
    compare: (model: string) => `Compare with ${model}`,
    close: "Close",
    after: (step: string) => `after step ${step}`,
    waiting: "Waiting for the first step…",
    begin: "New run",
    text: "Training text",
    stories: "Built-in stories",
    drop: "Drop a text file here, or",
    choose: "Choose a file",
    name: "Name",
    nameRule: "Use letters, digits, dots and dashes, starting with a letter or digit.",
    minutes: "Minutes",
    more: "More options",
    stepsInstead: "Or steps",
    byMinutes: "set by minutes",
    preset: "Preset",
    sizes: { blocks: "Blocks", heads: "Heads", width: "Width", context: "Context" },
    fitting: "automatic",
    start: "Train",
    busy: "Another run is training",
    tooLarge: "This file is too large. The limit is 60 MB.",
    empty: "This file is empty.",
    noText: "This file is not UTF-8 text.",
  },
  time: {
    play: "Play training",
    pause: "Pause training",
    title: "Training step",
    description: "Move through training: every view shows the model as it was after the selected step.",
    step: (step: string, all: string) => `step ${step} of ${all}`,
    at: (step: string) => `step ${step}`,
    loss: (loss: string) => `loss ${loss}`,
    lossOf: "The training loss on the batch of this step, in nats per token.",
    follow: "follow the latest step",
  },
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
  looks: (from: string, to: string, share: string) => `“${from}” puts ${share} of its attention on “${to}”`,
  byteToken: (token: string) =>
    `${token} is part of a character: the tokenizer has no token for the whole character and splits it into the bytes of its UTF-8 encoding.`,
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
  controls: {
    parts: "Parts of the model",
    play: "Play",
    pause: "Pause",
    back: "Previous step",
    forth: "Next step",
    take: "Export",
    larger: "Zoom in",
    smaller: "Zoom out",
    map: "Map",
    numbers: "Numbers",
    svg: "SVG",
    png: "PNG",
    light: (kind: string) => `${kind}, light background`,
    csv: "CSV",
    npy: ".npy",
    link: "Copy link",
    linkNote: "Opens in any browser that has already opened the address printed in the terminal",
    hereNote:
      "The link opens on this computer only, in a browser that has already opened Clearhead's address.",
    sendNote: "To show someone else what you see, save it as one file.",
    uploadNote:
      "The link opens on this computer only. For a reader elsewhere, upload this page to a web host.",
    copied: "Copied",
    copiedHere: "Copied, for this computer only",
  },
  share: {
    title: "Share",
    save: "Save this view as one file",
    saveNote:
      "An HTML file that shows the page in any browser exactly as it is now, without Clearhead or a network. A small model is included and runs in the file; for a large model, the file contains the numbers on screen.",
    notSavable: "Learning, Labs, Training and Report need a server. Open another view to save it.",
    html: "HTML file of this view",
    preparing: "Preparing the file…",
    saved: "Saved to your downloads",
    failed: "The file could not be written",
  },
  saved: {
    missed: "This is not included in this file. Open the model in Clearhead to see it.",
    without: (views: string[]) =>
      `Not included in this file: ${views.join(", ")}. Open the model in Clearhead to see more.`,
    missing: (value: string) => `${value}. The numbers it was computed from are not included in this file.`,
    edited: (n: number) =>
      n === 1 ? "1 edit made in Python is active." : `${n} edits made in Python are active.`,
    waiting: "The kernel is busy or has stopped. The page continues as soon as the kernel responds.",
  },
  live: {
    about:
      "This page needs no server: the model runs in your browser, and no text leaves it. To train a model on your own text, install Clearhead and run clearhead demo.",
    loading: (model: string, done: string, total: string) => `Loading ${model}: ${done} of ${total} MB`,
  },
  published: {
    texts: "Texts",
    without: (views: string[]) => `To use ${views.join(", ")} or your own texts, install Clearhead.`,
    lab: (name: string) =>
      `This lab was run in advance. To change its settings, install Clearhead and run clearhead lab ${name}.`,
    about:
      "This page needs no server: the texts were run through the model in advance, and every number is the model's own. To type texts of your own, edit activations or train a model on your own text, install Clearhead and run clearhead demo.",
    walk: [
      "This is what the model predicts as the next word. Change the sampling settings, and the probabilities update.",
      "Choose another text here. You can compare two texts side by side below.",
    ],
  },
  /** Translations of the server's errors by their code. Empty in English: the server's own text is shown. */
  refusals: {} as Record<string, (values: Record<string, string | number>) => string>,
  problems: {
    retry: "Try again",
    lost: "The server is not responding. The page reconnects as soon as it is back.",
    access:
      "A different server is running at this address and does not recognize this page. Open the address that it printed when it started.",
  },
};

export type Messages = typeof en;
