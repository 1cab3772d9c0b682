import { expect, test } from "vitest";
import {
  bestHead,
  bitsBars,
  keyFigures,
  knowledgeParts,
  predictionParts,
  type Report,
  runParts,
} from "../../src/layout/reportParts";
import { de } from "../../src/messages/de";
import { en } from "../../src/messages/en";

const EVIDENCE = {
  validation: [
    [10, 2],
    [20, 3],
  ],
  tokens_read: 1000,
  training_tokens: 100,
  parameters: 1234,
  rise: 0.5,
  gap: 0.25,
  bits_per_byte: 2,
  pretrained: 1.5,
  fall: null,
};
const REPORT = {
  model: "my",
  loss: Math.log(4),
  bits_per_byte: 1.5,
  baselines: [{ name: "5-gram", bits_per_byte: 2, about: "", own: true }],
  compressed: { gzip: 2.5 },
  by_position: [
    [1, 2.5],
    [2, null],
  ],
  by_frequency: [
    { least: 1, most: 9, tokens: 1200, loss: 2.5 },
    { least: 10, most: null, tokens: 4, loss: 0.5 },
  ],
  counted_in_training: true,
  calibration: { accuracy: 0.75, expected_error: 0.031, bins: [] },
  copied: {
    model: { n: 5, tokens: 1000, copied: 125, longest: 12, share: 0.125 },
    people: { n: 5, tokens: 1000, copied: 0, longest: 0, share: 0 },
  },
  minimal_pairs: null,
  overfits: true,
  evidence: EVIDENCE,
  run: {
    settings: { steps: 25000, optimizer: "muon" },
    training: Array.from({ length: 100 }, (_, i) => [i + 1, 5]),
    validation: [[100, 4]],
  },
} as unknown as Report;

test("key figures are those that are known", () => {
  const shown = keyFigures(REPORT, en).map(({ name, shown }) => [name, shown]);
  expect(shown).toEqual([
    ["bits", "1.5000"],
    ["loss", "1.3863"],
    ["perplexity", "4.00"],
    ["right", "75.0%"],
    ["calibration", "3.1%"],
    ["copied", "12.5%"],
    ["overfits", "yes"],
  ]);
  expect(keyFigures(REPORT, en).at(-1)!.note).toBe("its loss on its training text is 25% lower");
  const unknown = keyFigures({ ...REPORT, copied: null, overfits: null, evidence: null }, en);
  expect(unknown.map(({ name }) => name)).toEqual(["bits", "loss", "perplexity", "right", "calibration"]);
});

test("bars, tables and curves hold the report's numbers", () => {
  expect(bitsBars(REPORT).map(({ name, value, isOwn }) => [name, value, isOwn])).toEqual([
    ["my", 1.5, true],
    ["5-gram", 2, false],
    ["gzip", 2.5, false],
  ]);
  const [position, , frequency] = predictionParts(REPORT, en);
  expect(position).toMatchObject({ x: [1, 2], lines: { my: [2.5, null] } });
  expect(frequency).toMatchObject({
    rows: ["1 to 9", "10 or more"],
    values: [
      ["1,200", "2.5000"],
      ["4", "0.5000"],
    ],
  });
  const [curve, settings] = runParts(REPORT);
  const { x, lines } = curve as unknown as { x: number[]; lines: Record<string, (number | null)[]> };
  expect([x.length <= 26, x[0], x.at(-1)]).toEqual([true, 1, 100]);
  expect(lines["validation"]!.filter((loss) => loss !== null)).toEqual([4]);
  expect(settings).toMatchObject({ rows: ["steps", "optimizer"], values: [["25,000"], ["muon"]] });
  const scores = [
    [0.1, null],
    [0.7, 0.7],
  ];
  expect(bestHead(scores)).toEqual({ block: 1, head: 0, score: 0.7 });
});

test("no head is named for a role that none fulfills better than uniform attention", () => {
  const heads = {
    previous: { scores: [[0.1, 0.4]], uniform: 0.3 },
    first: { scores: [[0.1, 0.2]], uniform: 0.3 },
    repeated: { scores: [[0.1, 0.2]], uniform: null },
  };
  const [part] = knowledgeParts({ ...REPORT, minimal_pairs: null, heads } as Report, en);
  expect(part).toMatchObject({
    values: [
      [en.change.head(0, 1), "0.40", "0.30"],
      [null, "0.20", "0.30"],
      [en.change.head(0, 1), "0.20", null],
    ],
  });
});

test("each piece of the server's advice has a German text with the same numbers", () => {
  const german = (what: string) => de.report.advice({ what, because: "?" }, { ...EVIDENCE, fall: 0.02 });
  expect(german("fine-tuning SmolLM2 (--from smollm2)").because).toMatch(/SmolLM2 1.5000 Bits .* 2.0000$/);
  expect(german("more text").what).toBe("mehr Text");
  expect(german("more text").because).toMatch(/100 Tokens 10.0-mal/);
  expect(german("the model in best/, or fewer steps").because).toContain("2.0000 bei Schritt 10");
  expect(german("more training time").because).toContain("2.0%");
  expect(german("a larger model").because).toContain("0.8 Tokens");
  expect(german("more regularization (--dropout), or a smaller model").because).toContain("25% niedriger");
});
