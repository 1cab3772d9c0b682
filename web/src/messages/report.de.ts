/** Die Texte der Berichtsansicht auf Deutsch. */

import { count, fixed, percent } from "./format.svelte";
import type { Messages } from "./en";

const DOING: [RegExp, string][] = [
  [/^measuring ([\d,]+) tokens/, "Messung an $1 Tokens …"],
  [/^measuring (.+)$/, "Messung an $1 …"],
  [/^counting n-grams/, "N-Gramme werden gezählt …"],
  [/^generating/, "Texte werden erzeugt …"],
  [/^searching/, "Kopien werden im Trainingstext gesucht …"],
  [/^scoring minimal/, "Minimalpaare werden bewertet …"],
  [/^scoring heads/, "Köpfe werden bewertet …"],
];

export const report: Messages["report"] = {
  title: (model) => `Wie gut ist ${model}?`,
  description:
    "Prüft das Modell an einem Text, mit dem es nicht trainiert wurde: wie gut seine Vorhersagen sind, was es schreibt, wie viel davon es kopiert und was am meisten helfen würde.",
  text: "Text",
  textHint:
    "Ein Text, mit dem das Modell nicht trainiert wurde. Wenn das Feld leer ist: was sein Trainingslauf zurückgehalten hat oder, beim eingebauten Modell, neue Geschichten.",
  run: "Bericht erstellen",
  again: "Neu erstellen",
  working: "Wird gemessen …",
  takes: "Das dauert zwischen einigen Sekunden und einigen Minuten.",
  waiting: "Ein anderer Bericht wird gerade erstellt. Dieser beginnt danach.",
  doing: (doing) => {
    const [pattern, text] = DOING.find(([pattern]) => pattern.test(doing)) ?? [/$/, ""];
    return pattern.exec(doing) === null
      ? doing
      : text.replace("$1", (pattern.exec(doing)![1] ?? "").replace(/(\d),(\d)/g, "$1.$2"));
  },
  measured: {
    "held out": (tokens) =>
      `Gemessen an ${tokens} Tokens des Textes, den sein Trainingslauf zurückgehalten hat.`,
    "new stories": (tokens) =>
      `Gemessen an ${tokens} Tokens neuer Geschichten aus der Grammatik, mit der es trainiert wurde.`,
    given: (tokens) => `Gemessen an ${tokens} Tokens des Textes unten.`,
  },
  file: (command) => `Als Datei, auch mit mehreren Modellen im Vergleich: ${command}`,
  figures: {
    bits: "Bits je Byte",
    loss: "Verlust",
    perplexity: "Perplexität",
    right: "nächstes Token richtig",
    calibration: "Kalibrierungsfehler",
    copied: "kopiert",
    pairs: "Minimalpaare richtig",
    overfits: "überangepasst",
  },
  notes: {
    bits: "weniger ist besser",
    loss: "Nats je Token",
    perplexity: "gleich wahrscheinliche Tokens",
    right: "sein wahrscheinlichstes Token",
    calibration: "Abstand zwischen Wahrscheinlichkeit und Trefferquote",
    copied: (share) => `vom zurückgehaltenen Text: ${share}`,
    pairs: (low, high) => `95-%-Intervall ${low} bis ${high}; Zufallsniveau 50\u202f%`,
    overfits: (gap, isLower) =>
      `sein Verlust auf dem Trainingstext ist ${gap} ${isLower ? "niedriger" : "höher"}`,
  },
  help: "Was am meisten helfen würde",
  unknown: "Nicht bekannt: Dafür braucht es einen Trainingslauf, dessen Text noch verfügbar ist.",
  nothing:
    "Es ist nicht überangepasst, und seine Verluste deuten auf nichts hin, was eindeutig helfen würde.",
  advice: ({ what, because }, evidence) => {
    const { tokens_read, training_tokens, parameters, validation, gap, fall } = evidence;
    const losses = validation.map(([, loss]) => loss ?? Infinity);
    const lowest = losses.indexOf(Math.min(...losses));
    const german: Record<string, () => [string, string]> = {
      "fine-tuning SmolLM2 (--from smollm2)": () => [
        "Feinabstimmung von SmolLM2 (--from smollm2)",
        `vor jeder Feinabstimmung braucht SmolLM2 ${fixed(evidence.pretrained ?? NaN, 4)} Bits je Byte für den zurückgehaltenen Teil, dieses Modell ${fixed(evidence.bits_per_byte ?? NaN, 4)}`,
      ],
      "more text": () => [
        "mehr Text",
        `es hat seine ${count(training_tokens, "de")} Tokens ${fixed(tokens_read / training_tokens, 1)}-mal gelesen`,
      ],
      "the model in best/, or fewer steps": () => [
        "das Modell in best/ oder weniger Schritte",
        `sein Validierungsverlust war ${fixed(losses[lowest]!, 4)} bei Schritt ${count(validation[lowest]![0]!, "de")} und am Ende ${fixed(losses.at(-1)!, 4)}`,
      ],
      "more regularization (--dropout), or a smaller model": () => [
        "mehr Regularisierung (--dropout) oder ein kleineres Modell",
        gap !== null && gap > 0
          ? `sein Verlust auf dem Trainingstext ist ${percent(gap)} niedriger als auf zurückgehaltenem Text`
          : `es hat ${count(parameters, "de")} Parameter für ${count(training_tokens, "de")} Tokens`,
      ],
      "more training time": () => [
        "mehr Trainingszeit",
        `sein Validierungsverlust sank im letzten Viertel der Schritte um ${percent(fall ?? NaN, 1)}`,
      ],
      "a larger model": () => [
        "ein größeres Modell",
        `es hat ${fixed(tokens_read / parameters, 1)} Tokens je Parameter gelesen; am besten sind 5 bis 16`,
      ],
    };
    const [translated, reason] = german[what]?.() ?? [what, because];
    return { what: translated, because: reason };
  },
  bits: "Bits je Byte, im Vergleich mit anderen auf demselben Text",
  headers: (bytes: string) =>
    `Der Text hat nur ${bytes} Bytes, daher machen die Kopfdaten von gzip und xz einen großen Teil ihrer Werte aus.`,
  frequency: (inTraining) =>
    `Verlust nach Häufigkeit des Tokens ${inTraining ? "im Trainingstext" : "in diesem Text"}`,
  range: (least, most) => (most === null ? `ab ${least}` : least === most ? least : `${least} bis ${most}`),
  surprises: "Größte Überraschungen",
  expected: (token, probability) => `erwartet ${token} (${probability})`,
  passage: "Rund um die größte Überraschung",
  passageHint: "Je röter ein Token, desto unwahrscheinlicher war es für das Modell.",
  samples: "Was es schreibt",
  temperature: (temperature) => `Temperatur ${temperature}`,
  longestCopy: "Die längste kopierte Passage",
  headings: {
    "Loss by position in the window": "Verlust nach Position im Fenster",
    "tokens read": "gelesene Tokens",
    "nats per token": "Nats je Token",
    Calibration: "Kalibrierung",
    "probability of the most likely token": "Wahrscheinlichkeit des wahrscheinlichsten Tokens",
    "how often it is right": "wie oft es richtig ist",
    "as often as its probability says": "so oft, wie die Wahrscheinlichkeit sagt",
    tokens: "Tokens",
    "Minimal pairs": "Minimalpaare",
    items: "Paare",
    right: "richtig",
    "95% interval": "95-%-Intervall",
    all: "alle",
    "agreement: article": "Kongruenz: Artikel",
    "agreement: noun": "Kongruenz: Nomen",
    "agreement: verb": "Kongruenz: Verb",
    pronoun: "Pronomen",
    "copied name": "wiederholter Name",
    induction: "Induktion",
    "Heads by role": "Köpfe nach Rolle",
    "best head": "bester Kopf",
    "highest score": "höchster Wert",
    "uniform attention": "gleichmäßige Aufmerksamkeit",
    previous: "voriges Token",
    first: "erstes Token",
    repeated: "gleiches Token",
    antecedent: "Bezugswort",
    "Loss of the run": "Verlust des Trainingslaufs",
    steps: "Schritte",
    training: "Training",
    validation: "Validierung",
    Settings: "Einstellungen",
    setting: "Einstellung",
    text: "Text",
    "training tokens": "Trainingstokens",
    tokenizer: "Tokenizer",
    "started from": "ausgehend von",
    minutes: "Minuten",
    "batch size": "Batch-Größe",
    context: "Kontext",
    optimizer: "Optimierer",
    "learning rate": "Lernrate",
    schedule: "Verlauf der Lernrate",
    "weight decay": "Weight Decay",
    dropout: "Dropout",
    seed: "Startwert",
    machine: "Rechner",
  },
};
