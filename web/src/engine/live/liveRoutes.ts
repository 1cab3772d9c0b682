/** All requests that a live page answers: computed by its models, or recorded when it was published. */

import { ApiError } from "../client";
import type { Lab, LabResponse } from "../types";
import { type ReadFile, readJson } from "../weights/files";
import type { Routes } from "./dispatcher";
import { Matrices } from "./inspection";
import type { ProgressMessage } from "./messages";
import { LiveModels } from "./models";
import { makeRoutes } from "./routes";
import { TraceCache } from "./traceCache";

const LAB_FILE = "labs.json";

interface ModelsOfRequest {
  model: string;
  other?: { model: string }; // what it is compared with
}

export function liveRoutes(readFile: ReadFile, onprogress: (progress: ProgressMessage) => void): Routes {
  const models = new LiveModels(readFile, onprogress);
  const computed = Object.entries(makeRoutes(new TraceCache((name) => models.find(name)))).map(
    ([path, answer]) => [
      path,
      async (request: unknown, signal: AbortSignal) => {
        const { model, other } = request as ModelsOfRequest;
        await Promise.all([model, ...(other ? [other.model] : [])].map((name) => models.open(name)));
        signal.throwIfAborted();
        return toResponse(answer(request));
      },
    ],
  );
  return { ...models.routes, ...labRoutes(readFile), ...Object.fromEntries(computed) } as Routes;
}

/** The results of the labs with their default settings. */
function labRoutes(readFile: ReadFile): Routes {
  const read = () => readJson<{ labs: Lab[]; results: LabResponse[] }>(readFile, LAB_FILE);
  return {
    "/api/labs": async () => ({ labs: (await read()).labs }),
    "/api/lab": async (request) => {
      const { name } = request as { name: string };
      const result = (await read()).results.find(({ lab }) => lab === name);
      if (!result) throw new ApiError(404, `the lab ${name} was not published`, "lab_not_found", { name });
      return result;
    },
  };
}

/** Matrices as the server sends them: their numbers one after another, and a header with their shapes. */
function toResponse(answer: object): object {
  if (!(answer instanceof Matrices)) return answer;
  const { parts } = answer;
  const all = new Float32Array(parts.reduce((sum, { values }) => sum + values.length, 0));
  let start = 0;
  for (const { values } of parts) {
    all.set(values, start);
    start += values.length;
  }
  return new Response(all, { headers: { "X-Shape": parts.map(({ shape }) => shape.join()).join(";") } });
}
