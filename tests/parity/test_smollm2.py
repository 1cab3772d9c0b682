"""A real model: SmolLM2-135M-Instruct from its GGUF file, against transformers and known numbers."""

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


def test_it_knows_the_capital_of_france(model):
    assert model.generate("The capital of France is", tokens=1, temperature=0) == " Paris"
    assert repr(model).startswith("LanguageModel(134,515,008 parameters: 30 blocks of 9 heads")


@torch.no_grad()
def test_logits_and_ids_are_those_of_transformers_reading_the_same_file(path, model):
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    )
    text = "The chicken didn't cross the road because it was too tired."
    ids = torch.tensor([model.tokenizer.encode(text)])
    assert torch.allclose(model.logits(text), theirs(ids).logits[0], rtol=0, atol=2e-4)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    # Reading the file it forgets that this tokenizer takes digits one by one.
    backend = tokenizer.backend_tokenizer
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    backend.encode_special_tokens = True  # a page that speaks of <|im_start|> is text
    assert model.tokenizer.encode(PAGE) == backend.encode(PAGE, add_special_tokens=False).ids
    assert model.tokenizer.decode(model.tokenizer.encode(PAGE)) == PAGE
    assert model.chat_text([{"role": "user", "content": "Hi"}]) == tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )


def test_a_chat_template_speaks_in_special_tokens(model):
    ids = model.chat_ids([{"role": "user", "content": "What is 2+2?"}])
    pieces = model.tokenizer.pieces(ids)
    assert pieces[0] == "<|im_start|>"
    assert pieces.count("<|im_start|>") == 3
    assert "4" in model.generate(ids, tokens=14, temperature=0)
    # In plain text they are plain text.
    assert model.tokenizer.pieces(model.tokenizer.encode("<|im_start|>"))[0] == "<"


def test_it_answers_within_a_grammar(model):
    assert model.generate("The capital of France is", regex=" (London|Paris|Rome)", temperature=0) == " Paris"
    ids = model.chat_ids([{"role": "user", "content": "Describe a person as JSON."}])
    properties = {"name": {"type": "string"}, "age": {"type": "integer", "maximum": 120}}
    schema = {"type": "object", "properties": properties, "required": ["age"], "additionalProperties": False}
    text = model.generate(ids, json_schema=schema, temperature=0, tokens=40)
    jsonschema.validate(json.loads(text), schema)
    assert text.finish_reason == "stop"


def test_every_token_is_spelled_as_it_is_decoded(model):
    tokenizer = model.tokenizer
    before = tokenizer.decode([tokenizer.letter])
    for i in range(tokenizer.n_vocab):
        expected = before + tokenizer.spell(i).decode(errors="replace")
        assert tokenizer.decode([tokenizer.letter, i]) == expected, i


def test_it_ends_with_a_turn_and_with_a_document(model):
    assert model.tokenizer.pieces(model.tokenizer.end_ids) == ["<|im_end|>", "<|endoftext|>"]


def test_the_parts_give_back_the_whole(model):
    trace = model.inspect("The chicken didn't cross the road because it was too tired.")
    assert trace.verify() <= 1e-5
    found = trace.attribute(int(trace.logits[-1].argmax()))
    assert found.total == pytest.approx(trace.logits[-1].max().item(), abs=1e-4)
    assert trace.edit({"block.12.head.3.output": 0}).logits.isfinite().all()


@pytest.mark.parametrize(("adjective", "difference"), [("tired", 1.28), ("wide", -0.73)])
def test_the_adjective_says_what_it_is(model, adjective, difference):
    """Over all heads, from the adjective: attention to the chicken less attention to the road."""
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
    """At the embedding, entering block 27, and at the end."""
    found = model.inspect(one).cosines(word, model.inspect(other))[[0, 1 + 27, -1], 0, 0]
    assert tuple(round(cosine, 2) for cosine in found.tolist()) == cosines


def test_opening_takes_little_more_memory_than_the_model(path, tmp_path):
    """Over what the process holds once it has opened some model, and this one's tokenizer."""
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
def test_it_learns_more_and_transformers_opens_what_came_of_it(lora, path, tmp_path):
    """All weights, or adapters: a few steps at the rates that are chosen unless told."""
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


def test_out_and_in_again(model, tmp_path):
    model.export(tmp_path / "folder")
    again = clearhead.load(tmp_path / "folder", "cpu")
    text = "The capital of France is"
    assert torch.equal(again.logits(text), model.logits(text))
    assert again.tokenizer.encode(PAGE) == model.tokenizer.encode(PAGE)
    assert again.tokenizer.config["chat_template"] == model.tokenizer.config["chat_template"]
