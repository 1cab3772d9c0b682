/** The types of the API, under the names the page uses. They come from the server's OpenAPI document. */

import type { components } from "../generated/api";

export type Schemas = components["schemas"];
export type Config = Omit<Required<Schemas["Config"]>, "rope_scaling"> & {
  rope_scaling: Required<Schemas["RopeScaling"]> | null;
};
export type Model = Schemas["ModelDetails"];
export type Pullable = Schemas["PullableModel"];
export type PullState = Schemas["PullState"];
export type HeadScores = Schemas["HeadsAnswer"];
export type TraceAnswer = Schemas["TraceAnswer"];
export type Run = Schemas["RunDetails"];
export type RunStep = Schemas["RunStep"];
export type RunRequest = Schemas["RunRequest"];
export type NextWord = Schemas["NextWord"];
export type LensWord = Schemas["LensWord"];
export type Attribution = Schemas["AttributeAnswer"];
export type Hop = Schemas["Hop"];
export type WhyAnswer = Schemas["WhyAnswer"];
export type SensesAnswer = Schemas["SensesAnswer"];
export type Edit = Schemas["EditRequest"];
export type Lab = Schemas["LabDetails"];
export type LabAnswer = Schemas["LabAnswer"];
export type LabLines = Schemas["LabLines"];
export type LabPoints = Schemas["LabPoints"];

/** What a model is run on. Every number on the page belongs to one of these. */
export interface ModelInput {
  model: string;
  text: string | number[]; // token ids if the text is longer than the context window
  edits: Edit[];
}
