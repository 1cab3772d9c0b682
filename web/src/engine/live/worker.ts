/** Entry point of the worker in which the engine runs. */

import { openFiles } from "../weights/files";
import { Dispatcher } from "./dispatcher";
import { liveRoutes } from "./liveRoutes";
import type { FromWorker, ToWorker } from "./messages";

/** The part of a worker's global scope that is used here. */
interface WorkerScope {
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
  postMessage: (message: FromWorker, transfer: Transferable[]) => void;
}

const scope = globalThis as unknown as WorkerScope;
let dispatcher: Dispatcher | null = null;

scope.onmessage = ({ data }) => {
  if ("start" in data) {
    const routes = liveRoutes(openFiles(data.start), (progress) => scope.postMessage(progress, []), data.gpu);
    dispatcher = new Dispatcher(routes, (response) => scope.postMessage(response, [response.body]));
  } else dispatcher?.receive(data);
};
