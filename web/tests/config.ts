/** The config of a small model. */
import type { Config } from "../src/engine/types";

export const CONFIG = {
  n_block: 3,
  n_head: 4,
  n_kv_head: 2,
  d_model: 8,
  d_head: 2,
  d_hidden: 16,
  d_k: 2,
  causal: true,
  position: "rotary",
  qk_norm: false,
  norm: "rms",
  feedforward: "swiglu",
  local_blocks: [] as number[],
  rotary_dim: 2,
  rotary_base: 10_000,
  rope_scaling: null,
  local_rotary_base: 0,
} as unknown as Config;
