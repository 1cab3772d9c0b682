/** Die Texte der Trainingsansicht und des Reglers der Trainingsschritte auf Deutsch. */

import type { training as English } from "./training.en";

export const training: typeof English = {
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
};
