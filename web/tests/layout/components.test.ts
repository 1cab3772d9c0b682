import { expect, test } from "vitest";
import { componentName } from "../../src/layout/components";
import { de } from "../../src/messages/de";
import { en } from "../../src/messages/en";

test.each([
  ["block.20.head.3.output", "head 20.3", "Kopf 20.3"],
  ["block.4.feedforward", "feed-forward 4", "Feed-Forward 4"],
  ["block.4.feedforward.bias", "feed-forward bias 4", "Feed-Forward-Bias 4"],
  ["block.0.attention_normed.shift", "attention norm shift 0", "Verschiebung der Aufmerksamkeits-Norm 0"],
  ["final.shift", "final norm shift", "Verschiebung der letzten Norm"],
  ["embedding", "embedding", "Einbettung"],
  ["unknown", "unknown", "unknown"],
])("names %s", (name, english, german) => {
  expect(componentName(en, name)).toBe(english);
  expect(componentName(de, name)).toBe(german);
});
