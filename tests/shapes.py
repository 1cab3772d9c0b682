"""Settings of models that several test modules use."""

from clearhead.model.config import PRESETS

# The caps are small, so that they change the numbers of small models.
GEMMA2 = {
    **PRESETS["modern"],
    "qk_norm": False,
    "feedforward": "geglu",
    "post_norm": True,
    "embedding_scale": 5.0,
    "d_k": 10,
    "window": 3,
    "local_blocks": [0],
    "score_cap": 1.5,
    "logit_cap": 2.5,
}
OLMO2_WITH_YARN = {
    **PRESETS["modern"],
    "pre_norm": False,
    "post_norm": True,
    "qk_norm_joint": True,
    "rope_scaling": {
        "kind": "yarn",
        "factor": 4.0,
        "low_freq_factor": 0.5,
        "high_freq_factor": 2.0,
        "original_context": 40,
        "attention_factor": 1.3,
    },
}
