import { WasmKernels } from "../../../src/engine/kernels/wasm";
import { testProducts } from "./products";

testProducts("WebAssembly", async () => (await WasmKernels.create())!);
