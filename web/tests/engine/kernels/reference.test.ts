import { ReferenceKernels } from "../../../src/engine/kernels/reference";
import { testProducts } from "./products";

testProducts("plain JavaScript", () => Promise.resolve(new ReferenceKernels()));
