import { expect, test } from "vitest";
import { allHeads, nextBlock, nextHead } from "../../src/state/navigation";

const HEADS = allHeads({ n_block: 2, n_head: 3 });
const anywhere = () => true;

test("after the last head of a block comes the first of the next, and after the last of all the first", () => {
  expect(nextHead({ block: 0, head: 2 }, 1, HEADS, anywhere)).toEqual({ block: 1, head: 0 });
  expect(nextHead({ block: 1, head: 2 }, 1, HEADS, anywhere)).toEqual({ block: 0, head: 0 });
  expect(nextHead({ block: 0, head: 0 }, -1, HEADS, anywhere)).toEqual({ block: 1, head: 2 });
});

test("heads that are sorted come in their order; from one that is not among them, the first", () => {
  const order = [
    { block: 1, head: 1 },
    { block: 0, head: 2 },
  ];
  expect(nextHead({ block: 1, head: 1 }, 1, order, anywhere)).toEqual({ block: 0, head: 2 });
  expect(nextHead({ block: 0, head: 2 }, 1, order, anywhere)).toEqual({ block: 1, head: 1 });
  expect(nextHead({ block: 0, head: 0 }, -1, order, anywhere)).toEqual({ block: 1, head: 1 });
});

test("the next block has the isSameCell head open", () => {
  expect(nextBlock({ block: 1, head: 2 }, 1, 2, anywhere)).toEqual({ block: 0, head: 2 });
  expect(nextBlock({ block: 0, head: 2 }, -1, 3, anywhere)).toEqual({ block: 2, head: 2 });
});

test("what cannot be gone to is passed over; where nothing else can be, one stays", () => {
  const held = ({ block, head }: { block: number; head: number }) => block === 1 && head !== 1;
  expect(nextHead({ block: 1, head: 0 }, 1, HEADS, held)).toEqual({ block: 1, head: 2 });
  expect(nextHead({ block: 1, head: 2 }, 1, HEADS, held)).toEqual({ block: 1, head: 0 });
  expect(nextBlock({ block: 1, head: 0 }, 1, 3, held)).toEqual({ block: 1, head: 0 });
});
