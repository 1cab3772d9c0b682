"""The built-in model in numpy, written from the lectures' formulas alone: the reference for the stops."""

from functools import cache

import numpy as np

from clearhead.language_model import load

HEADS = 4


@cache
def model():
    return load("stories", "cpu")


@cache
def weights():
    return {name: value.double().numpy() for name, value in model().network.state_dict().items()}


def softmax(scores):
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def layer_norm(x, gain, shift):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return gain * (x - mean) / np.sqrt(variance + 1e-5) + shift


def encode(text):
    return np.array(model().tokenizer.encode(text))


def run(ids, ablated=(), zeroed=None):
    """Return everything that a forward pass computes: t1 … t5 and h of each block, each head's steps, and the logits.

    `ablated` holds (block, head) pairs; `zeroed` is a position whose input vector is set to 0.
    """
    W, T = weights(), len(ids)
    x = W["embedding.weight"][ids] + W["position.weight"][:T]
    if zeroed is not None:
        x[zeroed] = 0
    blocks = []
    for i in range(4):
        w = {
            name.removeprefix(f"blocks.{i}."): value
            for name, value in W.items()
            if name.startswith(f"blocks.{i}.")
        }
        t1 = layer_norm(x, w["norm.gain"], w["norm.shift"])
        query, key, value = (
            t1 @ w[f"attention.{name}.weight"].T + w[f"attention.{name}.bias"]
            for name in ("query", "key", "value")
        )
        heads, mixed = [], np.zeros_like(x)
        D = x.shape[1] // HEADS
        for j in range(HEADS):
            own = slice(j * D, (j + 1) * D)
            scores = query[:, own] @ key[:, own].T
            masked = np.where(np.tri(T, dtype=bool), scores / np.sqrt(D), -np.inf)
            alpha = softmax(masked)
            if (i, j) not in ablated:
                mixed[:, own] = alpha @ value[:, own]
            heads.append({"scores": scores, "weights": alpha, "value": value[:, own]})
        t2 = mixed @ w["attention.output.weight"].T + w["attention.output.bias"]
        t3 = t2 + x
        t4 = layer_norm(t3, w["norm2.gain"], w["norm2.shift"])
        hidden = np.maximum(t4 @ w["feedforward.first.weight"].T + w["feedforward.first.bias"], 0)
        t5 = hidden @ w["feedforward.second.weight"].T + w["feedforward.second.bias"]
        h = t5 + t3
        blocks.append({"x": x, "t1": t1, "t2": t2, "t3": t3, "t4": t4, "t5": t5, "h": h, "heads": heads})
        x = h
    final = layer_norm(x, W["final_norm.gain"], W["final_norm.shift"])
    return {"blocks": blocks, "final": final, "logits": final @ W["embedding.weight"].T}


def unembed(x):
    W = weights()
    return layer_norm(x, W["final_norm.gain"], W["final_norm.shift"]) @ W["embedding.weight"].T


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)
