/** Die Texte der Schritte eines Blocks, der Stellen und des Gangs durch sie auf Deutsch. */

import type { steps as English } from "./steps.en";

export const steps: typeof English = {
  steps: {
    "look up": {
      name: "nachschlagen",
      description:
        "Die Nummer jedes Tokens wählt eine Zeile der Einbettungsmatrix aus. Diese Zeile ist der Vektor des Tokens.",
    },
    place: {
      name: "Position",
      description: "Jede Position hat einen eigenen Vektor, der dem Modell sagt, wo das Token steht.",
    },
    enter: {
      name: "Eingang",
      description: "Das ist der Eingang des ersten Blocks: Hier beginnt der Residualstrom jedes Tokens.",
    },
    read: {
      name: "Eingang",
      description:
        "In diesem Modell wird hier nichts normiert: Aufmerksamkeit und Feed-Forward-Netz lesen den Residualstrom selbst, und ihre Ausgaben werden normiert.",
    },
    mean: { name: "Mittelwert μ", description: "Das ist der Mittelwert des Vektors jedes Tokens." },
    scale: {
      name: "Skala σ",
      description:
        "Das ist das quadratische Mittel des Vektors jedes Tokens: die typische Größe seiner Einträge. Der Vektor wird durch diese Zahl dividiert.",
    },
    norm: {
      name: "normieren",
      description:
        "Der Vektor jedes Tokens wird durch seine Skala dividiert und jede Dimension mit einer gelernten Verstärkung multipliziert. Die Streifen zeigen das für das gewählte Token.",
    },
    project: {
      name: "projizieren",
      description:
        "Drei Matrizen projizieren den Vektor jedes Tokens auf eine Anfrage (was suche ich?), einen Schlüssel (was biete ich an?) und einen Wert (was gebe ich weiter?).",
    },
    level: {
      name: "QK-Normierung",
      description:
        "Anfragen und Schlüssel werden auf eine gemeinsame Größe normiert, bevor sie verglichen werden.",
    },
    rotate: {
      name: "drehen",
      description:
        "Zahlenpaare werden um einen Winkel gedreht, der mit der Position wächst (RoPE); so hängt der Vergleich zweier Tokens von ihrem Abstand ab.",
    },
    compare: {
      name: "vergleichen",
      description:
        "Die Anfrage jedes Tokens wird mit dem Schlüssel jedes Tokens verglichen. Der Score ist ihr Skalarprodukt.",
    },
    divide: {
      name: "dividieren",
      description:
        "Jeder Score wird durch $\\sqrt{d_k}$ dividiert, damit die Skalarprodukte langer Vektoren die Softmax nicht sättigen.",
    },
    cap: {
      name: "begrenzen",
      description:
        "Die weiche Begrenzung $c \\tanh(x / c)$ ändert kleine Zahlen kaum und hält große zwischen $-c$ und $c$.",
    },
    mask: {
      name: "maskieren",
      description:
        "Ein Token darf nicht auf die Tokens achten, die nach ihm kommen; deren Scores werden auf −∞ gesetzt.",
    },
    softmax: {
      name: "Softmax",
      description:
        "Die Softmax macht aus jeder Zeile von Scores positive Gewichte, die zusammen 1 ergeben. Nur die Unterschiede innerhalb einer Zeile zählen: Der größte Score bekommt das größte Gewicht, auch wenn alle negativ sind.",
    },
    weigh: {
      name: "gewichten",
      description: "Jeder Wert wird mit dem Gewicht multipliziert, das ihm das ausgewählte Token gibt.",
    },
    sum: {
      name: "summieren",
      description:
        "Die gewichteten Werte werden summiert. Das ist es, was der Kopf für jedes Token zusammenträgt.",
    },
    write: {
      name: "schreiben",
      description:
        "Die Zeilen von $W^O$, die zu diesem Kopf gehören, projizieren die Summe zurück in den Residualstrom.",
    },
    gather: { name: "alle Köpfe", description: "Die Ausgaben aller Köpfe des Blocks werden summiert." },
    "post norm": {
      name: "Post-Normierung",
      description: "Dieses Modell normiert das Ergebnis noch einmal, bevor es addiert wird.",
    },
    add: { name: "addieren", description: "Das Ergebnis wird zum Residualstrom addiert." },
    expand: {
      name: "erweitern",
      description: "Eine Matrix projiziert den Vektor jedes Tokens auf viel mehr Zahlen, die Neuronen.",
    },
    activate: {
      name: "Nichtlinearität",
      description: "Die Nichtlinearität lässt einige Neuronen aktiv und unterdrückt andere.",
    },
    contract: {
      name: "schreiben",
      description:
        "Jedes aktive Neuron schreibt einen eigenen Vektor. Ihre Summe wird zum Residualstrom addiert.",
    },
    score: {
      name: "Logits",
      description:
        "Der letzte Vektor wird mit dem Vektor jedes Tokens im Vokabular verglichen. Das Ergebnis ist der Logit dieses Tokens.",
    },
    choose: {
      name: "Softmax",
      description: "Die Softmax macht aus den Logits Wahrscheinlichkeiten für das nächste Wort.",
    },
  },
  cell: {
    hover: "Zeige auf eine Zahl, um zu sehen, wie sie berechnet wurde; klicke, um sie zurückzuverfolgen.",
    trained: "Das ist ein trainiertes Gewicht, aus Text gelernt. Hier endet die Spur.",
    inactive: "Dieses Neuron ist für jedes Token dieses Textes 0.",
    edited: (value, computed) =>
      `Eine Änderung hat diese Zahl auf ${value} gesetzt. Ohne sie ergibt die Formel ${computed}.`,
    back: "Zurück",
    formula: "Formel",
    masked: (score) => `Dieses Token ist maskiert: −∞ ersetzt den Score ${score}.`,
    more: (n) => `… ${n} weitere`,
    smaller: (n) => `… ${n} kleinere`,
    order: {
      dot: "größte Produkte zuerst",
      softmax: "dieser, dann die größten",
      mean: "größte zuerst",
      scale: "größte Abweichung zuerst",
      "root mean square": "größte zuerst",
      "head norm": "diese, dann die größten",
    },
    of: (name, token) => `${name} von „${token}“`,
    between: (name, from, to) => `${name} von „${from}“ zu „${to}“`,
    after: (name, predicted, token) => `${name} von „${predicted}“ nach „${token}“`,
    following: (name, token) => `${name} nach „${token}“`,
    headOutput: (head) => `${head}: Ausgabe`,
    sharedHead: (block, head) => `geteilter Kopf ${block}.${head}`,
    attending: (token) => `für „${token}“`,
    entry: (name, [row, column]) =>
      column === undefined ? `${name} ${row}` : `${name}, Zeile ${row}, Spalte ${column}`,
    python: "Namen in Python kopieren",
  },
  sites: {
    embedding: "Einbettung",
    position: "Positionsvektor",
    input: "Blockeingabe",
    normed: "normierte Eingabe",
    attention: "Ausgabe der Aufmerksamkeit",
    attention_normed: "normierte Ausgabe der Aufmerksamkeit",
    middle: "Residualstrom nach der Aufmerksamkeit",
    normed2: "normierter Residualstrom",
    hidden_raw: "Neuron vor der Nichtlinearität",
    hidden_gate: "Gate",
    hidden_up: "Neuron vor dem Gate",
    hidden: "Neuron",
    feedforward: "Ausgabe des Feed-Forward-Netzes",
    feedforward_normed: "normierte Ausgabe des Feed-Forward-Netzes",
    output: "Blockausgabe",
    final: "letzter Vektor",
    logits_raw: "Logit vor der Begrenzung",
    logits: "Logit",
    probabilities: "Wahrscheinlichkeit",
    query_raw: "projizierte Anfrage",
    key_raw: "projizierter Schlüssel",
    query_normed: "normierte Anfrage",
    key_normed: "normierter Schlüssel",
    query: "Anfrage",
    key: "Schlüssel",
    value: "Wert",
    scores: "Score",
    scaled: "skalierter Score",
    capped: "begrenzter Score",
    masked: "maskierter Score",
    weights: "Aufmerksamkeitsgewicht",
    weighed: "gewichteter Wert",
    mixed: "Summe der gewichteten Werte",
    mean: "Mittelwert",
    scale: "Skala",
    gain: "Verstärkung",
    shift: "Verschiebung",
    weight: "Gewicht",
    matrix: "Gewichte",
    bias: "Bias",
  },
  norms: {
    normed: "erste Norm",
    attention_normed: "Aufmerksamkeits-Norm",
    normed2: "zweite Norm",
    feedforward_normed: "Feed-Forward-Norm",
    final: "letzte Norm",
  },
  pointed: {
    axes: "von ↓ zu →",
    score: (what, from, to, score) => `${what} von „${from}“ zu „${to}“: ${score}`,
    future: (from, to) => `„${from}“ kann nicht auf „${to}“ achten, das erst später kommt`,
    outside: (from, to) => `„${to}“ liegt außerhalb des Aufmerksamkeitsfensters von „${from}“`,
    unattended: (from, to) => `Die Maske verhindert, dass „${from}“ auf „${to}“ achtet`,
    number: (row, column, value) => `„${row}“, ${column}: ${value}`,
    difference: (row, column, value) => `${row}, ${column}: ${value}`,
    dimension: (i) => `Dimension ${i}`,
    neuron: (i) => `Neuron ${i}`,
  },
  legend: {
    negative: "negativ",
    positive: "positiv",
    masked: "maskiert",
    exceeded: "Einige Zahlen sind größer und haben alle die kräftigste Farbe.",
    weights: "Aufmerksamkeit",
    strips: "Streifen: negativ → positiv",
    barsSay:
      "Wie viel jeder Block zum Vektor jedes Tokens hinzugefügt hat, im Verhältnis zur Länge des Vektors: eine halbe Zelle, wenn beide gleich lang sind. Über den Balken: das Token, das die Logit-Linse nach jedem Block liest.",
    space: "␣ Leerzeichen",
    spaceSays: "Das Leerzeichen vor einem Wort gehört zum Token: „␣it“ und „it“ sind zwei Tokens.",
    own: "Die Farben jeder Spalte richten sich nach ihren größten Zahlen.",
  },
  walk: {
    title: "Kurzer Rundgang",
    next: "Weiter",
    done: "Fertig",
    skip: "Überspringen",
    back: "Zurück",
    stops: [
      "Dein Text durchläuft das Modell von links nach rechts. Er wird in Tokens zerlegt, und jedes Token behält durchgehend seine eigene Zeile. Die graue Linie ist sein Residualstrom, zu dem jeder Teil etwas addiert.",
      "Nur die Aufmerksamkeit überträgt Information zwischen den Zeilen. Die Quadrate zeigen, wie sehr jedes Token auf die Tokens vor ihm achtet; die grünen Kurven sind die Werte, die das ausgewählte Token erhält. Klicke auf ein Token, um es auszuwählen. Rechts zeigen Balken, wie viel jeder Block addiert; wo Platz ist, steht darüber das Wort, das das Modell vorhersagen würde, wenn es dort aufhörte.",
      "Jede Ansicht beantwortet eine andere Frage zum selben Text. „Alle Köpfe“ zeigt das Aufmerksamkeitsmuster jedes Kopfes; dort findest du Köpfe, deren Aufgabe sich benennen lässt. Mit [ und ] wechselst du zwischen den Köpfen, mit Bild auf und Bild ab zwischen den Blöcken.",
      "Das ist der ausgewählte Teil, Schritt für Schritt und mit den tatsächlichen Zahlen. Mit den Pfeiltasten wechselst du zwischen den Schritten, mit P spielst du sie ab. Zeige auf eine Zahl, um ihre Formel zu sehen; klicke, um sie zu den Zahlen zurückzuverfolgen, aus denen sie berechnet wurde, bis hin zu den trainierten Gewichten.",
      "Das sagt das Modell als nächstes Wort vorher. Ändere die Sampling-Einstellungen, klicke auf ein Wort, um es anzuhängen, oder lass das Modell Text erzeugen.",
      "Gib hier deinen eigenen Text ein. Alles ändert sich mit, während du tippst.",
    ],
    keys: "Tastenkürzel",
    shortcuts: [
      ["← →", "voriger oder nächster Schritt"],
      ["↑ ↓", "voriges oder nächstes Token"],
      ["[ ]", "voriger oder nächster Kopf"],
      ["Bild auf, Bild ab", "voriger oder nächster Block"],
      ["P", "die Schritte abspielen"],
      ["Esc", "zurück zur vorigen Zahl"],
      ["Eingabe", "im Text: das nächste Token anhängen"],
    ],
  },
};
