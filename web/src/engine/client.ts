/** The API client. Every request from the page goes through it. */

import { Matrix, decodeMatrices } from "../model/matrix";
import { type Area, isVector, isWeight } from "../model/sites";
import type {
  Attribution,
  Examples,
  HeadScores,
  Lab,
  LabResponse,
  Model,
  ModelInput,
  Opening,
  PageFileRequest,
  PullState,
  RunRequest,
  Schemas,
  TraceResponse,
} from "./types";

/** A response with an error status, or status 0 if the server could not be reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code = "",
    readonly values: Record<string, string | number> = {},
    readonly retryAfter: number | null = null, // seconds
  ) {
    super(message);
  }
}

export type LessonInput = Pick<Schemas["LessonRequest"], "model" | "text" | "number">;

/** Sends a request. Notebooks, saved files and published folders replace the browser's own `fetch`. */
export type Fetch = (path: string, init: RequestInit) => Promise<Response>;

export class ApiClient {
  constructor(readonly fetch: Fetch = (path, init) => globalThis.fetch(path, init)) {}

  async models(): Promise<Schemas["ModelDetailsList"]> {
    return (await this.#request("GET", "/api/models")).json();
  }

  /** Resolves when the model is loaded. */
  async open(model: string): Promise<Model> {
    return (await this.#request("POST", "/api/open", { model })).json();
  }

  async pull(name: string): Promise<PullState> {
    return (await this.#request("POST", "/api/pull", { name })).json();
  }

  async pullState(): Promise<PullState> {
    return (await this.#request("GET", "/api/pulling")).json();
  }

  async cancelPull(): Promise<PullState> {
    return (await this.#request("POST", "/api/pull/cancel")).json();
  }

  async runs(): Promise<Schemas["RunList"]> {
    return (await this.#request("GET", "/api/runs")).json();
  }

  /** The metrics of a run's steps after step `after`. */
  async runMetrics(name: string, after: number): Promise<Schemas["RunMetrics"]> {
    const path = `/api/runs/${encodeURIComponent(name)}/metrics?after=${after}`;
    return (await this.#request("GET", path)).json();
  }

  async train(request: RunRequest): Promise<Schemas["RunList"]> {
    return (await this.#request("POST", "/api/train", request)).json();
  }

  async stopRun(name: string): Promise<Schemas["RunList"]> {
    return (await this.#request("POST", `/api/runs/${encodeURIComponent(name)}/stop`)).json();
  }

  /** Resumes a stopped run, or extends a finished one by `minutes`. */
  async resumeRun(name: string, minutes: number | null = null): Promise<Schemas["RunList"]> {
    return (await this.#request("POST", `/api/runs/${encodeURIComponent(name)}/resume`, { minutes })).json();
  }

  /** Scores every head. Slow on the first call for a model. */
  async heads(model: string, signal?: AbortSignal): Promise<HeadScores> {
    return (await this.#request("POST", "/api/heads", { model }, signal)).json();
  }

  /** Texts to try the model on. */
  async examples(model: string): Promise<Examples> {
    return (await this.#request("POST", "/api/examples", { model })).json();
  }

  /** A text that shows what the model has learned, and a head with a clear role in it. */
  async opening(model: string): Promise<Opening> {
    return (await this.#request("POST", "/api/opening", { model })).json();
  }

  async tokens(model: string, text: string, signal?: AbortSignal): Promise<Schemas["TokensResponse"]> {
    return (await this.#request("POST", "/api/tokens", { model, text }, signal)).json();
  }

  /** The text of each token id. */
  async tokenTexts(model: string, ids: number[]): Promise<string[]> {
    const body = { model, ids } satisfies Schemas["TokenTextsRequest"];
    const response = await this.#request("POST", "/api/token_texts", body);
    return ((await response.json()) as Schemas["TokenTextsResponse"]).tokens;
  }

  /** Tokenizes the input and returns the `count` most likely next tokens. */
  async trace(input: ModelInput, count: number, signal?: AbortSignal): Promise<TraceResponse> {
    return (await this.#request("POST", "/api/trace", { ...input, count, sites: false }, signal)).json();
  }

  /** Reads areas of sites and weights. */
  async read(input: ModelInput, areas: Area[], signal?: AbortSignal): Promise<Matrix[]> {
    const reads: Schemas["SliceRead"][] = areas.map(({ name, rows, columns }) => ({
      ...(isWeight(name) ? { weight: name } : { site: name }),
      ...(rows && { rows }),
      ...(columns && !isVector(name) && { columns }),
    }));
    const parts = await this.#matrices("/api/sites", { ...input, reads }, signal);
    return parts.map(({ values, shape: [rows, columns = 1] }, i) => {
      const { rows: [top] = [0], columns: [left] = [0] } = areas[i]!;
      return new Matrix(values, rows!, columns, top, left);
    });
  }

  /** Downsampled attention weights of every head in a range of blocks, by block and head. */
  async patterns(input: ModelInput, blocks: [number, number], cells: number, signal?: AbortSignal) {
    const body = { ...input, blocks, cells } satisfies Schemas["PatternsRequest"];
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

  /** For each block, a 3×T matrix of norms: its input, attention update and feed-forward update. */
  async streams(input: ModelInput, signal?: AbortSignal): Promise<Matrix[]> {
    const [{ values, shape }] = (await this.#matrices("/api/streams", input, signal)) as [
      { values: Float32Array; shape: [number, number, number] },
    ];
    const [blocks, , T] = shape;
    return Array.from(
      { length: blocks },
      (_, i) => new Matrix(values.subarray(3 * T * i, 3 * T * (i + 1)), 3, T),
    );
  }

  async compare(input: ModelInput, other: ModelInput, blocks: [number, number], signal?: AbortSignal) {
    const body = { ...input, other, blocks } satisfies Schemas["CompareRequest"];
    return (await this.#request("POST", "/api/compare", body, signal)).json() as Promise<
      Schemas["CompareResponse"]
    >;
  }

  async effects(
    request: Schemas["EffectsRequest"],
    signal?: AbortSignal,
  ): Promise<Schemas["EffectsResponse"]> {
    return (await this.#request("POST", "/api/effects", request, signal)).json();
  }

  async attribute(request: Schemas["AttributeRequest"], signal?: AbortSignal): Promise<Attribution> {
    return (await this.#request("POST", "/api/attribute", request, signal)).json();
  }

  async why(request: Schemas["WhyRequest"], signal?: AbortSignal): Promise<Schemas["WhyResponse"]> {
    return (await this.#request("POST", "/api/why", request, signal)).json();
  }

  async lens(request: Schemas["LensRequest"], signal?: AbortSignal): Promise<Schemas["LensResponse"]> {
    return (await this.#request("POST", "/api/lens", request, signal)).json();
  }

  async senses(request: Schemas["SensesRequest"], signal?: AbortSignal): Promise<Schemas["SensesResponse"]> {
    return (await this.#request("POST", "/api/senses", request, signal)).json();
  }

  async neighbors(
    request: Schemas["NeighborsRequest"],
    signal?: AbortSignal,
  ): Promise<Schemas["NeighborsResponse"]> {
    return (await this.#request("POST", "/api/neighbors", request, signal)).json();
  }

  async labs(signal?: AbortSignal): Promise<Lab[]> {
    const response = await this.#request("GET", "/api/labs", undefined, signal);
    return ((await response.json()) as Schemas["LabList"]).labs;
  }

  async lab(request: Schemas["LabRequest"], signal?: AbortSignal): Promise<LabResponse> {
    return (await this.#request("POST", "/api/lab", request, signal)).json();
  }

  /** Measures how good a model is, which takes seconds to minutes. */
  async report(request: Schemas["ReportRequest"], signal?: AbortSignal): Promise<Schemas["ReportResponse"]> {
    return (await this.#request("POST", "/api/report", request, signal)).json();
  }

  /** What the report in progress is doing. */
  async reportProgress(): Promise<Schemas["ReportProgress"]> {
    return (await this.#request("GET", "/api/report/progress")).json();
  }

  /** Computes one training step on a text. */
  async lesson(input: LessonInput, signal?: AbortSignal): Promise<Schemas["LessonResponse"]> {
    return (await this.#request("POST", "/api/lesson", input, signal)).json();
  }

  /** The gradient with respect to an area of a site or of a weight. */
  async gradient(input: LessonInput, area: Area, signal?: AbortSignal): Promise<Matrix> {
    const { name, rows, columns } = area;
    const slice = { ...(rows && { rows }), ...(columns && !isVector(name) && { columns }) };
    const [part] = await this.#matrices("/api/lesson/gradient", { ...input, name, ...slice }, signal);
    const [height, width = 1] = part!.shape;
    return new Matrix(part!.values, height!, width, rows?.[0], columns?.[0]);
  }

  async logitErrors(
    request: Schemas["LogitErrorsRequest"],
    signal?: AbortSignal,
  ): Promise<Schemas["LogitErrorsResponse"]> {
    return (await this.#request("POST", "/api/lesson/errors", request, signal)).json();
  }

  async chain(request: Schemas["ChainRequest"], signal?: AbortSignal): Promise<Schemas["ChainResponse"]> {
    return (await this.#request("POST", "/api/lesson/chain", request, signal)).json();
  }

  async update(request: Schemas["UpdateRequest"], signal?: AbortSignal): Promise<Schemas["UpdateResponse"]> {
    return (await this.#request("POST", "/api/lesson/update", request, signal)).json();
  }

  async takeStep(request: Schemas["StepRequest"], signal?: AbortSignal): Promise<Schemas["StepResponse"]> {
    return (await this.#request("POST", "/api/lesson/step", request, signal)).json();
  }

  /** How far a head's weights moved between the snapshots of a run. */
  async headMoves(
    request: Schemas["HeadMovesRequest"],
    signal?: AbortSignal,
  ): Promise<Schemas["HeadMovesResponse"]> {
    return (await this.#request("POST", "/api/lesson/moves", request, signal)).json();
  }

  /** The texts of a run's step. */
  async runBatch(
    request: Schemas["RunBatchRequest"],
    signal?: AbortSignal,
  ): Promise<Schemas["RunBatchResponse"]> {
    return (await this.#request("POST", "/api/lesson/batch", request, signal)).json();
  }

  /** The page as one HTML file that opens in the view that is shown now. */
  async pageFile(request: PageFileRequest): Promise<string> {
    return (await this.#request("POST", "/api/page_file", request)).text();
  }

  async #matrices(path: string, body: unknown, signal?: AbortSignal) {
    const response = await this.#request("POST", path, body, signal);
    return decodeMatrices(await response.arrayBuffer(), response.headers.get("X-Shape") ?? "");
  }

  async #request(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
    let response: Response;
    try {
      response = await this.fetch(path, {
        method,
        signal: signal ?? null,
        ...(body !== undefined && {
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify(body),
        }),
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError(0, "the server cannot be reached", "unreachable");
    }
    if (response.ok) return response;
    const errorBody = (await response.json().catch(() => null)) as Schemas["ErrorResponse"] | null;
    const retryAfter = Number(response.headers.get("Retry-After"));
    throw new ApiError(
      response.status,
      errorBody?.error.message ?? response.statusText,
      errorBody?.error.code ?? "",
      errorBody?.error.values,
      retryAfter || null,
    );
  }
}
