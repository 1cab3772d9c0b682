/** The server's routes, as the page asks them. Its types are made from the server's own description. */

import { type Area, isVector, isWeight } from "../model/sites";
import { Matrix, readMatrices } from "../model/matrix";
import type { components } from "../generated/api";

type Schemas = components["schemas"];
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

/** What goes through the model: every number on the page answers one of these. */
export interface Question {
  model: string;
  text: string | number[]; // ids where the text is longer than the model can see
  edits: Edit[];
}

/** What the server said no to, in its own words; status 0 where it could not be reached. */
export class ServerError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code = "",
    readonly values: Record<string, string | number> = {},
    readonly retryAfter: number | null = null,
  ) {
    super(message);
  }
}

/** How a question travels: over the network unless something stands in between, as in a notebook. */
export type Ask = (path: string, init: RequestInit) => Promise<Response>;

export class Server {
  constructor(readonly ask: Ask = (path, init) => fetch(path, init)) {}

  async models(): Promise<Schemas["ModelDetailsList"]> {
    return (await this.#ask("GET", "/api/models")).json();
  }

  /** Answers when the model is loaded. */
  async open(model: string): Promise<Model> {
    return (await this.#ask("POST", "/api/open", { model })).json();
  }

  async pull(name: string): Promise<PullState> {
    return (await this.#ask("POST", "/api/pull", { name })).json();
  }

  async pulling(): Promise<PullState> {
    return (await this.#ask("GET", "/api/pulling")).json();
  }

  async cancelPull(): Promise<PullState> {
    return (await this.#ask("POST", "/api/pull/cancel")).json();
  }

  async runs(): Promise<Schemas["RunList"]> {
    return (await this.#ask("GET", "/api/runs")).json();
  }

  /** What a run tells of its steps after one. */
  async runMetrics(name: string, after: number): Promise<Schemas["RunMetrics"]> {
    return (await this.#ask("GET", `/api/runs/${encodeURIComponent(name)}/metrics?after=${after}`)).json();
  }

  async train(asked: RunRequest): Promise<Schemas["RunList"]> {
    return (await this.#ask("POST", "/api/train", asked)).json();
  }

  async stopRun(name: string): Promise<Schemas["RunList"]> {
    return (await this.#ask("POST", `/api/runs/${encodeURIComponent(name)}/stop`)).json();
  }

  async resumeRun(name: string): Promise<Schemas["RunList"]> {
    return (await this.#ask("POST", `/api/runs/${encodeURIComponent(name)}/resume`)).json();
  }

  /** What each head does: takes a while the first time. */
  async heads(model: string, signal?: AbortSignal): Promise<HeadScores> {
    return (await this.#ask("POST", "/api/heads", { model }, signal)).json();
  }

  async tokens(model: string, text: string, signal?: AbortSignal): Promise<Schemas["TokensAnswer"]> {
    return (await this.#ask("POST", "/api/tokens", { model, text }, signal)).json();
  }

  async words(model: string, ids: number[]): Promise<string[]> {
    const answer = await this.#ask("POST", "/api/words", { model, ids } satisfies Schemas["WordsRequest"]);
    return ((await answer.json()) as Schemas["WordsAnswer"]).words;
  }

  /** The text as the model reads it, and the likeliest next words. */
  async trace(question: Question, count: number, signal?: AbortSignal): Promise<TraceAnswer> {
    return (await this.#ask("POST", "/api/trace", { ...question, count, sites: false }, signal)).json();
  }

  async read(question: Question, areas: Area[], signal?: AbortSignal): Promise<Matrix[]> {
    const reads: Schemas["Read"][] = areas.map(({ name, rows, columns }) => ({
      ...(isWeight(name) ? { weight: name } : { site: name }),
      ...(rows && { rows }),
      ...(columns && !isVector(name) && { columns }),
    }));
    const parts = await this.#matrices("/api/sites", { ...question, reads }, signal);
    return parts.map(({ values, shape: [rows, columns = 1] }, i) => {
      const { rows: [top] = [0], columns: [left] = [0] } = areas[i]!;
      return new Matrix(values, rows!, columns, top, left);
    });
  }

  /** Attention weights of all heads of some blocks, made small: blocks × heads matrices. */
  async patterns(question: Question, blocks: [number, number], cells: number, signal?: AbortSignal) {
    const body = { ...question, blocks, cells } satisfies Schemas["PatternsRequest"];
    const [{ values, shape }] = (await this.#matrices("/api/patterns", body, signal)) as [
      { values: Float32Array; shape: [number, number, number, number] },
    ];
    const [, heads, side] = shape;
    const size = side * side;
    return Array.from({ length: blocks[1] - blocks[0] }, (_, i) =>
      Array.from({ length: heads }, (_, j) => {
        const start = (i * heads + j) * size;
        return new Matrix(values.subarray(start, start + size), side, side);
      }),
    );
  }

  /** For each block the lengths, token by token, of the stream entering and of what its two halves add. */
  async streams(question: Question, signal?: AbortSignal): Promise<Matrix[]> {
    const [{ values, shape }] = (await this.#matrices("/api/streams", question, signal)) as [
      { values: Float32Array; shape: [number, number, number] },
    ];
    const [blocks, , T] = shape;
    return Array.from(
      { length: blocks },
      (_, i) => new Matrix(values.subarray(3 * T * i, 3 * T * (i + 1)), 3, T),
    );
  }

  async compare(question: Question, other: Question, blocks: [number, number], signal?: AbortSignal) {
    const body = { ...question, other, blocks } satisfies Schemas["CompareRequest"];
    return (await this.#ask("POST", "/api/compare", body, signal)).json() as Promise<
      Schemas["CompareAnswer"]
    >;
  }

  async effects(asked: Schemas["EffectsRequest"], signal?: AbortSignal): Promise<Schemas["EffectsAnswer"]> {
    return (await this.#ask("POST", "/api/effects", asked, signal)).json();
  }

  async attribute(asked: Schemas["AttributeRequest"], signal?: AbortSignal): Promise<Attribution> {
    return (await this.#ask("POST", "/api/attribute", asked, signal)).json();
  }

  async why(asked: Schemas["WhyRequest"], signal?: AbortSignal): Promise<Schemas["WhyAnswer"]> {
    return (await this.#ask("POST", "/api/why", asked, signal)).json();
  }

  async lens(asked: Schemas["LensRequest"], signal?: AbortSignal): Promise<Schemas["LensAnswer"]> {
    return (await this.#ask("POST", "/api/lens", asked, signal)).json();
  }

  async senses(asked: Schemas["SensesRequest"], signal?: AbortSignal): Promise<Schemas["SensesAnswer"]> {
    return (await this.#ask("POST", "/api/senses", asked, signal)).json();
  }

  async labs(signal?: AbortSignal): Promise<Lab[]> {
    const answer = await this.#ask("GET", "/api/labs", undefined, signal);
    return ((await answer.json()) as Schemas["LabList"]).labs;
  }

  async lab(asked: Schemas["LabRequest"], signal?: AbortSignal): Promise<LabAnswer> {
    return (await this.#ask("POST", "/api/lab", asked, signal)).json();
  }

  async neighbours(
    asked: Schemas["NeighboursRequest"],
    signal?: AbortSignal,
  ): Promise<Schemas["NeighboursAnswer"]> {
    return (await this.#ask("POST", "/api/neighbours", asked, signal)).json();
  }

  async #matrices(path: string, body: unknown, signal?: AbortSignal) {
    const answer = await this.#ask("POST", path, body, signal);
    return readMatrices(await answer.arrayBuffer(), answer.headers.get("X-Shape") ?? "");
  }

  async #ask(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
    let answer: Response;
    try {
      answer = await this.ask(path, {
        method,
        signal: signal ?? null,
        ...(body !== undefined && {
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify(body),
        }),
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ServerError(0, "the server cannot be reached", "unreachable");
    }
    if (answer.ok) return answer;
    const said = (await answer.json().catch(() => null)) as Schemas["Refusal"] | null;
    const again = Number(answer.headers.get("Retry-After"));
    throw new ServerError(
      answer.status,
      said?.error.message ?? answer.statusText,
      said?.error.code ?? "",
      said?.error.values,
      again || null,
    );
  }
}
