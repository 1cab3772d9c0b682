"""One-line descriptions of files and folders that are not supported models, and what to do with them."""

from __future__ import annotations

import re
from pathlib import Path

from clearhead.files import describe_placeholder
from clearhead.formats import peft
from clearhead.formats.file_formats import read_start
from clearhead.formats.llama2c import describe_truncated
from clearhead.formats.nanogpt import describe_objects
from clearhead.formats.torch_file import is_torch_file
from clearhead.summary_table import plural

CONVERT = (
    "transformers' AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(OTHER) writes safetensors"
)
PICKLE = (
    "is a pickle, which can run arbitrary code when it is opened, and is not supported: use the model's safetensors; "
    "if it is a checkpoint of nanoGPT, save it again with PyTorch 1.6 or newer"
)
TEXT_START = 512  # bytes

# By the first bytes of a file.
MAGICS = {
    b"lmgg": "is in GGML's old format, from before GGUF: download the model as a .gguf file",
    b"fmgg": "is in GGML's old format, from before GGUF: download the model as a .gguf file",
    b"tjgg": "is in GGML's old format, from before GGUF: download the model as a .gguf file",
    b"\x89HDF": "is an HDF5 file (from Keras or TensorFlow), which is not supported: use the model's safetensors",
    b"\x1f\x8b": "is compressed with gzip: unpack it first",
    b"7z\xbc\xaf": "is a 7z archive: unpack it first",
    b"\xfd7zXZ": "is compressed with xz: unpack it first",
    b"BZh": "is compressed with bzip2: unpack it first",
    b"\x93NUMPY": "is a NumPy array, not a model: name a folder with config.json and safetensors",
    **{bytes([0x80, protocol]): PICKLE for protocol in range(2, 6)},
}
# By its suffix.
SUFFIXES = {
    ".onnx": "is an ONNX model, which is not supported: use the original, a folder with config.json and safetensors",
    ".npz": "contains NumPy arrays, such as MLX's old weights, which are not supported: use the model's safetensors",
    ".tflite": "is a TensorFlow Lite model, which is not supported: use the original model's safetensors",
    ".mlmodel": "is a Core ML model, which is not supported: use the original model's safetensors",
    ".msgpack": "contains Flax weights, which are not supported: use the model's safetensors",
    ".model": "is a SentencePiece tokenizer, not a model: name the folder that also has config.json and weights",
    ".part": "is an incomplete download: download it again",
    ".crdownload": "is an incomplete download: download it again",
    ".incomplete": "is an incomplete download: download it again",
}
NAMES = {
    "tokenizer.json": "is a tokenizer, not a model",
    "tokenizer.bin": "is llama2.c's tokenizer, not a model",
    "config.json": "is a model's settings, not the model",
    "vocab.json": "is part of a tokenizer, not a model",
    "merges.txt": "is part of a tokenizer, not a model",
    peft.SETTINGS: "is an adapter's settings, not the adapter",
}
PARTS = ("config.json", "tokenizer.json")

# Unsupported kinds of models, by what their model_type contains.
ENCODERS = ("bert", "roberta", "electra", "mpnet", "deberta", "camembert", "albert", "nomic_bert", "funnel")
ENCODER_DECODERS = (
    "t5",
    "bart",
    "pegasus",
    "marian",
    "m2m_100",
    "whisper",
    "led",
    "blenderbot",
    "prophetnet",
)
PICTURES = ("vit", "clip", "siglip", "llava", "vl", "vision", "paligemma", "idefics", "mllama", "qwen3_5")
MIXTURES = ("moe", "mixtral", "deepseek_v2", "deepseek_v3", "gpt_oss", "dbrx", "jamba")
STATES = ("mamba", "rwkv", "recurrent_gemma", "retnet", "xlstm")


def describe_file(path: Path) -> str:
    """What this file is, and what to do instead."""
    start = read_start(path, TEXT_START)
    if (missing := describe_placeholder(start)) is not None:
        return missing
    if path.name in NAMES:
        return f"{NAMES[path.name]}: name its folder, {path.parent}"
    if path.name.endswith(".safetensors"):
        return _describe_safetensors(path)
    if is_torch_file(path):
        return describe_objects(path) or (
            "is a PyTorch checkpoint: only nanoGPT's, with model and model_args, can be opened; for a model saved by "
            f"transformers, {CONVERT}"
        )
    if path.suffix.lower() in SUFFIXES:
        return SUFFIXES[path.suffix.lower()]
    for magic, what in MAGICS.items():
        if start.startswith(magic):
            return what
    if start.startswith(b"PK\x03\x04"):
        return "is a zip archive: unpack it, and name the folder or the file in it"
    if (truncated := describe_truncated(path)) is not None:
        return truncated
    if path.suffix.lower() in (".txt", ".md", ".jsonl", ".csv"):
        return "is not a GGUF or ARPA file, but a text: `clearhead train` trains a model on it"
    return "is not a GGUF or ARPA file, nor any other that can be opened: name one, or a model folder"


def _describe_safetensors(path: Path) -> str:
    missing = [name for name in PARTS if not (path.parent / name).exists()]
    if missing:
        return (
            f"contains only weights: copy {' and '.join(missing)} of the same model to {path.parent}, "
            "and name that folder"
        )
    return f"is not the weights file that {path.parent} loads: rename it to model.safetensors"


def describe_folder(folder: Path) -> str:
    """What a folder without config.json is, and what to do instead."""
    models = sorted(each.parent for each in folder.glob("*/config.json"))
    if models:
        newest = max(models, key=lambda each: each.stat().st_mtime)
        return f"is not a model, but contains {len(models)}: name one, such as {newest}"
    adapters = sorted(each.parent for each in folder.glob(f"*/{peft.SETTINGS}"))
    if adapters:
        return f"is not a model, but contains {plural(len(adapters), 'adapter')}: name one, such as {adapters[-1]}"
    files = sorted(path for pattern in ("*.pt", "*.bin") for path in folder.glob(pattern))
    usable = [path for path in files if path.name != "tokenizer.bin"]
    if usable:
        return f"is not a model: it has no config.json; name the file, such as {usable[0]}"
    if (folder / "model.safetensors").exists():
        return (
            "is not a model: it has no config.json, which describes its weights; copy that of the same model"
        )
    if (folder / "tokenizer.json").exists():
        return "is not a model, but a tokenizer: it has no config.json and no weights"
    return "is not a model: it has no config.json; name a folder that contains one"


def describe_type(kind: object) -> str | None:
    """What an unsupported model_type is, if it is a kind that works differently."""
    name = kind.lower() if isinstance(kind, str) else ""
    if name.removesuffix("_decoder") in ENCODER_DECODERS or any(
        each in name for each in ENCODER_DECODERS[:3]
    ):
        return "an encoder-decoder, which reads one text and writes another"
    if any(each in name for each in ENCODERS):
        return "an encoder, which represents a text and does not generate one"
    parts = set(re.split(r"[_\d]+", name))
    for kinds, what in (
        (MIXTURES, "a mixture of experts"),
        (STATES, "a recurrent model without attention"),
        (PICTURES, "a model that also reads images"),
    ):
        if any(each in parts or (len(each) > 3 and each in name) for each in kinds):
            return what
    return None
