/** The types of the API, under the names the page uses. They come from the server's OpenAPI document. */

import type { components } from "../generated/api";

export type Schemas = components["schemas"];
export type Config = Omit<Required<Schemas["Config"]>, "rope_scaling"> & {
  rope_scaling: Required<Schemas["RopeScaling"]> | null;
};
export type Model = Schemas["ModelDetails"];
export type Pullable = Schemas["PullableModel"];
export type PullState = Schemas["PullState"];
export type Examples = Schemas["ExamplesResponse"];
export type Opening = Schemas["OpeningResponse"];
export type HeadScores = Schemas["HeadsResponse"];
export type TraceResponse = Schemas["TraceResponse"];
export type Run = Schemas["RunDetails"];
export type RunStep = Schemas["RunStep"];
export type RunRequest = Schemas["RunRequest"];
export type NextToken = Schemas["NextToken"];
export type LensToken = Schemas["LensToken"];
export type Attribution = Schemas["AttributeResponse"];
export type Hop = Schemas["Hop"];
export type WhyResponse = Schemas["WhyResponse"];
export type SensesResponse = Schemas["SensesResponse"];
export type Edit = Schemas["EditRequest"];
export type Lab = Schemas["LabDetails"];
export type LabResponse = Schemas["LabResponse"];
export type LabLines = Schemas["LabLines"];
export type LabPoints = Schemas["LabPoints"];

/** What the page shows, to be written as one file. */
export interface PageFileRequest extends ModelInput {
  query: string;
  view: string;
  block: number;
  head: number;
  other: ModelInput | null;
}

/** What a model is run on. Every number on the page belongs to one of these. */
export interface ModelInput {
  model: string;
  text: string | number[]; // token ids if the text is longer than the context window
  edits: Edit[];
}
