/** The page's text in English. Every other language is a file of the same shape. */

import { diagram } from "./diagram.en";
import { learning } from "./learning.en";
import { lectures } from "./lectures.en";
import { report } from "./report.en";
import { steps } from "./steps.en";
import { tools } from "./tools.en";
import { training } from "./training.en";

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
  ...tools,
  ...training,
  ...diagram,
  ...steps,
  looks: (from: string, to: string, share: string) => `“${from}” puts ${share} of its attention on “${to}”`,
  byteToken: (token: string) =>
    `${token} is part of a character: the tokenizer has no token for the whole character and splits it into the bytes of its UTF-8 encoding.`,
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
