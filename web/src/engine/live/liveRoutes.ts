/** All requests that a live page answers: computed by its models, or recorded when it was published. */

import { ApiError } from "../client";
import type { Lab, LabResponse } from "../types";
import type { GpuOptions } from "../webgpu/device";
import { type ReadModelFile, readJson } from "../weights/files";
import type { Routes } from "./dispatcher";
import type { ProgressMessage } from "./messages";
import { LiveModels } from "./models";
import { makeRoutes } from "./routes";

const LAB_FILE = "labs.json";

export function liveRoutes(
  readFile: ReadModelFile,
  onprogress: (progress: ProgressMessage) => void,
  gpu?: GpuOptions,
): Routes {
  const models = new LiveModels(readFile, onprogress, gpu);
  return { ...models.routes, ...labRoutes(readFile), ...makeRoutes(models) };
}

/** The results of the labs with their default settings. */
function labRoutes(readFile: ReadModelFile): Routes {
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
