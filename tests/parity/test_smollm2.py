"""A real model: SmolLM2-135M-Instruct from its GGUF file, compared with transformers and known values."""

import json
import subprocess
import sys

import jsonschema
import pytest
import torch
import transformers
from tokenizers import pre_tokenizers

import clearhead
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.text.corpus import Document
from clearhead.text.tokenizer import Tokenizer

PAGE = """def area(r):\n\treturn 3.14159 * r ** 2  # it's π·r²\n\n
The naïve café — “so it’s 12,345.67 €!” — wasn't open; we'll go at 08:30 o'clock...
Привет, мир! 你好，世界。こんにちは。안녕하세요. שלום עולם مرحبا بالعالم नमस्ते สวัสดี
👩‍👩‍👧‍👦 🙂🚀 e\u0301 ﬁ ½   three spaces\r\nCRLF <|im_start|> </s> [INST] {"json": [1, -2.5e10, null]}
if (x != NULL && y->z[0] == '\\0') { return ~x & 0xFF; }   \t  end"""


@pytest.fixture
def path(smollm2_file):
    return smollm2_file


@pytest.fixture
def model(smollm2):
    return smollm2


def test_knows_the_capital_of_france(model):
    assert model.generate("The capital of France is", tokens=1, temperature=0) == " Paris"
    assert repr(model).startswith("LanguageModel(134,515,008 parameters: 30 blocks of 9 heads")


@torch.no_grad()
def test_logits_and_ids_match_transformers_on_the_same_file(path, model):
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    )
    text = "The chicken didn't cross the road because it was too tired."
    ids = torch.tensor([model.tokenizer.encode(text)])
    assert torch.allclose(model.logits(text), theirs(ids).logits[0], rtol=0, atol=2e-4)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    # When reading GGUF, transformers loses the setting that makes this tokenizer split digits individually.
    backend = tokenizer.backend_tokenizer
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    backend.encode_special_tokens = True  # <|im_start|> in a page is plain text
    assert model.tokenizer.encode(PAGE) == backend.encode(PAGE, add_special_tokens=False).ids
    assert model.tokenizer.decode(model.tokenizer.encode(PAGE)) == PAGE
    assert model.chat_text([{"role": "user", "content": "Hi"}]) == tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )


def test_chat_template_uses_special_tokens(model):
    ids = model.chat_ids([{"role": "user", "content": "What is 2+2?"}])
    pieces = model.tokenizer.pieces(ids)
    assert pieces[0] == "<|im_start|>"
    assert pieces.count("<|im_start|>") == 3
    assert "4" in model.generate(ids, tokens=14, temperature=0)
    # In plain text, they are not special.
    assert model.tokenizer.pieces(model.tokenizer.encode("<|im_start|>"))[0] == "<"


def test_constrained_generation_matches_regex_and_json_schema(model):
    assert model.generate("The capital of France is", regex=" (London|Paris|Rome)", temperature=0) == " Paris"
    ids = model.chat_ids([{"role": "user", "content": "Describe a person as JSON."}])
    properties = {"name": {"type": "string"}, "age": {"type": "integer", "maximum": 120}}
    schema = {"type": "object", "properties": properties, "required": ["age"], "additionalProperties": False}
    text = model.generate(ids, json_schema=schema, temperature=0, tokens=40)
    jsonschema.validate(json.loads(text), schema)
    assert text.finish_reason == "stop"


def test_every_token_is_spelled_as_decoded(model):
    tokenizer = model.tokenizer
    before = tokenizer.decode([tokenizer.letter])
    for i in range(tokenizer.n_vocab):
        expected = before + tokenizer.spell(i).decode(errors="replace")
        assert tokenizer.decode([tokenizer.letter, i]) == expected, i


def test_end_tokens_cover_turns_and_documents(model):
    assert model.tokenizer.pieces(model.tokenizer.end_ids) == ["<|im_end|>", "<|endoftext|>"]


def test_components_sum_to_the_whole(model):
    trace = model.inspect("The chicken didn't cross the road because it was too tired.")
    assert trace.verify() <= 1e-5
    found = trace.attribute(int(trace.logits[-1].argmax()))
    assert found.total == pytest.approx(trace.logits[-1].max().item(), abs=1e-4)
    assert trace.edit({"block.12.head.3.output": 0}).logits.isfinite().all()


@pytest.mark.parametrize(("adjective", "difference"), [("tired", 1.28), ("wide", -0.73)])
def test_adjective_attends_to_the_noun_it_describes(model, adjective, difference):
    """Attention from the adjective to the chicken minus that to the road, summed over all heads."""
    trace = model.inspect(f"The chicken didn't cross the road because it was too {adjective}.")
    looking, chicken, road = (trace.position_of(word) for word in (adjective, "chicken", "road"))
    found = sum(
        (weights[:, looking, chicken] - weights[:, looking, road]).sum().item()
        for weights in map(trace.weights, range(30))
    )
    assert round(found, 2) == difference


@pytest.mark.parametrize(
    ("one", "other", "word", "cosines"),
    [
        ("I'm scared of bats", "I swing bats", "bats", (1.0, 0.90, 0.87)),
        ("He sat by the river bank", "She put money in the bank", "bank", (1.0, 0.74, 0.62)),
    ],
)
def test_static_and_contextual_vectors(model, one, other, word, cosines):
    """Cosines at the embedding, at the input of block 27, and at the end."""
    found = model.inspect(one).cosines(word, model.inspect(other))[[0, 1 + 27, -1], 0, 0]
    assert tuple(round(cosine, 2) for cosine in found.tolist()) == cosines


def test_loading_uses_little_more_memory_than_the_model(path, tmp_path):
    """The baseline is the process's memory after loading a small model and this model's tokenizer."""
    config = preset("modern", n_vocab=257, n_context=64, n_block=1, n_head=1, d_model=32)
    small = LanguageModel(Transformer(config), Tokenizer.train("byte", []))
    small.export(tmp_path / "small.gguf", "gguf")
    program = """
import resource, sys
from clearhead.language_model import load
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
from clearhead.formats.gguf.file import GGUFFile
from clearhead.formats.gguf.tokenizer import read_tokenizer
load(sys.argv[1], "cpu", sys.argv[3])
tokenizer = read_tokenizer(GGUFFile.open(sys.argv[2]).metadata)
before = peak()
model = load(sys.argv[2], "cpu", sys.argv[3])
print((peak() - before) / sum(p.numel() * p.element_size() for p in model.network.parameters()))
"""
    for dtype in ("float32", "bfloat16"):
        command = [sys.executable, "-c", program, str(tmp_path / "small.gguf"), str(path), dtype]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert float(done.stdout) <= 1.3, dtype


@pytest.mark.parametrize("lora", [None, 8])
def test_fine_tuned_model_loads_in_transformers(lora, path, tmp_path):
    """Full fine-tuning or LoRA: a few steps at the default learning rates."""
    text = "".join(f"The {n} crow on the roof said kraa to the {n + 1} moon.\n" for n in range(14))
    request = TrainingRequest(
        start=str(path), lora=lora, steps=3, context=48, batch=1, validation=0.2, device="cpu"
    )
    run = Run([Document.of("crows", text)], request, tmp_path)
    before = run.validate()
    assert list(run)[-1].validation < before - (0.1 if lora is None else 0.02)
    run.model.save(tmp_path / "crows")
    del run.trainer, run.good
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "crows")
    ids = torch.tensor([run.tokenizer.encode("The crow on the roof")])
    with torch.no_grad():
        assert torch.allclose(theirs(ids).logits[0], run.model.network(ids)[0], rtol=0, atol=1e-4)


def test_export_and_load_round_trips(model, tmp_path):
    model.export(tmp_path / "folder")
    again = clearhead.load(tmp_path / "folder", "cpu")
    text = "The capital of France is"
    assert torch.equal(again.logits(text), model.logits(text))
    assert again.tokenizer.encode(PAGE) == model.tokenizer.encode(PAGE)
    assert again.tokenizer.config["chat_template"] == model.tokenizer.config["chat_template"]
