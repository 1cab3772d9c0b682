/** Vorlesung 000 auf Deutsch. */

import type { FIGURES_000 as Labels } from "./lecture000.en";
import type { StopText } from "./lectures.en";

export const STOPS_000: Record<string, StopText> = {
  "000.1": {
    title: "Statische und kontextuelle Einbettungen",
    idea: "Word2vec und seine Verwandten speichern je Wort einen Vektor in einer Tabelle, gleich in welchem Satz: eine statische Einbettung. Doch was „it“ bedeutet, hängt vom Satz ab. Ein Transformer geht von einer solchen Tabelle aus und macht Block für Block aus dem Vektor jedes Tokens einen kontextuellen.",
    notice:
      "In der Tabelle hat „it“ einen Vektor (Kosinus 1), nach den Blöcken zwei. Klicke auf tired / wide: „it“ bleibt gleich, denn das Adjektiv kommt danach. Wähle dann den Punkt: Er unterscheidet sich.",
    question:
      "Zwei Sätze sind bis auf das letzte Wort gleich. Wo hat ein Modell, das von links nach rechts liest, verschiedene Vektoren?",
    options: ["bei allen Tokens", "von „it“ an", "erst vom letzten Wort an"],
    hint: "Der Vektor eines Tokens wird aus diesem Token und denen davor berechnet.",
    solution:
      "Erst vom letzten Wort an: Alle früheren Tokens haben denselben Text gesehen. Damit sich schon „it“ unterscheidet, muss ein Modell in beide Richtungen lesen.",
    notes:
      "Große Sprachmodelle sind aus Transformern gebaut: Netzen, die auf Aufmerksamkeit beruhen. Frage, was „it“ in einer Tabelle bedeutet: ein einziger Vektor für alle Verwendungen. Die Vorlesung zeichnet die Aufmerksamkeit bei „it“; in einem kausalen Modell sieht „it“ das Adjektiv nicht, der Unterschied zeigt sich also beim Adjektiv und danach. Im ersten Paar kommt ein Teil des Unterschieds von der Position, denn „it“ steht nicht in beiden Sätzen an derselben Stelle.",
  },
  "000.2": {
    title: "Aufmerksamkeit wählt aus und fasst zusammen",
    idea: "Die Selbstaufmerksamkeit bildet den kontextuellen Vektor eines Tokens, indem sie Information aus den Tokens bis zu ihm aufnimmt, aus manchen mehr als aus anderen. Die Ausgabe ist eine gewichtete Summe von Vektoren der Schicht darunter: $a_i = \\sum_{j \\le i} \\alpha_{ij}\\, v_j$; die Gewichte $\\alpha_{ij}$ eines Tokens, seine Aufmerksamkeitsverteilung, ergeben zusammen 1.",
    notice:
      "Die Dicke einer Linie ist ihr Gewicht. Wähle andere Tokens: Keine Linie führt zu einem späteren. Wähle andere Köpfe: Jeder wählt auf seine Weise aus.",
    question:
      "Drei Tokens haben die Werte 2, 4 und 10. Ein Token achtet auf sie mit den Gewichten 0,5, 0,25 und 0,25. Wie groß ist die gewichtete Summe?",
    hint: "Multipliziere jeden Wert mit seinem Gewicht und addiere die Produkte.",
    solution: "$0{,}5 \\cdot 2 + 0{,}25 \\cdot 4 + 0{,}25 \\cdot 10 = 1 + 1 + 2{,}5$, also {answer}.",
    notes:
      "Das ist das Bild der Vorlesung mit zwei Schichten, hier mit den Aufmerksamkeitsgewichten des geladenen Modells. Verlasse die Ansicht mit Esc, gib oben auf der Seite einen anderen Satz ein und lass die Gruppe raten, wohin ein Token blickt. Ein Gewicht sagt, wie viel von einem Token genommen wird, nicht was: Das bestimmt der Wert.",
  },
  "000.3": {
    title: "Die einfachste Aufmerksamkeit",
    idea: "Noch ohne Matrizen. Ähnliche Vektoren haben ein großes Skalarprodukt, also dient es als Score: $\\text{score}(x_i, x_j) = x_i \\cdot x_j$. Die Softmax über alle $j \\le i$ macht aus Scores Gewichte $\\alpha_{ij}$, und die Ausgabe ist die gewichtete Summe der Vektoren selbst, $a_i = \\sum_{j \\le i} \\alpha_{ij}\\, x_j$.",
    notice:
      "Der Vektor von „it“ ähnelt dem von „chicken“, das 0,67 des Gewichts bekommt. Ändere den ersten Vektor in [0; 0,5], und „it“ achtet auf sich selbst. Das erste Token hat keine Wahl: Sein Gewicht auf sich selbst ist 1.",
    question:
      "Sei $x_1 = [2; 0]$, $x_2 = [0; 1]$ und $x_3 = [1; 0]$. Wie groß ist $\\alpha_{31}$, das Gewicht, das $x_3$ auf $x_1$ legt?",
    hint: "Die Scores von $x_3$ sind 2, 0 und 1.",
    solution:
      "$\\alpha_{31} = e^2 / (e^2 + e^0 + e^1) \\approx$ {answer}. Ein längerer Vektor kann besser passen als der Vektor selbst.",
    notes:
      "Rechne eine Zeile an der Tafel vor, ändere dann eine Zahl und lass die Gruppe vorhersagen, in welche Richtung sich die Gewichte verschieben. Wechsle zu den Einbettungen des Modells: dieselbe Rechnung mit längeren Vektoren. Weise darauf hin, was fehlt: Ein Token ähnelt immer sich selbst und achtet deshalb gern auf sich selbst.",
  },
  "000.4": {
    title: "Anfrage, Schlüssel und Wert",
    idea: "Ein Vektor spielt drei Rollen. Als Anfrage ist er das aktuelle Token, das etwas sucht, als Schlüssel ein früheres Token, mit dem verglichen wird, und als Wert das, was gewichtet und summiert wird. Jede Rolle hat ihre eigene Matrix: $W^Q$, $W^K$ und $W^V$.",
    notice:
      "Ohne Matrizen sucht „it“ Vektoren wie den eigenen und findet „chicken“. Hier macht $W^Q$ daraus eine Anfrage nach der zweiten Zahl, und „road“ bekommt 0,94. Was davon genommen wird, bestimmt $W^V$: die beiden Zahlen, vertauscht.",
    question: "Alle vier Zahlen von $W^Q$ seien 0. Welches Gewicht gibt $x_3$ dann $x_1$?",
    hint: "Eine Anfrage aus Nullen hat mit jedem Schlüssel denselben Score.",
    solution: "Alle Scores sind 0, und drei gleiche Scores teilen sich das Gewicht: $1/3$, also {answer}.",
    notes:
      "Geh die Formeln Zeile für Zeile durch und frage, was sich geändert hat: Aus $x$ wurde $q$, $k$ oder $v$, sonst nichts. Mit drei Einheitsmatrizen ist die rechte Seite gleich der linken; probiere es aus. Eine Anfrage muss dem eigenen Schlüssel nicht ähneln: So kann ein Pronomen nach Nomen suchen.",
  },
  "000.5": {
    title: "Warum dividiert wird",
    idea: "Ein Skalarprodukt aus $d_k$ zufälligen Summanden hat die Standardabweichung $\\sqrt{d_k}$, lange Vektoren haben also große Scores. Dann legt die Softmax fast alles Gewicht auf ein Token, und ihr Gradient $\\alpha (1 - \\alpha)$ verschwindet. Die Division durch $\\sqrt{d_k}$ gleicht das aus.",
    notice:
      "60 zufällige Anfragen treffen auf je 8 Schlüssel. Bei $d_k = 64$ haben die Scores ohne Division eine Standardabweichung um 8, und das größte Gewicht liegt meist nahe 1. Mit Division liegt die Standardabweichung bei jedem $d_k$ um 1, und der Gradient bleibt größer.",
    question:
      "Anfragen und Schlüssel bekommen je 64 Zahlen, vorher waren es nur 4. Um welchen Faktor wächst die Standardabweichung der Scores ohne Division?",
    hint: "Die Standardabweichung ist $\\sqrt{d_k}$.",
    solution:
      "$\\sqrt{64} / \\sqrt{4} = 8 / 2 =$ {answer}. Genau das gleicht die Division durch $\\sqrt{d_k}$ aus.",
    notes:
      "Das Argument stammt aus dem Transformer-Artikel (Vaswani et al. 2017): Komponenten mit Mittelwert 0 und Varianz 1 ergeben Skalarprodukte mit Varianz $d_k$. Ziehe ein paarmal neu, damit die Gruppe sieht, was Zufall ist. Die Division ist eine praktische Hilfe für das Training; ein trainiertes Modell hätte auch kürzere Schlüssel lernen können.",
  },
  "000.6": {
    title: "Das dritte Token, Schritt für Schritt",
    idea: "Alles, was ein Kopf für das dritte Token tut, der Reihe nach: jedes $x_j$ auf Anfrage, Schlüssel und Wert projizieren, $q_3$ mit den Schlüsseln von $x_1$, $x_2$ und $x_3$ vergleichen, durch $\\sqrt{d_k}$ dividieren, Softmax, jeden Wert gewichten, summieren und die Ausgabe $a_3$ weitergeben, hier durch $W^O$.",
    notice:
      "Geh die sieben Schritte von links nach rechts durch: Jeder fügt eine Spalte oder Zeile hinzu, die aus den vorigen berechnet ist. Die Zahlen sind die des Modells und des Textes oben auf der Seite.",
    question:
      "Sei $d_k = 4$, und $q_3$ habe mit den drei Schlüsseln die Skalarprodukte 2, 0 und 2. Wie groß ist $\\alpha_{33}$?",
    hint: "Dividiere zuerst durch $\\sqrt{4} = 2$: Die Scores sind 1, 0 und 1.",
    solution: "$e^1 / (e^1 + e^0 + e^1) \\approx$ {answer}.",
    notes:
      "Decke einen Schritt erst auf, wenn jemand gesagt hat, was als Nächstes kommt. Beteiligt sind nur die Tokens, die das dritte sehen kann; wähle das erste Token, und die Softmax hat nichts zu entscheiden. Die volle Ansicht zeigt, woher jede einzelne Zahl kommt.",
  },
  "000.7": {
    title: "Viele Köpfe",
    idea: "Ein Kopf verteilt je Token nur einmal Gewichte. Multi-Head-Aufmerksamkeit lässt viele Köpfe nebeneinander laufen, jeden mit eigenem $W^Q$, $W^K$ und $W^V$; $W^O$ fasst zusammen, was sie finden. Manche lernen Rollen: Sie achten auf das vorige Token, das Nomen zum Pronomen oder auf das, was früher auf dieses Token folgte.",
    notice:
      "Wähle eine Rolle: Das Bild zeigt den Kopf, der sie in diesem Modell am besten spielt. Die Verluste sagen, wie gut das Modell den Text mit diesem Kopf und ohne ihn vorhersagt: Wähle Induktion, dann „Geschichte nehmen“, und vergleiche die beiden.",
    question:
      "Ein Modell der Breite $d = 768$ teilt sie auf 12 Köpfe auf. Wie viele Zahlen hat das $a_i$ eines Kopfes?",
    hint: "Alle Köpfe zusammen füllen die Breite des Modells.",
    solution: "$768 / 12$, also {answer}. Nebeneinander sind die 12 Ausgaben wieder 768 breit.",
    notes:
      "Das mittlere Gewicht ist an Texten mit bekanntem Ziel gemessen; zum Vergleich dient gleichmäßige Aufmerksamkeit. Ein untrainiertes oder sehr kleines Modell hat keine klaren Rollen. Ein Kopf, den ein Text nicht braucht, ändert wenig, wenn er fehlt; deshalb wiederholt die Geschichte einen Namen und ein Nomen.",
  },
  "000.8": {
    title: "Der Transformer-Block",
    idea: "Zur Aufmerksamkeit kommen im Block drei Teile. Die Layer Norm ist der z-Wert eines Vektors, $\\hat{x} = (x - \\mu) / \\sigma$, dann $\\gamma \\hat{x} + \\beta$. Das Feed-Forward-Netz bringt eine Nichtlinearität, $\\text{FFN}(x) = \\text{ReLU}(x W_1 + b_1) W_2 + b_2$. Und jedes Ergebnis wird zur Eingabe addiert.",
    notice:
      "Folge $x$ durch die sechs Zeilen: Zwei normieren, zwei rechnen, zwei addieren. Schalte ReLU aus: Das Feed-Forward-Netz wird zu einer Matrix $W_1 W_2$, und zwei Schichten können nicht mehr als eine.",
    question: "Sei $x = [2; 4; 6]$. Wie groß ist die dritte Zahl von $\\hat{x}$, ihr z-Wert?",
    hint: "$\\mu = 4$ und $\\sigma = \\sqrt{(4 + 0 + 4) / 3}$, mit $1/d$ und nicht $1/(d-1)$.",
    solution: "$(6 - 4) / \\sqrt{8/3} \\approx$ {answer}.",
    notes:
      "Der Kopf hat hier Einheitsmatrizen, und beide Bias-Vektoren sind null, damit sich alles von Hand prüfen lässt. Multipliziere $x$ mit 10: $\\hat{x}$ ändert sich nicht, $t^3$ schon. Zeige dann dieselben sechs Zeilen im Modell; ein Modell mit RMSNorm lässt den Mittelwert weg.",
  },
  "000.9": {
    title: "Der Stapel",
    idea: "Ein Transformer ist ein Stapel solcher Blöcke. Jeder nimmt je Token einen Vektor der Breite $d$ und gibt einen derselben Breite zurück; so kann die Ausgabe von Block 1 die Eingabe von Block 2 sein. Die Zahlen ändern sich, die Form nie.",
    notice:
      "Lies von unten nach oben: auf jeder Ebene dieselbe Breite. Ein Block addiert zu seiner Eingabe: Mancher ändert den Vektor stark (ein Kosinus deutlich unter 1), mancher nur wenig. Wähle ein anderes Token: Es hat seine eigene Spalte von Vektoren.",
    question:
      "14 Tokens gehen in einen Stapel von Blöcken der Breite $d = 128$. Wie viele Zahlen verlassen den dritten Block?",
    hint: "Nach jedem Block ein Vektor der Breite $d$ je Token.",
    solution: "$14 \\cdot 128$, also {answer}, genau so viele wie am Anfang.",
    notes:
      "Frage, warum Anfragen schmaler sein dürfen, die Ausgabe eines Blocks aber nicht: Sie wird zur Eingabe addiert. Bibliotheken zählen Blöcke oft von 0 an, so auch diese Seite. Der Link öffnet die Logit-Linse, die auf jeder Ebene eine Vorhersage abliest und das nur kann, weil alle Ebenen gleich breit sind.",
  },
  "000.10": {
    title: "Der Residualstrom",
    idea: "Den Vektor eines Tokens über alle Blöcke nennt man Residualstrom. Nur die Aufmerksamkeit liest aus anderen Strömen: Ein Kopf bringt Information daraus in den aktuellen (Elhage et al. 2021). Zwei Köpfe bilden einen Induktionsschaltkreis: Der erste vermerkt bei jedem Token, was davor stand; der zweite findet, wo das aktuelle Token schon einmal stand, und kopiert, was folgte.",
    notice:
      "Nach A B C A wird B vorhergesagt. Ohne den ersten Kopf kopiert der zweite von allen Tokens gleich viel, auch vom Anfang; ohne den zweiten sind alle Buchstaben gleich wahrscheinlich.",
    question:
      "Entferne alle Köpfe und ändere den Vektor des ersten Tokens. In welchen Strömen ändert sich etwas?",
    options: ["nur in seinem eigenen", "in seinem und allen späteren", "in allen"],
    hint: "Welche Teile eines Blocks lesen aus den Strömen anderer Tokens?",
    solution: "Nur in seinem eigenen: Ohne Köpfe gelangt nichts von einem Strom in einen anderen.",
    notes:
      "Jeder Strom hat hier drei Teile, und jeder Teil wird von einem Kopf oder von der Einbettung geschrieben: So wird die Bewegung sichtbar. Der erste Kopf schreibt in einen Strom; der zweite arbeitet an einem späteren und liest, was der erste geschrieben hat. Keiner der beiden kann das allein. Der Link zeigt die Köpfe des Modells, sortiert nach Induktion.",
  },
};

export const FIGURES_000: typeof Labels = {
  head: "Kopf",
  token: "Token",
  sentence: (number) => `Satz ${number}`,
  pairs: ["chicken / trumpet", "tired / wide"],
  sharedToken: "Token in beiden",
  nothingShared: "Die beiden Sätze haben kein Token gemeinsam.",
  table: "Tabelle",
  afterBlock: (i) => `nach Block ${i}`,
  staticVector: "Zeile der Einbettungstabelle",
  contextualVectors: "Vektoren nach dem letzten Block",
  cosine: "Kosinus der beiden Vektoren",
  firstNumbers: (shown, all, model) =>
    `Die ersten ${Math.min(shown, all)} von ${all} Zahlen, im Modell ${model}.`,
  layerAbove: "Schicht darüber",
  layerBelow: "Schicht darunter",
  lines: "Linien vom gewählten Token zu denen, auf die es achtet",
  notShown: (share) => `${share} des Gewichts liegen auf Tokens, die nicht gezeigt sind.`,
  mostWeight: (from, to, share) => `„${from}“ legt das meiste Gewicht auf „${to}“: ${share}.`,
  ownText: (model) => `Die Aufmerksamkeitsgewichte des Modells ${model} für den Text oben auf der Seite.`,
  vectors: "Vektoren",
  sources: { hand: "Von Hand", model: "Im Modell" },
  forToken: "Token",
  x: "Eingabe",
  attention: "Aufmerksamkeit",
  threeEmbeddings: (d) =>
    `Die Einbettungen der ersten Tokens des Textes oben auf der Seite. Jede hat ${d} Zahlen.`,
  simplified: "Vereinfacht",
  desimplified: "Vollständig",
  alphaOf: (side) => `Gewichte, ${side}`,
  outputOf: (side) => `Ausgabe, ${side}`,
  width: "Breite $d_k$",
  widthAxis: "Breite von Anfragen und Schlüsseln",
  redraw: "Neu ziehen",
  sharpness: "Scores und Gewichte",
  undivided: "ohne Division",
  dividedBy: "mit Division",
  deviation: "Standardabweichung",
  overQueries: (queries) => `über ${queries} Anfragen`,
  largest: "größtes Gewicht, Mittel",
  slope: "sein Gradient $\\alpha(1 - \\alpha)$, Mittel",
  oneQuery: "Gewichte einer Anfrage",
  steps: "Schritte",
  stepNames: {
    project: "projizieren",
    compare: "vergleichen",
    divide: "dividieren",
    softmax: "Softmax",
    weigh: "gewichten",
    sum: "summieren",
    write: "Ausgabe",
  },
  stepTexts: {
    project: (i) => `Multipliziere jeden Vektor mit $W^Q$, $W^K$ und $W^V$: $q_${i}$, $k_j$ und $v_j$.`,
    compare: (i) => `Das Skalarprodukt von $q_${i}$ mit jedem Schlüssel bis $k_${i}$.`,
    divide: () => "Dividiere jeden Score durch $\\sqrt{d_k}$.",
    softmax: () => "Mach aus den Scores Gewichte, die zusammen 1 ergeben.",
    weigh: (i) => `Multipliziere jeden Wert mit seinem Gewicht $\\alpha_{${i}j}$.`,
    sum: (i) => `Addiere die gewichteten Werte: $a_${i}$.`,
    write: (i) => `$a_${i}$ ist die Ausgabe des Kopfes; $W^O$ schreibt sie in den Strom von $x_${i}$.`,
  },
  thenChanged: (normalized, rotated) => {
    const changes = [normalized && "normiert", rotated && "nach ihrer Position gedreht"].filter(Boolean);
    return changes.length > 0 ? `Anfragen und Schlüssel werden dann ${changes.join(" und ")}.` : "";
  },
  thenCapped: "Dieses Modell begrenzt die Quotienten dann, damit keiner zu groß wird.",
  ofMany: (shown, all) => `Die ersten ${shown} Zahlen jedes Vektors; eine Anfrage hat ${all}.`,
  role: "Rolle",
  roleScore: "mittleres Gewicht auf dem Ziel",
  chance: "gleichmäßige Aufmerksamkeit",
  notInText: {
    previous: "",
    antecedent: "Dieser Text hat kein Pronomen.",
    induction: "In diesem Text wiederholt sich kein Wort.",
  },
  lossWith: "Verlust auf dem Text",
  lossWithout: "ohne diesen Kopf",
  mostLost: (token, after, before, without) =>
    `Am meisten verliert „${token}“ nach „${after}“: ${before} mit diesem Kopf, ${without} ohne ihn.`,
  nothingLost: "Kein Token dieses Textes wird ohne diesen Kopf viel unwahrscheinlicher.",
  useStory: "Geschichte nehmen",
  scoredOffline:
    "Das mittlere Gewicht ist an Testtexten gemessen. Um einen Kopf zu entfernen, braucht es einen Server.",
  gainAndShift: "Verstärkung und Verschiebung",
  lines6: "Zeilen des Blocks",
  handBlock:
    "Ein Kopf mit Einheitsmatrizen; $b_1 = b_2 = 0$; gleiche $\\gamma$ und $\\beta$ in beiden Normen.",
  linear: "Ohne ReLU ist $(t^4 W_1) W_2 = t^4 (W_1 W_2)$: Eine einzige Matrix würde genügen.",
  modelBlock: (block, shown, d) =>
    `Block ${block} des Modells für den Text oben auf der Seite: die ersten ${shown} von ${d} Zahlen.`,
  stack: "der Stapel",
  into: "in Block 0",
  blockOrder: "von unten nach oben",
  shape: "Form",
  numbersOf: "Zahlen",
  length: "Länge",
  cosineBelow: "Kosinus zur Zeile darunter",
  pooled: (least, most) =>
    `Jede Zelle zeigt die größte von ${least === most ? most : `${least} oder ${most}`} Zahlen.`,
  stackOf: (model, blocks, d, tokens) =>
    `${model}: ${blocks} Blöcke, alle der Breite d = ${d}. Bei ${tokens} Tokens nimmt jeder ${tokens} × ${d} Zahlen auf und gibt ebenso viele aus.`,
  someBlocks: (most) => `Nur ${most} der Blöcke sind gezeigt.`,
  letters: "Buchstaben",
  onlyLetters: (most) => `Gib 1 bis ${most} der Buchstaben A, B, C und D ein.`,
  previousHead: "Kopf für das vorige Token",
  inductionHead: "Induktionskopf",
  start: "Anfang",
  own: "eigener Buchstabe",
  before: "Buchstabe davor",
  copied: "Buchstabe danach",
  lastWeights: "Induktionskopf, letztes Token",
  prediction: "Vorhersage",
};
