/** Post-processors: the tokens that a tokenizer adds before and after a text. */

import { type TokenizerPart, unsupported } from "./file";

export type PostProcessor = (ids: number[]) => number[];

interface Template {
  single: ({ Sequence: { id: "A" | "B" } } | { SpecialToken: { id: string } })[];
  special_tokens: Record<string, { ids: number[] }>;
}

export function makePostProcessor(part?: TokenizerPart | null): PostProcessor {
  if (!part) return (ids) => ids;
  switch (part.type) {
    case "ByteLevel": // affects only offsets
      return (ids) => ids;
    case "TemplateProcessing":
      return makeTemplate(part as unknown as Template);
    case "RobertaProcessing":
    case "BertProcessing":
      return (ids) => [(part.cls as [string, number])[1], ...ids, (part.sep as [string, number])[1]];
    case "Sequence":
      return makeSequence((part.processors as TokenizerPart[]).map(makePostProcessor));
    default:
      return unsupported(`the post-processor ${part.type}`);
  }
}

function makeTemplate({ single, special_tokens: specials }: Template): PostProcessor {
  return (ids) =>
    single.flatMap((piece) => ("Sequence" in piece ? ids : specials[piece.SpecialToken.id]!.ids));
}

function makeSequence(processors: PostProcessor[]): PostProcessor {
  return (ids) => processors.reduce((processed, process) => process(processed), ids);
}
