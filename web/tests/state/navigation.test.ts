import { expect, test } from "vitest";
import { allHeads, nextBlock, nextHead, nextPart } from "../../src/state/navigation";

const HEADS = allHeads({ n_block: 2, n_head: 3 });
const anywhere = () => true;

test("moves from the last head of a block to the first of the next, and from the last one to the first", () => {
  expect(nextHead({ block: 0, head: 2 }, 1, HEADS, anywhere)).toEqual({ block: 1, head: 0 });
  expect(nextHead({ block: 1, head: 2 }, 1, HEADS, anywhere)).toEqual({ block: 0, head: 0 });
  expect(nextHead({ block: 0, head: 0 }, -1, HEADS, anywhere)).toEqual({ block: 1, head: 2 });
});

test("follows the sorted order, and starts with its first head", () => {
  const order = [
    { block: 1, head: 1 },
    { block: 0, head: 2 },
  ];
  expect(nextHead({ block: 1, head: 1 }, 1, order, anywhere)).toEqual({ block: 0, head: 2 });
  expect(nextHead({ block: 0, head: 2 }, 1, order, anywhere)).toEqual({ block: 1, head: 1 });
  expect(nextHead({ block: 0, head: 0 }, -1, order, anywhere)).toEqual({ block: 1, head: 1 });
});

test("keeps the head when moving to another block", () => {
  expect(nextBlock({ block: 1, head: 2 }, 1, 2, anywhere)).toEqual({ block: 0, head: 2 });
  expect(nextBlock({ block: 0, head: 2 }, -1, 3, anywhere)).toEqual({ block: 2, head: 2 });
});

test("skips what cannot be shown, and stays if nothing else can", () => {
  const held = ({ block, head }: { block: number; head: number }) => block === 1 && head !== 1;
  expect(nextHead({ block: 1, head: 0 }, 1, HEADS, held)).toEqual({ block: 1, head: 2 });
  expect(nextHead({ block: 1, head: 2 }, 1, HEADS, held)).toEqual({ block: 1, head: 0 });
  expect(nextBlock({ block: 1, head: 0 }, 1, 3, held)).toEqual({ block: 1, head: 0 });
});

test("walks through the parts of all blocks, from the embedding to the next word", () => {
  const config = { n_block: 2 };
  const at = (block: number) => ({ block, head: 0 });
  expect(nextPart(at(1), "embedding", 1, config, anywhere)).toEqual({ part: "norm", block: 0 });
  expect(nextPart(at(0), "add2", 1, config, anywhere)).toEqual({ part: "norm", block: 1 });
  expect(nextPart(at(1), "norm", -1, config, anywhere)).toEqual({ part: "add2", block: 0 });
  expect(nextPart(at(1), "add2", 1, config, anywhere)).toEqual({ part: "final", block: 1 });
  expect(nextPart(at(0), "final", -1, config, anywhere)).toEqual({ part: "add2", block: 1 });
  expect(nextPart(at(0), "final", 1, config, anywhere)).toBeNull();
  expect(nextPart(at(0), "embedding", -1, config, anywhere)).toBeNull();
  expect(nextPart(at(0), "head", 1, config, ({ part }) => part === "final")).toEqual({
    part: "final",
    block: 1,
  });
});
