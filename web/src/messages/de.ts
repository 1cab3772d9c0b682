/** Der Text der Seite auf Deutsch. */

import type { Messages } from "./en";
import { HEADINGS } from "./headings.de";
import { LABS, SETTING_NAMES } from "./labs.de";
import { learning } from "./learning.de";
import { lectures } from "./lectures.de";
import { report } from "./report.de";
import { REFUSALS } from "./refusals.de";

export const de: Messages = {
  name: "Deutsch",
  header: {
    keys: "Mit der Eingabetaste ziehst du das nächste Wort, Umschalt+Eingabe beginnt eine neue Zeile.",
    reading: "Das Modell rechnet …",
    empty: "Der Text ist leer. Gib etwas ein, um es durch das Modell zu schicken.",
    ignored: (names) =>
      `Ein Teil dieser Adresse ist ungültig oder passt nicht zu Modell und Text: ${names.join(", ")}. Angezeigt wird, was dem am nächsten kommt.`,
    refused: (reason) =>
      `Angezeigt wird ein anderer Text, denn der aus dieser Adresse passt nicht zu diesem Modell: ${reason}`,
    missing: (name, instead) => `Ein Modell „${name}“ gibt es hier nicht. Angezeigt wird ${instead}.`,
    model: "Modell",
    prompt: "Eingabetext",
    examples: "Beispiele",
    next: "Nächstes Wort",
    nextToken: "Nächstes Token",
    samples: "Das nächste Wort nach den vorhergesagten Wahrscheinlichkeiten ziehen",
    theme: "Zwischen hellem und dunklem Modus wechseln",
    language: "Sprache",
    help: "Rundgang starten",
  },
  picker: {
    choose: "Modell wählen",
    none: "noch kein Modell",
    here: "Auf diesem Rechner",
    onPage: "Auf dieser Seite",
    empty: "Hier gibt es noch kein Modell. Lade eines herunter oder trainiere eines mit clearhead demo.",
    more: "Zum Herunterladen",
    shape: (blocks, heads) => `${blocks} × ${heads}`,
    blocks: (blocks, heads) =>
      `${blocks} ${blocks === 1 ? "Block" : "Blöcke"} × ${heads} ${heads === 1 ? "Kopf" : "Köpfe"}`,
    unseen: (kind) => `${kind}: erzeugt Text, hat aber keine Aufmerksamkeitsköpfe`,
    parameters: (n) => `${n} Parameter`,
    origins: {
      run: "hier trainiert",
      pulled: "heruntergeladen",
      "built-in": "eingebaut",
      file: "aus einer Datei",
    },
    states: {
      loaded: "geladen",
      loading: "wird geladen …",
      "not loaded": "",
      failed: "Laden fehlgeschlagen",
    },
    size: (megabytes) => `${megabytes} MB`,
    pull: "Herunterladen",
    pullName: (title) => `${title} herunterladen`,
    cancel: "Abbrechen",
    downloading: (done, total) => `${done} von ${total} MB heruntergeladen`,
    unpacking: (done, total) => `${done} von ${total} MB entpackt und geprüft`,
    cancelled: "Abgebrochen. Es wurde nichts gespeichert.",
    failed: (error) => `Das Modell konnte nicht heruntergeladen werden: ${error}`,
  },
  views: {
    title: "Ansichten",
    names: {
      steps: "Schritt für Schritt",
      heads: "Alle Köpfe",
      compare: "Vergleichen",
      change: "Bearbeiten",
      why: "Attribution",
      lens: "Logit-Linse",
      words: "Wortvektoren",
      learning: "Lernen",
      lectures: "Vorlesungen",
      tiny: "Mini-Kopf",
      labs: "Experimente",
      training: "Training",
      report: "Bericht",
    },
    description: {
      steps: "Zeigt jede Zahl des ausgewählten Teils und wie sie berechnet wurde.",
      heads: "Zeigt die Aufmerksamkeitsmuster aller Köpfe und findet Köpfe nach dem, was sie tun.",
      compare: "Stellt zwei Texte oder zwei Modelle nebeneinander.",
      change:
        "Schaltet Aktivierungen aus (Ablation), skaliert oder ersetzt sie und zeigt, wie sich die Vorhersage ändert.",
      why: "Zeigt, wie viel jeder Kopf, jedes Feed-Forward-Netz und jedes Token zum nächsten Wort beiträgt.",
      lens: "Zeigt, was jeder Block vorhersagen würde, wenn das Modell dort aufhörte.",
      words: "Zeigt Wörter als Vektoren: statische und kontextuelle Einbettungen, Bedeutungen und Nachbarn.",
      learning:
        "Zeigt einen Trainingsschritt auf deinem Text: jeden Verlust, jeden Gradienten, jede Änderung.",
      lectures:
        "Führt Station für Station durch die Vorlesungen: eine Idee, eine Abbildung zum Ändern, eine Frage.",
      tiny: "Zeigt einen Aufmerksamkeitskopf mit zwei Zahlen je Token, zum Ändern von Hand.",
      labs: "Wiederholt die Experimente der Vorlesungen mit eigenen Einstellungen.",
      training: "Zeigt laufende und fertige Trainingsläufe und startet neue.",
      report: "Misst, wie gut das Modell ist und was helfen würde.",
    },
  },
  lectures,
  learning,
  report,
  labs: {
    list: "Experimente",
    run: "Starten",
    again: "Noch einmal starten",
    usual: "Einstellungen zurücksetzen",
    trains:
      "Dieses Experiment trainiert kleine Netze. Das dauert zwischen einigen Sekunden und einigen Minuten.",
    looks: (model) => `Dieses Experiment untersucht ${model}.`,
    designed: (usual) => `Entworfen wurde es für ${usual}.`,
    use: (usual) => `Zu ${usual} wechseln`,
    pull: (usual) => `Um es zu verwenden, lade ${usual} in der Modellliste oben links herunter.`,
    command: (usual) => `Um es zu verwenden, führe clearhead pull ${usual} aus und öffne es hier.`,
    ownText: "Dieses Experiment benutzt eigene Sätze oder Zahlen, nicht den Text oben.",
    otherText: "Dieses Experiment benutzt den Text unten, nicht den oben.",
    useText: "Text von oben übernehmen",
    working: "Das Experiment läuft …",
    elapsed: (seconds) => `${seconds}\u202fs`,
    waiting: "Ein anderes Experiment läuft noch. Dieses beginnt, sobald jenes beendet ist.",
    cancel: "Abbrechen",
    findings: "Kennzahlen",
    question: "Frage",
    byHand: "Matrizen von Hand ändern",
    yes: "ja",
    no: "nein",
    headings: HEADINGS,
    settingNames: SETTING_NAMES,
    translated: LABS,
  },
  asking: { target: "Ziel-Token" },
  compare: {
    description:
      "Schicke zwei Texte durch ein Modell oder einen Text durch zwei Modelle. Einander entsprechende Tokens werden gepaart, und jede Zahl wird mit ihrem Gegenstück verglichen.",
    text: "Anderer Text",
    hint: "ein anderer Text; leer lassen für denselben",
    model: "Modell",
    same: "dasselbe Modell",
    example: (second, one) => `${one} / ${second}`,
    exampleSays: (one, second) => `Setzt beide Texte: „${one}“ und „${second}“`,
    restore: (text) => `Zurück zu „${text}“`,
    begin: (examples) =>
      `Noch wird nichts verglichen. Gib oben einen anderen Text ein${examples ? ", wähle ein anderes Modell oder klicke eines der Beispiele daneben an" : " oder wähle ein anderes Modell"}: Dann siehst du, welche Zahlen sich unterscheiden und wie sehr.`,
    next: (which) => (which === 0 ? "Vorhersagen für diesen Text" : "Vorhersagen für den anderen Text"),
    where: "Größte Unterschiede",
    nowhere: "Hier gibt es keine Unterschiede.",
    group: "Stellen filtern",
    groups: {
      all: "alle Stellen",
      attention: "Aufmerksamkeitsgewichte",
      heads: "Ausgaben der Köpfe",
      stream: "Residualstrom",
      feedforward: "Feed-Forward",
    },
    modes: { difference: "Unterschied", one: "Dieser Text", other: "Anderer Text" },
    modelModes: { difference: "Unterschied", one: "Dieses Modell", other: "Anderes Modell" },
    number:
      "Jede Zahl ist $\\lVert x' - x \\rVert / \\lVert x \\rVert$ mit dem Wert $x$ für diesen Text und dieses Modell und dem anderen Wert $x'$: 0 bedeutet keinen Unterschied, 1 einen Unterschied, der so groß ist wie $x$ selbst. Der Unterschied ist $x' - x$.",
    largest: (shown, all) =>
      `Angezeigt werden die ${shown} größten von ${all}; die übrigen findest du mit dem Filter.`,
    shapes:
      "Die beiden Modelle haben verschiedene Formen. Ihre Aktivierungen lassen sich nicht vergleichen, ihre Vorhersagen schon.",
  },
  change: {
    description:
      "Bearbeite eine Aktivierung und sieh sofort, wie sich das nächste Wort ändert. Wähle in der Zeile darüber einen Kopf oder ein Token, oder öffne ein Neuron des Feed-Forward-Netzes: Es erscheint dann unter „Ausgewählt“.",
    what: "Ausgewählt",
    head: (block, head) => `Kopf ${block}.${head}`,
    stream: (token, block) => `Residualstrom von „${token}“ vor Block ${block}`,
    neuron: (neuron, block) => `Neuron ${neuron} von Block ${block}`,
    weights: (block, head, token) => `Aufmerksamkeitsgewichte von „${token}“ in Kopf ${block}.${head}`,
    share: (token, weight) => `„${token}“ ${weight}`,
    silence: "Ausschalten",
    silenceSays: "Ausschalten: diese Zahlen auf null setzen.",
    scaleSays: "Diese Zahlen mit dem Faktor unten multiplizieren.",
    factor: "Faktor",
    take: "Aus anderem Text übernehmen",
    noOther: "Gib zuerst einen anderen Text ein.",
    hint: "ein Text, aus dem übernommen wird",
    other: "Anderer Text",
    weight: (block, head, from, to) => `Kopf ${block}.${head}: Aufmerksamkeit von „${from}“ auf „${to}“`,
    list: "Aktive Änderungen",
    aside: (count) =>
      count === 1
        ? "Eine Änderung passt nicht zu diesem Text oder Modell und wurde entfernt."
        : `${count} Änderungen passen nicht zu diesem Text oder Modell und wurden entfernt.`,
    none: "Keine. Das Modell ist unverändert.",
    done: {
      ablated: (what) => `${what}: ausgeschaltet`,
      scaled: (what, amount) => `${what}: × ${amount}`,
      patched: (what, text) => `${what}: aus „${text}“ übernommen`,
      set: (what, value) => `${what}: auf ${value} gesetzt`,
    },
    active: (count) => (count === 1 ? "1 Änderung aktiv" : `${count} Änderungen aktiv`),
    unused: "Für diese Ansicht gelten Änderungen nicht.",
    usedByNeighbors: "Hier gelten Änderungen nur für die nächsten Nachbarn.",
    edited: "bearbeitet",
    undo: "Letzte rückgängig machen",
    undoOne: (what) => `Rückgängig machen: ${what}`,
    clear: "Alle rückgängig machen",
    prediction: "Die wahrscheinlichsten Tokens vor und nach den Änderungen",
    before: "vorher",
    after: "nachher",
    rises: "nachher",
    falls: "nachher, wenn niedriger",
    difference: "Balkendiagramm",
  },
  effects: {
    title: "Wirkung auf das Ziel-Token",
    description:
      "Jeder Kopf oder jede Position wird der Reihe nach ausgeschaltet (auf null gesetzt) oder aus dem anderen Text übernommen. Die Zahl ist die Änderung der Log-Wahrscheinlichkeit des Ziel-Tokens: −0,69 halbiert die Wahrscheinlichkeit. Klicke auf eine Zelle, um sie auszuwählen.",
    over: { head: "Köpfe", position: "Positionen" },
    leftOut: "Änderung der Log-Wahrscheinlichkeit, wenn ein Token fehlt",
    leavingOut: (done, all) => `Jedes Token wird einmal weggelassen: ${done} von ${all}`,
    decides: (token) => `Vom letzten Token abgesehen, ist „${token}“ am wichtigsten.`,
    without: (token, target, before, after) =>
      `Die Wahrscheinlichkeit von „${target}“ ist ${before} nach dem ganzen Text und ${after} ohne „${token}“.`,
    ablated:
      "Die Karte zeigt, wo die Information ist: Der Vektor einer Position wird beim Eintritt in einen Block auf null gesetzt. Bei Block 0 fehlt damit auch, was alle Vektoren gemeinsam haben; deshalb scheint dort fast jede Position zu zählen. Welches Token entscheidet, zeigt das Weglassen (oben) oder das Übernehmen aus einem anderen Text.",
    progress: {
      head: (done, all) => `${done} von ${all} Köpfen`,
      position: (done, all) => `${done} von ${all} Positionen`,
    },
    withEdits: "Die aktiven Änderungen bleiben bestehen: Die Zahl bezieht sich auf die Vorhersage mit ihnen.",
    patched: "aus dem anderen Text übernehmen, statt auszuschalten",
    block: (i) => `Block ${i}`,
    summary: (what, before, after) => `${what}: ${before} → ${after}`,
  },
  why: {
    description:
      "Der Residualstrom ist die Summe von allem, was in ihn geschrieben wurde; deshalb ist auch der Logit eines Tokens eine Summe, ebenso die Differenz zweier Logits: warum dieses Token und nicht jenes. Verfolge die größten Beiträge zurück: durch einen Kopf zu dem Token, auf das er achtet, und zu dem, was dort vorher geschrieben wurde.",
    capped: "Dieses Modell begrenzt seine Logits; die Summe ist der Logit vor der Begrenzung.",
    ask: "Warum?",
    askSays: "Die Attribution erklärt diese Aufmerksamkeit.",
    way: "Attributionspfad",
    insteadOf: "statt",
    none: "kein anderes Token",
    noDifference: "Warum dieses Token und nicht ein anderes? Öffne dafür das Modell in Clearhead.",
    lowers: (against) => (against === null ? "senkt" : `für „${against}“`),
    raises: (target) => (target === null ? "erhöht" : `für „${target}“`),
    logit: (target, against) =>
      against === null ? `Logit von „${target}“` : `Logit von „${target}“ − Logit von „${against}“`,
    hop: (block, head, token) => `Kopf ${block}.${head} von „${token}“`,
    wrote: (target, token, against) =>
      against === null
        ? `Beiträge zum Logit von „${target}“, geschrieben in den Residualstrom von „${token}“:`
        : `Beiträge zur Differenz der Logits von „${target}“ und „${against}“, geschrieben in den Residualstrom von „${token}“:`,
    brought: (token, block) =>
      `Beiträge entlang dieses Pfads, vor Block ${block} in den Residualstrom von „${token}“ geschrieben:`,
    follow: (token) => `Zurückverfolgen zu „${token}“`,
    feedforward: (block) => `Feed-Forward ${block}`,
    parts: {
      embedding: "Einbettung",
      position: "Position",
      edits: "deine Änderungen",
      bias: "Bias",
      shift: "Verschiebung der Norm",
      "head shift": "Verschiebung der Kopf-Norm",
      "final.shift": "Verschiebung der letzten Norm",
    },
    ofBlock: {
      "attention.bias": "Aufmerksamkeits-Bias",
      "feedforward.bias": "Feed-Forward-Bias",
      "attention_normed.shift": "Verschiebung der Aufmerksamkeits-Norm",
      "feedforward_normed.shift": "Verschiebung der Feed-Forward-Norm",
    },
    picture: "Beiträge zum Logit, nach Token und Block",
    legend: (target, against) =>
      `Kurven zeigen, was Köpfe von einem Token holen; Kreise zeigen, was Feed-Forward-Netze schreiben. Breite und Durchmesser zeigen den Betrag: Sie wachsen mit seiner Quadratwurzel. ${against === null ? "Violett erhöht den Logit, Ocker senkt ihn." : `Violett spricht für „${target}“, Ocker für „${against}“.`}`,
    looks: (block, head, from, to) => `Warum Kopf ${block}.${head} von „${from}“ aus auf „${to}“ achtet`,
    token: (token) => `„${token}“`,
    rest: (n) => (n === 1 ? "1 weiterer Beitrag" : `${n} weitere Beiträge zusammen`),
    apart: (key, share, other, otherShare) =>
      `„${key}“ bekommt ${share} der Aufmerksamkeit, „${other}“ als zweitstärkstes Token ${otherShare}. Ihre Scores unterscheiden sich um`,
    divided: (value) => `vor der Division durch $\\sqrt{d_k}$ und um ${value} danach.`,
    bySide: "Worüber summiert wird",
    atKeys: (key, other) => `geschrieben bei „${key}“ und „${other}“`,
    atQuery: (query) => `geschrieben bei „${query}“`,
    byKeys: (query, key, other) =>
      `Die Differenz ist eine Summe über die Komponenten vor diesem Block: was jede bei „${key}“ geschrieben hat, minus dem, was sie bei „${other}“ geschrieben hat, auf Schlüssel projiziert und mit der Anfrage von „${query}“ multipliziert. Was bei beiden gleich ist, hebt sich auf: Auch die Softmax ignoriert es.`,
    byQuery: (query, key, other) =>
      `Dieselbe Differenz als Summe über das, was jede Komponente bei „${query}“ geschrieben hat, auf Anfragen projiziert und mit dem Schlüssel von „${key}“ minus dem von „${other}“ multipliziert.`,
    strongestPairs: "Stärkste Paare aus beiden Seiten:",
    alone: (token) =>
      `„${token}“ kann auf kein anderes Token achten; das Gewicht ist daher 100\u202f%, unabhängig vom Score.`,
  },
  words: {
    description:
      "Ein Token hat einen einzigen statischen Vektor, unabhängig vom Kontext. Von Block zu Block nimmt es mehr von seinem Kontext auf: Dasselbe Wort bekommt in jedem Satz einen anderen Vektor, und seine Bedeutungen trennen sich.",
    word: "Wort",
    sentences: (most) => `Sätze, einer je Zeile (höchstens ${most})`,
    noWord: (model) =>
      `Kein einzelnes Token von ${model} ist ein Wort, deshalb gibt es kein Beispiel. Du kannst ein Wort eingeben: Gezeigt werden die Vektoren seines letzten Tokens.`,
    many: (count, most) => `Du hast ${count} Sätze eingegeben. Erlaubt sind höchstens ${most}.`,
    split: (word, pieces) =>
      `Für dieses Modell ist „${word}“ nicht immer ein einziges Token. Gezeigt werden die Vektoren des letzten Tokens: ${pieces.map((piece) => `„${piece}“`).join(", ")}.`,
    without: (word, sentences) =>
      `In ${sentences.map((each) => `„${each}“`).join(", ")} kommt „${word}“ nicht vor.`,
    stage: "Stufe",
    static: "statisch",
    entering: (block) => `Eingang von Block ${block}`,
    end: "Ende",
    alike: "Die statischen Vektoren sind identisch.",
    shares: (share) => `Die ersten beiden Hauptkomponenten erklären ${share} der Varianz.`,
    map: (stage) => `Karte der Vektoren des Wortes (${stage})`,
    curves:
      "Kosinus-Ähnlichkeit zwischen dem Vektor in Satz 0 und denen in den anderen Sätzen, vom statischen Vektor bis zum Ende",
    cosine: "Kosinus-Ähnlichkeit mit dem Vektor in Satz 0",
    neighbors: (token) => `Nächste Nachbarn des ausgewählten Tokens „${token}“`,
    nearSays:
      "Auf jeder Stufe sind das die Tokens, deren eigene Vektoren dem Vektor des ausgewählten Tokens in der Richtung am nächsten kommen (Kosinus-Ähnlichkeit).",
    alongSays:
      "Wähle oben in der Zeile ein anderes Token, oder gib unten zwei Wörter ein, um die Richtung vom ersten zum zweiten zu addieren.",
    cosineColumn: "Kosinus",
    token: "Token",
    from: "Von",
    to: "Nach",
  },
  tiny: {
    description:
      "Dieser Aufmerksamkeitskopf ist klein genug, um ihn von Hand zu berechnen: 0 ist [1; 0] und 1 ist [0; 1]. Ändere die Folge oder eine Zahl in den vier Matrizen, und jeder Schritt wird neu berechnet.",
    sequence: "Folge",
    divided: "durch $\\sqrt{d_k}$ dividieren",
    causal: "Zukunft maskieren",
    base3: "3 statt $e$",
    base3Says: "Die Softmax rechnet mit Potenzen von 3, die sich leichter im Kopf berechnen lassen.",
    examples: {
      boosted: "Verstärkte Schlüssel",
      plain: "Einfache Schlüssel",
      own: "Jede Ziffer sucht sich selbst",
    },
    examplesSay: {
      boosted:
        "Lädt die Folge 0010, Anfragen, die alle nach einer 1 suchen, und Schlüssel der Länge 10: Fast das ganze Gewicht fällt auf die 1.",
      plain: "Lädt die Folge 0010, Anfragen, die alle nach einer 1 suchen, und Schlüssel der Länge 1.",
      own: "Lädt die Folge 01, Anfragen, mit denen jedes Token seine eigene Ziffer sucht, und Schlüssel der Länge 10.",
    },
    matrices: {
      query: "Anfragematrix",
      key: "Schlüsselmatrix",
      value: "Wertmatrix",
      output: "Ausgabematrix",
    },
    entry: (matrix, row, column) => `${matrix}, Zeile ${row}, Spalte ${column}`,
    empty: (most) => `Gib 1 bis ${most} Ziffern ein, jede 0 oder 1.`,
    left: "Nur die Ziffern 0 und 1 zählen; alles andere wird ignoriert.",
    blank: "Das ist keine Zahl. Bis du eine eingibst, gilt die vorherige.",
    steps: {
      query: "Anfrage",
      key: "Schlüssel",
      value: "Wert",
      scores: "vergleichen",
      scaled: "dividieren",
      masked: "maskieren",
      weights: "Softmax",
      mixed: "gewichten und summieren",
      output: "schreiben",
    },
  },
  lens: {
    description:
      "Die Logit-Linse liest den Residualstrom nach jedem Block so aus, als wäre dieser der letzte. Sie zeigt für jede Position, was das Modell vorhersagen würde, wenn es dort aufhörte. Lies sie von oben nach unten: Block 0 ist die erste Zeile, und die letzte Zeile ist die tatsächliche Vorhersage.",
    only: "Wahrscheinlichkeit des Ziel-Tokens anzeigen",
    summary: (token, share) => `„${token}“ ${share}`,
    here: (block, token) => `Nach Block ${block}, bei „${token}“:`,
  },
  training: {
    description:
      "Verfolge den Verlust eines Laufs auf dem Trainingstext und auf zurückgehaltenem Validierungstext. Starte einen Lauf mit deinem eigenen Text, halte ihn an, setze ihn fort und verlängere ihn, wenn er fertig ist.",
    runs: "Läufe",
    loading: "Läufe werden geladen …",
    loadingSteps: "Kurven werden geladen …",
    none: "Es gibt noch keine Läufe. Starte unten einen.",
    nowhere:
      "Hier gibt es keine Läufe. Mit clearhead explore siehst du die Läufe in runs/ und startest neue.",
    states: {
      starting: "wird gestartet …",
      running: "läuft",
      stopping: "wird gespeichert …",
      stopped: "angehalten",
      finished: "fertig",
      failed: "Start fehlgeschlagen",
    },
    steps: (done, planned, about) =>
      done === planned
        ? `${done} ${done === "1" ? "Schritt" : "Schritte"}`
        : `Schritt ${done} von ${about ? "etwa " : ""}${planned}`,
    snapshots: (n, latest) =>
      `${n} ${n === 1 ? "Zwischenstand" : "Zwischenstände"}${latest ? " und der letzte Stand" : ""}`,
    validatedOn: (share) => `auf ${share} des zurückgehaltenen Textes validiert`,
    partial:
      "Aus Zeitmangel nur auf einem Teil des zurückgehaltenen Textes gemessen: nicht mit den Verlusten anderer Läufe vergleichbar.",
    teacher: (n, count, student) => `Lehrer ${n} von ${count} für ${student}`,
    student: (count) => `Schüler von ${count} ${count === 1 ? "Lehrer" : "Lehrern"}`,
    speed: (n) => `${n} Tokens/s`,
    progress: (run) => `Fortschritt von ${run}`,
    open: "Untersuchen",
    openName: (run) => `${run} untersuchen`,
    stop: "Anhalten",
    stopName: (run) => `${run} anhalten`,
    resume: "Fortsetzen",
    resumeName: (run) => `${run} fortsetzen`,
    extend: "Verlängern",
    extendName: (run) => `${run} verlängern`,
    moreMinutes: "Weitere Minuten",
    extendStart: "Starten",
    loss: "Verlust in Nats je Token. Blasse Linie: Training; dünne Linie: Training, geglättet; dicke Linie mit Punkten: Validierung.",
    lossBuiltIn:
      "Der Trainingsverlust des eingebauten Modells ist höher als sein Validierungsverlust, weil nur der Trainingstext auch Listen zufälliger Wörter enthält.",
    lossLabel: (spoken) => `Verlust je Schritt: ${spoken}`,
    spoken: (run, step, loss, validation) =>
      `${run}, Schritt ${step}: Training ${loss}, Validierung ${validation}`,
    rate: "Lernrate der Matrizen",
    readAt: "Schritt auswählen",
    numbers: "Zahlen beim ausgewählten Schritt",
    log: "Logarithmisch",
    run: "Lauf",
    step: "Schritt",
    trainingLoss: "Verlust",
    smoothed: "geglättet",
    validation: "Validierung",
    since: (step) => `bei Schritt ${step}`,
    rateShort: "Lernrate",
    tokens: "gesehene Tokens",
    heads: "Wie die Köpfe entstehen",
    headsOn: (text) => `Aufmerksamkeitsmuster zu „${text}“. Ein Klick zeigt den Kopf Schritt für Schritt.`,
    trains: (run, done, planned) =>
      planned === "" ? `${run} beginnt …` : `${run} wird trainiert: Schritt ${done} von etwa ${planned}`,
    watch: "Zusehen",
    done: (run, steps) => `${run} ist trainiert (${steps} ${steps === "1" ? "Schritt" : "Schritte"}).`,
    tooShort:
      "Das ist zu wenig, um etwas zu lernen: Verlängere den Lauf unter „Training“ oder starte einen längeren.",
    shortTime:
      "In weniger als einer Minute schafft ein Lauf höchstens ein paar Schritte: Zuerst wird der Text gelesen und die Geschwindigkeit gemessen. Ab einer Minute sieht man das Modell lernen.",
    measured: (run, steps, minutes) =>
      `Zum Vergleich: ${run} schaffte auf diesem Rechner ${steps} ${steps === "1" ? "Schritt" : "Schritte"} in ${minutes} min.`,
    compare: (model) => `Mit ${model} vergleichen`,
    close: "Schließen",
    samples: "Textproben während des Trainings",
    after: (step) => `nach Schritt ${step}`,
    waiting: "Warten auf den ersten Schritt …",
    begin: "Neuer Lauf",
    text: "Trainingstext",
    stories: "Eingebaute Geschichten",
    drop: "Textdatei hier ablegen oder",
    choose: "Datei wählen",
    name: "Name",
    nameRule:
      "Erlaubt sind Buchstaben ohne Umlaute, Ziffern, Punkte und Bindestriche; am Anfang steht ein Buchstabe oder eine Ziffer.",
    minutes: "Minuten",
    more: "Weitere Optionen",
    stepsInstead: "Oder Schritte",
    byMinutes: "nach Minuten",
    preset: "Voreinstellung",
    sizes: { blocks: "Blöcke", heads: "Köpfe", width: "Breite", context: "Kontext" },
    fitting: "automatisch",
    start: "Trainieren",
    busy: "Ein anderer Lauf ist noch aktiv",
    tooLarge: "Diese Datei ist zu groß. Erlaubt sind höchstens 60 MB.",
    empty: "Diese Datei ist leer.",
    noText: "Diese Datei ist kein UTF-8-Text.",
  },
  time: {
    play: "Training abspielen",
    pause: "Training anhalten",
    title: "Trainingsschritt",
    description:
      "Bewege dich durch das Training: Jede Ansicht zeigt das Modell, wie es nach dem ausgewählten Schritt war.",
    step: (step, all) => `Schritt ${step} von ${all}`,
    at: (step) => `Schritt ${step}`,
    loss: (loss) => `Verlust ${loss}`,
    lossOf: "Der Trainingsverlust: auf dem Batch dieses Schritts, in Nats je Token.",
    follow: "dem neuesten Schritt folgen",
  },
  matrix: {
    columns: "Spalten",
    rows: "Zeilen",
    range: (name, first, last, total) => `${name} ${first}–${last} von ${total}`,
    back: (name) => `Zu den vorigen ${name}`,
    forth: (name) => `Zu den nächsten ${name}`,
  },
  flow: {
    title: "Vorwärtsdurchlauf",
    tokens: "Tokens",
    embedding: "Einbettung",
    block: (i) => `Block ${i}`,
    blockOf: (i, last) => `Block ${i}. Die Blöcke sind von 0 bis ${last} nummeriert.`,
    norm: "Norm",
    query: "Anfrage",
    key: "Schlüssel",
    value: "Wert",
    attention: (j) => `Aufmerksamkeit · Kopf ${j}`,
    headOf: (j, last) => `Kopf ${j} dieses Blocks. Die Köpfe sind von 0 bis ${last} nummeriert.`,
    feedforward: "Feed-Forward",
    others: (first, last) => (first === last ? `+ Block ${first}` : `+ Blöcke ${first}–${last}`),
    added: (block, token, attention, feedforward) =>
      `Block ${block} bei „${token}“: Die Aufmerksamkeit fügte das ${attention}-Fache und das Feed-Forward-Netz das ${feedforward}-Fache der Länge des eingehenden Vektors hinzu.`,
    read: (token, share) => `Die Logit-Linse liest hier „${token}“ (${share}).`,
    final: "Norm",
    nextWord: "nächstes Wort",
    nextToken: "nächstes Token",
    lastWord: "Wort an der letzten Position",
    previousBlock: "Voriger Block",
    nextBlock: "Nächster Block",
    previousHead: "Voriger Kopf",
    nextHead: "Nächster Kopf",
    pages: (page, count) => `${page} / ${count}`,
    pagesSay: "Nicht alle Spalten passen nebeneinander.",
    previousPage: "Vorige Spalten",
    nextPage: "Nächste Spalten",
    above: (n) => `▴ ${n} weitere`,
    below: (n) => `▾ ${n} weitere`,
  },
  strip: {
    legend: (token) => `Wie viel seiner Aufmerksamkeit „${token}“ im gewählten Kopf auf jedes Token richtet`,
    head: (j) => `Kopf ${j}`,
    weight: (from, to, weight, head) =>
      `„${from}“ richtet ${weight} seiner Aufmerksamkeit auf „${to}“ (${head})`,
  },
  heads: {
    title: "Alle Köpfe",
    label: (block, head) => `Block ${block}, Kopf ${head}`,
    order: "Sortieren nach",
    orders: {
      block: "Block",
      previous: "voriges Token",
      first: "erstes Token",
      repeated: "gleiches Token",
      induction: "Induktion",
      antecedent: "Bezugswort",
    },
    kinds: {
      previous: "achtet auf das vorige Token",
      first: "achtet auf das erste Token",
      repeated: "achtet auf frühere Vorkommen desselben Tokens",
      induction: "achtet auf das, was früher auf dasselbe Token folgte",
      antecedent: "achtet vom Pronomen aus auf dessen Bezugswort",
    },
    block: (i) => `Block ${i}`,
    head: (j) => `Kopf ${j}`,
    description:
      "Eine Zeile je Block, eine Spalte je Kopf. In jedem Muster ist eine Zeile ein Token und eine Spalte ein Token, auf das es achtet; je kräftiger die Farbe, desto mehr Aufmerksamkeit. Klicke auf ein Muster, um es Schritt für Schritt zu sehen.",
    explained: {
      previous:
        "Voriges Token: Aufmerksamkeit eine Position zurück, gleich welche Tokens dort stehen. So erfährt jedes Token, was direkt vor ihm stand.",
      first:
        "Erstes Token: Aufmerksamkeit auf das erste Token, auf dem Köpfe oft ruhen, wenn es nichts zu übertragen gibt.",
      repeated: "Gleiches Token: Aufmerksamkeit auf frühere Vorkommen desselben Tokens.",
      induction:
        "Induktion: Aufmerksamkeit auf das Token nach einem früheren Vorkommen des aktuellen. Nach „A B … A“ findet sie „B“.",
      antecedent:
        "Bezugswort: Aufmerksamkeit von einem Pronomen auf das, wofür es steht, gemessen an Geschichten, in denen das Bezugswort jedes Pronomens bekannt ist.",
    },
    measured:
      "Jeder Wert ist ein mittleres Aufmerksamkeitsgewicht, gemessen an zufälligen, einmal wiederholten Tokens und nicht am Text oben.",
    best: (kind, score) => `${kind}: ${score} seiner Aufmerksamkeit`,
    nothing: "kein bekanntes Muster",
    only: "Nur klare Fälle",
    count: (clear, all) => `: ${clear} von ${all}`,
    onlyHint: (least) =>
      `Nur Köpfe zeigen, die mindestens ${least} ihrer Aufmerksamkeit darauf richten und mindestens doppelt so viel wie bei gleichmäßiger Aufmerksamkeit`,
    none: (least) =>
      `Kein Kopf zeigt dieses Muster deutlich: Keiner richtet mindestens ${least} seiner Aufmerksamkeit darauf und mindestens doppelt so viel wie bei gleichmäßiger Aufmerksamkeit.`,
    finding:
      "Jeder Kopf wird an kleinen Texten mit bekannter Lösung bewertet. Das dauert eine Weile, einmal je Modell …",
    failed: (error) => `Die Köpfe konnten nicht bewertet werden: ${error}`,
    find: "Kopf suchen",
    findHint: (block, head) => `z. B. ${block}.${head}`,
    missed: (block, head) =>
      `Diesen Kopf gibt es nicht. Die Blöcke sind von 0 bis ${block} nummeriert, die Köpfe von 0 bis ${head}. Gib den Namen eines Musters ein, etwa Induktion, um danach zu sortieren.`,
  },
  next: {
    logit: "Logit",
    chance: "Softmax",
    temperature: "Temperatur",
    topK: "Top-k",
    topP: "Top-p",
    minP: "Min-p",
    all: "alle",
    append: (token) => `„${token}“ anhängen`,
    cut: "ausgeschlossen",
    divided: "Logit ÷ T",
    write: "Erzeugen",
    stop: "Anhalten",
    unknown: (words) =>
      `Das Modell hat kein Token für ${words.map((word) => `„${word}“`).join(", ")} und liest ${words.length === 1 ? "es" : "sie"} in kleinen Stücken. Vermutlich kennt das Modell solche Wörter kaum.`,
    context: (n, most) => `${n} von ${most} Tokens im Kontext`,
    slid: (n) => `· die ersten ${n} liegen außerhalb des Kontexts`,
  },
  parts: {
    embedding: "Einbettung",
    norm: "Erste Norm",
    head: "Kopf",
    add: "+ Aufmerksamkeit",
    norm2: "Zweite Norm",
    feedforward: "Feed-Forward",
    add2: "+ Feed-Forward",
    final: "Letzte Norm, Ausgabe",
  },
  titles: {
    block: (part, block) => `Block ${block}: ${part}`,
    head: (block, head, token) => `Block ${block}, Kopf ${head}: von „${token}“ aus`,
  },
  looks: (from, to, share) => `„${from}“ richtet ${share} seiner Aufmerksamkeit auf „${to}“`,
  layerNorm: {
    scale:
      "Das ist die Standardabweichung des Vektors jedes Tokens. Nachdem der Mittelwert abgezogen ist, wird der Vektor durch sie dividiert.",
    norm: "Jede Zahl wird zum z-Wert: Mittelwert des Vektors abziehen, durch dessen Standardabweichung dividieren. Dann skaliert eine gelernte Verstärkung $\\gamma$ jede Dimension, und eine gelernte Verschiebung $\\beta$ verschiebt sie. Die Streifen zeigen das für das gewählte Token.",
  },
  normed: {
    title: (token) => `Der Vektor von „${token}“ vor und nach der Norm`,
    stages: {
      layer: { before: "davor", standardized: "z-Werte", after: "danach" },
      rms: { before: "davor", standardized: "skaliert", after: "danach" },
    },
    moments: (mean, deviation) => `Mittelwert ${mean}, Standardabweichung ${deviation}`,
    root: (size) => `quadratisches Mittel ${size}`,
    oneScale: "eine Skala für alle drei",
  },
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
  byteToken: (token) =>
    `${token} ist Teil eines Zeichens: Der Tokenizer hat kein Token für das ganze Zeichen und zerlegt es in die Bytes seiner UTF-8-Kodierung.`,
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
  controls: {
    parts: "Teile des Modells",
    play: "Abspielen",
    pause: "Anhalten",
    back: "Voriger Schritt",
    forth: "Nächster Schritt",
    take: "Exportieren",
    larger: "Vergrößern",
    smaller: "Verkleinern",
    map: "Bild",
    numbers: "Zahlen",
    svg: "SVG",
    png: "PNG",
    light: (kind) => `${kind}, heller Hintergrund`,
    csv: "CSV",
    npy: ".npy",
    link: "Link kopieren",
    linkNote: "Öffnet sich in jedem Browser, der die im Terminal gezeigte Adresse schon einmal geöffnet hat",
    hereNote:
      "Der Link öffnet sich nur auf diesem Rechner, in einem Browser, der die Adresse von Clearhead schon einmal geöffnet hat.",
    sendNote: "Um anderen zu zeigen, was du siehst, speichere es als eine Datei.",
    uploadNote:
      "Der Link funktioniert nur auf diesem Rechner. Für andere muss diese Seite auf einem Webserver liegen.",
    copied: "Kopiert",
    copiedHere: "Kopiert, nur für diesen Rechner",
  },
  share: {
    title: "Teilen",
    save: "Diese Ansicht als einzelne Datei speichern",
    saveNote:
      "Eine HTML-Datei, die in jedem Browser genau diese Ansicht zeigt, ohne Clearhead und ohne Netz. Ein kleines Modell ist enthalten und rechnet darin; bei einem großen enthält sie die gezeigten Zahlen.",
    notSavable:
      "Lernen, Experimente, Training und Bericht brauchen einen Server. Öffne eine andere Ansicht, um sie zu speichern.",
    html: "HTML-Datei dieser Ansicht",
    preparing: "Die Datei wird erstellt …",
    saved: "Unter Downloads gespeichert",
    failed: "Die Datei konnte nicht erstellt werden",
  },
  saved: {
    missed: "Das ist in dieser Datei nicht enthalten. Öffne das Modell in Clearhead, um es zu sehen.",
    without: (views: string[]) =>
      `Nicht in dieser Datei enthalten: ${views.join(", ")}. Öffne das Modell in Clearhead, um mehr zu sehen.`,
    missing: (value: string) =>
      `${value}. Die Zahlen, aus denen sie berechnet wurde, sind in dieser Datei nicht enthalten.`,
    edited: (n: number) =>
      n === 1 ? "1 Änderung aus Python ist aktiv." : `${n} Änderungen aus Python sind aktiv.`,
    waiting: "Der Kernel ist beschäftigt oder beendet. Sobald er antwortet, geht es weiter.",
  },
  live: {
    about:
      "Diese Seite braucht keinen Server: Das Modell läuft in deinem Browser, und kein Text verlässt ihn. Um ein Modell mit eigenem Text zu trainieren, installiere Clearhead und starte clearhead demo.",
    loading: (model, done, total) => `${model} wird geladen: ${done} von ${total} MB`,
  },
  published: {
    texts: "Texte",
    without: (views: string[]) => `Installiere Clearhead für ${views.join(", ")} und eigene Texte.`,
    lab: (name: string) =>
      `Dieses Experiment wurde vorab ausgeführt. Um die Einstellungen zu ändern, installiere Clearhead und starte clearhead lab ${name}.`,
    about:
      "Diese Seite braucht keinen Server: Die Texte wurden vorab durch das Modell geschickt, und jede Zahl stammt aus dem Modell. Um eigene Texte einzugeben, Aktivierungen zu bearbeiten oder ein Modell mit eigenem Text zu trainieren, installiere Clearhead und starte clearhead demo.",
    walk: [
      "Das sagt das Modell als nächstes Wort vorher. Ändere die Sampling-Einstellungen, und die Wahrscheinlichkeiten ändern sich mit.",
      "Wähle hier einen anderen Text. Weiter unten kannst du zwei Texte nebeneinander vergleichen.",
    ],
  },
  refusals: REFUSALS,
  problems: {
    retry: "Erneut versuchen",
    lost: "Der Server antwortet nicht. Sobald er wieder da ist, verbindet sich die Seite von selbst.",
    access:
      "Unter dieser Adresse läuft jetzt ein anderer Server, der diese Seite nicht kennt. Öffne die Adresse, die er beim Start ausgegeben hat.",
  },
};
