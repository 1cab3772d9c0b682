/** Die Texte der Lernansicht auf Deutsch. */

import type { Messages } from "./en";

export const learning: Messages["learning"] = {
  summary: (loss, targets) =>
    `Verlust ${loss}, der Mittelwert von $-\\ln P$ über ${targets} ${targets === 1 ? "Vorhersage" : "Vorhersagen"}`,
  optimizers: { muon: "Muon", adamw: "AdamW" },
  recipe: (optimizer, rate) => `${optimizer}, höchste Lernrate ${rate}`,
  recipeHint:
    "Der Schritt ist der erste eines neuen Trainingslaufs mit dem Rezept des Modells. Er verwendet dessen höchste Lernrate, auch wenn die Lernrate niedriger war, als das Modell gespeichert wurde.",
  cut: (used, all) =>
    `Verwendet werden nur die letzten ${used} von ${all} Tokens: Mehr fasst der Kontext nicht.`,
  numberOf: (taken) => `von ${taken}`,
  shownStep: "Der gezeigte Schritt",
  norm: (norm, clip) => `Norm des Gradienten aller Gewichte: ${norm}; begrenzt auf höchstens ${clip}.`,
  edits: "Änderungen gehören nicht zu einem Trainingsschritt: Er wird für das Modell selbst berechnet.",
  parts: { gradient: "Gradienten", run: "Trainingslauf" },
  afterSteps: (steps) => (steps === 1 ? "Nach dem Schritt" : `Nach ${steps} Schritten`),
  take: "Schritt ausführen",
  takeMore: "Noch einen Schritt ausführen",
  startOver: "Wieder nur ein Schritt",
  partsTitle: "Teile der Lernansicht",
  stages: "Norm (Länge) des Gradienten je Stufe, von rechts nach links zu lesen",
  block: (block) => `Block ${block}`,
  stage: (stage, token, norm) => `${stage} von „${token}“: Gradient mit der Norm ${norm}`,
  logitStage: (norm, n) =>
    `${norm}\nAn den Logits ist der Gradient p − y, geteilt durch ${n}, die Zahl der Vorhersagen, über die der Verlust gemittelt wird.`,
  token: "Token",
  loss: "Verlust",
  target: "Nächstes Token",
  lossOf: (token, probability, loss) =>
    `„${token}“ hat die Wahrscheinlichkeit ${probability}: −ln P = ${loss}`,
  noTarget: "kein Ziel",
  errors: (token) => `p − y an den Logits nach „${token}“`,
  errorsHint:
    "Die Wahrscheinlichkeit des Ziels sollte 1 sein, alle anderen 0. Der Gradientenabstieg erhöht den Logit des Ziels und senkt die anderen.",
  pushesLogits: "Balken nach rechts erhöhen den Logit (↑), Balken nach links senken ihn (↓).",
  mean: (n) =>
    n === 1 ? "Gradient: $p - y$" : `Gradient: $(p - y) / ${n}$, weil der Verlust ein Mittelwert ist`,
  others: (count) => `${count} andere`,
  isTarget: "Ziel",
  gradientOf: (site) => `Gradient nach: ${site}`,
  place: "Teil des Modells",
  site: "Stelle oder Gewicht",
  ends: "Einbettung und Logits",
  weightName: (name) => `Gewicht ${name}`,
  start: [
    "Der Verlust jedes Tokens ist $-\\ln P$ des Tokens, das tatsächlich folgt.",
    "Ein Gradient sagt, wie sich der Verlust ändert, wenn eine Zahl ein wenig wächst: Ist er positiv, steigt der Verlust; ist er negativ, sinkt er. Der Gradientenabstieg bewegt deshalb jedes Gewicht gegen seinen Gradienten. Optimierer gehen von dieser Richtung aus und ändern sie; einzelne Gewichte können sich deshalb auch in die andere Richtung bewegen.",
    "An den Logits ist der Gradient $p - y$. Von dort geht es zurück, von rechts nach links: Der Gradient einer Zahl ist die Summe über alle Zahlen, die aus ihr berechnet werden, jeweils deren Gradient mal eine Ableitung.",
    "Klicke auf eine Zahl, um diese Summe zu sehen, und verfolge sie bis zu einem Gewicht, oder wähle ein Gewicht in der Liste. Dort siehst du, in welche Richtung es sich bewegt, warum, und welche Tokens dazu beitragen.",
  ],
  gradient: "Gradient",
  value: (value) => `Die Zahl selbst ist ${value}.`,
  unused: "Kein Token dieses Textes verwendet diese Zahl, daher ist ihr Gradient 0.",
  onlyTargets: "Nur die Wahrscheinlichkeit des Ziels geht in den Verlust ein.",
  masked: "Dieser Score ist maskiert: Er hat keine Wirkung, daher ist sein Gradient 0.",
  terms: "Gradient × Ableitung = Summand, die größten zuerst",
  sum: "Summe aller Summanden",
  inSteps: "Zeigen, wie diese Zahl berechnet wurde",
  more: (n) => `… ${n} weitere`,
  update: "Was der Schritt mit diesem Gewicht macht",
  chainRule: "Sein Gradient nach der Kettenregel",
  why: ({ change, gradient, decay, cause }, value, causeName) => {
    const slope = gradient === 0 ? "0" : `${gradient > 0 ? "positiv" : "negativ"} (${value})`;
    if (cause === null || change === 0) return `Es bleibt gleich. Sein Gradient ist ${slope}.`;
    const goes = `Es ${change > 0 ? "steigt" : "sinkt"}`;
    if (cause === "gradient") {
      const pull = decay === 0 ? "" : ` Weight Decay wirkt ${decay === change ? "mit" : "dagegen"}.`;
      return `${goes}, weil sein Gradient ${slope} ist: Ein ${change > 0 ? "größerer" : "kleinerer"} Wert senkt den Verlust.${pull}`;
    }
    if (cause === "weight_decay")
      return `${goes}, weil Weight Decay es zur 0 zieht, stärker als alles andere es bewegt. Sein Gradient ist ${slope}.`;
    if (cause === "rounding") return `${goes}, aber nur durch Rundung. Sein Gradient ist ${slope}.`;
    if (cause.startsWith("adapter"))
      return `${goes}, weil sich seine Adapter ändern. Sein Gradient ist ${slope}.`;
    const reasons: Record<string, string> = {
      momentum: "Die Gradienten früherer Schritte, die das Momentum behält, überwiegen",
      newton_schulz: "Newton–Schulz kehrt die Richtung um, denn es hängt von der ganzen Matrix ab",
    };
    return `${goes}, ${gradient === -change ? "wie es sein Gradient verlangt" : "obwohl sein Gradient"} ${gradient === -change ? `(${value})` : `${slope} ist`}. ${reasons[cause] ?? `Der Grund ist „${causeName}“`}.`;
  },
  before: "alter Wert",
  change: "Änderung",
  after: "neuer Wert",
  pushes:
    "Balken nach rechts heben das Gewicht (↑), Balken nach links senken es (↓). Ein positiver Gradient senkt es, ein negativer hebt es.",
  otherParts: (n) => (n === 1 ? "1 anderer" : `${n} andere`),
  partsSum: "der Gradient: die Summe aller Teile",
  rate: (rate) => `Lernrate ${rate}`,
  updateTerms: {
    gradient: "einfacher Gradientenabstieg",
    clipping: "Begrenzung (Clipping)",
    momentum: "Momentum",
    second_moment: "zweites Moment",
    newton_schulz: "Newton–Schulz",
    rows: "Normierung der Zeilen",
    shape: "Form der Matrix",
    weight_decay: "Weight Decay",
    rounding: "Rundung",
    frozen: "eingefroren",
    adapter_A: "Adapter A",
    adapter_B: "Adapter B",
    adapter_AB: "beide Adapter",
  },
  updateHints: {
    gradient: () => "Einfacher Gradientenabstieg: minus Lernrate mal Gradient.",
    clipping: () =>
      "Ist der Gradient aller Gewichte zusammen länger als die Grenze, wird er im Ganzen auf diese Länge gekürzt.",
    momentum: () =>
      "Ersetzt den Gradienten durch einen gleitenden Mittelwert über die Schritte. Im ersten Schritt von AdamW ist das der Gradient selbst; Muon blickt zusätzlich einen Schritt voraus (Nesterov).",
    second_moment: ({ epsilon }) =>
      `AdamW teilt durch die Wurzel des gleitenden Mittelwerts der quadrierten Gradienten plus ε = ${epsilon}, damit sich alle Gewichte etwa gleich weit bewegen. Im ersten Schritt bewegt sich eine Zahl um etwa die Lernrate, aber weniger, wenn ihr begrenzter Gradient nicht viel größer als ε ist.`,
    newton_schulz: () =>
      "Muon ersetzt die Matrix der Richtungen durch eine, deren Singulärwerte alle nahe 1 sind. Jede Zahl hängt dann von der ganzen Matrix ab und kann sogar ihr Vorzeichen ändern.",
    rows: () =>
      "NorMuon teilt jede Zeile durch das gleitende quadratische Mittel ihrer Zahlen, damit sich alle Zeilen etwa gleich weit bewegen.",
    shape: () =>
      "Hat die Matrix mehr Ausgänge als Eingänge, multipliziert Muon den Schritt mit der Wurzel ihres Verhältnisses.",
    weight_decay: ({ rate, decay, before }) =>
      `Zieht das Gewicht in Richtung 0, unabhängig vom Verlust: minus Lernrate (${rate}) mal Weight Decay (${decay}) mal alter Wert (${before}).`,
    rounding: () => "Was verloren geht, weil der neue Wert als float32-Zahl gespeichert wird.",
    frozen: () => "Dieses Gewicht wird nicht trainiert.",
    adapter_A: () => "Was die Änderung der Matrix A des Adapters beiträgt.",
    adapter_B: () => "Was die Änderung der Matrix B des Adapters beiträgt.",
    adapter_AB: () => "Was die Änderungen von A und B gemeinsam beitragen.",
  },
  byPosition: "Tokens, die es verwenden",
  byPositionHint:
    "Was die Verwendung des Gewichts an jedem Token zu seinem Gradienten beiträgt, die größten Beiträge zuerst.",
  byTarget: "Vorhersagen, die es bewegen",
  byTargetHint:
    "Was der Verlust jeder Vorhersage zum Gradienten des Gewichts beiträgt, die größten Beiträge zuerst.",
  prediction: (token, target) => `${token} → ${target}`,
  takeHint: "Wendet die Änderung auf eine Kopie des Modells an und vergleicht diese mit dem Original.",
  taking: "Es wird trainiert …",
  other: "Ein anderer Text",
  otherHint: "ein Text, auf dem der Schritt nicht berechnet wurde",
  thisText: "Dieser Text",
  otherText: "Anderer Text",
  lossChange: (before, after) => `${before} → ${after}`,
  stepNumber: (step) => `Schritt ${step}`,
  changedWeights: "Gewichte, die den Verlust am meisten senken",
  expected: (expected, actual) =>
    `Gradient × Änderung, summiert über die Zahlen eines Gewichts: sein Anteil an der erwarteten Änderung des Verlusts. Alle Gewichte: ${expected}; tatsächlich änderte sich der Verlust um ${actual}.`,
  moved: "Wahrscheinlichkeiten, die sich am meisten ändern",
  movedAfter: (token) => `nach „${token}“`,
  run: {
    title: (run) => `Trainingslauf ${run}`,
    slider: "Trainingszeit",
    between: (from, to) => `zwischen Schritt ${from} und ${to}`,
    head: (block, head) => `Wie weit sich die Gewichte von Kopf ${block}.${head} bewegt haben`,
    headHint:
      "Die Norm der Änderung zwischen zwei Zwischenständen im Verhältnis zur Norm des Gewichts davor.",
    weights: "Gewicht",
    texts: (step) => `Die Texte von Schritt ${step}, die diesen Kopf am meisten bewegen`,
    openText: "Einen Trainingsschritt mit diesem Text zeigen",
    textsHint:
      "Der Verlust jedes Textes des Batches und die Norm dessen, was er zum Gradienten der Gewichte des Kopfes beiträgt.",
    loss: "Verlust",
  },
};
