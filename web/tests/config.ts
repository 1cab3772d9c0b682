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
  score_cap: null,
  logit_cap: null,
  causal: true,
  position: "rotary",
  qk_norm: false,
  qk_norm_joint: false,
  pre_norm: true,
  post_norm: false,
  norm: "rms",
  feedforward: "swiglu",
  local_blocks: [] as number[],
  unrotated_blocks: [] as number[],
  rotary_dim: 2,
  rotary_base: 10_000,
  rope_scaling: null,
  local_rotary_base: 0,
} as unknown as Config;
