/** Der Text der Seite auf Deutsch. */

import { diagram } from "./diagram.de";
import type { Messages } from "./en";
import { HEADINGS } from "./headings.de";
import { LABS, SETTING_NAMES } from "./labs.de";
import { learning } from "./learning.de";
import { lectures } from "./lectures.de";
import { REFUSALS } from "./refusals.de";
import { report } from "./report.de";
import { steps } from "./steps.de";
import { tools } from "./tools.de";
import { training } from "./training.de";

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
  ...tools,
  ...training,
  ...diagram,
  looks: (from, to, share) => `„${from}“ richtet ${share} seiner Aufmerksamkeit auf „${to}“`,
  ...steps,
  byteToken: (token) =>
    `${token} ist Teil eines Zeichens: Der Tokenizer hat kein Token für das ganze Zeichen und zerlegt es in die Bytes seiner UTF-8-Kodierung.`,
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
