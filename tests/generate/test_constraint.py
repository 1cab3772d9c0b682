"""Text constrained by a regex or schema matches with any tokenizer; invalid constraints are rejected."""

import json
import re
import subprocess
import sys

import jsonschema
import pytest
import tokenizers
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers

from clearhead.errors import UserError
from clearhead.generate.constraint import MAX_CHARACTERS, MAX_FORCED, Grammar
from clearhead.generate.detokenizer import Detokenizer, Generated
from clearhead.generate.sampler import Sampler
from clearhead.generate.sampling import Sampling
from clearhead.generate.tool_grammar import check_schemas
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tool_calls import Tool

PRINTABLE = "".join(map(chr, range(32, 127))) + "é€\n"


def sentencepiece(prefix: bool) -> Tokenizer:
    """A tokenizer like Llama 2's (with `prefix`, a space before every text) or Gemma's: ▁ for a space."""
    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"abcdefgh0123", "▁a", "ab", "▁ab"]
    merges = [("▁", "a"), ("a", "b"), ("▁a", "b")]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    inner = tokenizers.Tokenizer(
        models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    replace = normalizers.Replace(" ", "▁")
    back = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if prefix:
        inner.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), replace])
        back.append(decoders.Strip(" ", 1, 0))
    else:
        inner.normalizer = replace
    inner.decoder = decoders.Sequence(back)
    inner.add_special_tokens(["<unk>", "<s>", "</s>"])
    inner.add_tokens([AddedToken("▁▁▁", normalized=False), AddedToken("\n\n", normalized=False)])
    return Tokenizer(inner, {"eos_token": "</s>"}, ends=[vocabulary["h"]])


TOKENIZERS = {
    "char": Tokenizer.train("char", [PRINTABLE]),
    "byte": Tokenizer.train("byte", []),
    "bpe": Tokenizer.train("bpe", ['{"name": "Anna", "age": 41} it was too tired, the cat. ' * 9], 330),
    "bpe with a mask": Tokenizer.train("bpe", ["true false null 123 the cat " * 9], 300, mask=True),
    "sentencepiece": sentencepiece(prefix=False),
    "sentencepiece with a space": sentencepiece(prefix=True),
}


def write(
    tokenizer: Tokenizer, seed: int, tokens: int = 300, prompt: tuple[int, ...] = (), **given
) -> Generated:
    """Generate as a model with random weights would: every row of logits is random."""
    n_vocab = tokenizer.n_vocab + 3  # a model may have more tokens than its tokenizer
    sampler = Sampler(Sampling(1.0, **given), tokenizer, n_vocab, prompt, seed)
    detokenizer = Detokenizer(tokenizer, prompt=prompt, exact=True)
    rows = torch.Generator().manual_seed(seed)
    pieces: list[Generated] = []
    while detokenizer.finish_reason is None:
        limit = "length" if len(pieces) == tokens - 1 else None
        pieces.append(detokenizer.push(sampler.sample(4 * torch.randn(n_vocab, generator=rows)), limit))
    return Generated.concatenate(pieces)


# Python's `re` is the reference; it is very slow on nested stars, and its \w matches fewer letters.
PARTS = st.sampled_from(
    [
        "a",
        "[a-d]",
        "[0-9]",
        "[^a-z]",
        " ",
        ".",
        "é",
        r"\s",
        r"\.",
        "(?:ab|cd)",
        "[\u20ac€x]",
        "\n",
        "b*",
        ".*",
    ]
)
REGEXES = st.recursive(
    PARTS,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map("".join)
        | st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})")
        | inner.map(lambda one: f"(?:{one})?")
        | inner.map(lambda one: f"(?:{one}){{1,3}}")
    ),
    max_leaves=8,
).filter(lambda regex: regex.count("{1,3}") <= 2)  # with more of them nested, `re` may take minutes


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=40)
@given(REGEXES, st.integers(0, 2**31))
def test_text_matches_the_regex(name, regex, seed):
    tokenizer = TOKENIZERS[name]
    text = write(tokenizer, seed, regex=regex)
    if text.finish_reason == "stop":
        assert re.fullmatch(regex, text), (regex, text)
    assert text.finish_reason in ("stop", "length")
    assert len(text.ids) == 300 or text.finish_reason == "stop"


@pytest.mark.parametrize(
    "regex", [r"\w+", r"\d{3}", r"\s\S\W\D", r"[\w.]+@\w+\.(com|org)", "^a[bc]$", "(?i)ab"]
)
def test_character_classes_match_those_of_re(regex):
    for seed in range(5):
        text = write(TOKENIZERS["char"], seed, regex=regex)
        assert text.finish_reason == "stop"
        assert re.fullmatch(regex, text)


INTEGERS = st.fixed_dictionaries({"type": st.just("integer")}, optional={"minimum": st.integers(-50, 50)})
STRINGS = st.sampled_from(
    [
        {"type": "string", "maxLength": 5},
        {"type": "string", "minLength": 2, "maxLength": 4},
        {"type": "string", "pattern": "^[a-c]{1,3}$"},
        {"enum": ["red", "green", 3, None]},
        {"type": "string", "format": "date"},
    ]
)
SCHEMAS = st.recursive(
    INTEGERS | STRINGS | st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"const": {"a": [1]}}]),
    lambda inner: (
        inner.map(lambda one: {"type": "array", "items": one, "maxItems": 3})
        | st.lists(inner, min_size=1, max_size=3).map(lambda several: {"anyOf": several})
        | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3).flatmap(
            lambda fields: st.sets(st.sampled_from(sorted(fields) or ["a"])).map(
                lambda needed: {
                    "type": "object",
                    "properties": fields,
                    "required": sorted(needed & set(fields)),
                    "additionalProperties": False,
                }
            )
        )
    ),
    max_leaves=6,
)


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=40)
@given(SCHEMAS, st.integers(0, 2**31))
def test_text_matches_the_schema(name, schema, seed):
    text = write(TOKENIZERS[name], seed, json_schema=schema)
    if text.finish_reason == "stop":
        jsonschema.validate(json.loads(text), schema)
        assert text == text.strip()
        assert "\n" not in text


def test_texts_end_before_the_token_limit():
    """The tests above do not check texts that are cut off; here, none may be."""
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 8},
            "ages": {"type": "array", "items": INTEGER},
        },
        "required": ["name", "ages"],
        "additionalProperties": False,
    }
    for name, tokenizer in TOKENIZERS.items():
        texts = [write(tokenizer, seed, json_schema=schema) for seed in range(8)]
        assert {text.finish_reason for text in texts} == {"stop"}, name
        assert all(set(json.loads(text)) == {"name", "ages"} for text in texts)


INTEGER = {"type": "integer", "minimum": 0, "maximum": 200}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_generation_stops_when_nothing_can_follow(name):
    tokenizer = TOKENIZERS[name]
    text = write(tokenizer, 0, regex="ab ab")
    assert (text, text.finish_reason) == ("ab ab", "stop")
    assert text.ids[-1] not in tokenizer.end_ids
    nothing = write(tokenizer, 0, regex="")
    assert (nothing, nothing.finish_reason) == ("", "stop")
    assert nothing.ids[0] in tokenizer.end_ids


def test_forced_text_is_tokenized_as_the_tokenizer_would():
    bpe = TOKENIZERS["bpe"]
    assert write(bpe, 0, regex="it was too tired, the cat").ids == bpe.encode("it was too tired, the cat")


def test_only_the_beginning_of_a_long_forced_text_is_encoded_at_each_step(monkeypatch):
    bpe, encode, lengths = TOKENIZERS["bpe"], Tokenizer.encode, []
    text = "it was too tired, the €cat " * 90
    expected = bpe.encode(text)
    monkeypatch.setattr(
        Tokenizer, "encode", lambda self, text: lengths.append(len(text)) or encode(self, text)
    )
    assert write(bpe, 0, 3000, regex=text).ids == expected
    assert 0 < max(lengths) <= MAX_FORCED < len(text)


@pytest.mark.parametrize("prompt", ["", "ab", "a "])
def test_leading_space_is_generated(prompt):
    for tokenizer in TOKENIZERS.values():
        ids = tuple(tokenizer.encode(prompt)) or (tokenizer.end_id,)
        for seed in range(4):
            assert write(tokenizer, seed, prompt=ids, regex="( ab){2}") == " ab ab"


def test_finish_reason_is_length_at_the_token_limit():
    text = write(TOKENIZERS["byte"], 0, tokens=5, regex="[a-z]{9}")
    assert (text.finish_reason, len(text)) == ("length", 5)
    # Here the text may either end or continue.
    text = write(TOKENIZERS["byte"], 0, tokens=5, regex="[a-z]*", logit_bias={256: -100})
    assert (text.finish_reason, len(text)) == ("length", 5)


def test_every_end_token_is_allowed():
    tokenizer = Tokenizer(TOKENIZERS["byte"]._inner, TOKENIZERS["byte"].config, ends=[ord("!")])
    allowed = Grammar(tokenizer, 257, "a*").begin().allowed().nonzero()[:, 0].tolist()
    assert allowed == [ord("!"), ord("a"), 256]


def test_samples_share_a_grammar_but_not_its_state():
    grammar = Grammar(TOKENIZERS["byte"], 257, "ab|cd")
    one, other = grammar.begin(), grammar.begin()
    assert one.accept(ord("a"))
    assert one.allowed().nonzero()[:, 0].tolist() == [ord("b")]
    assert other.allowed().nonzero()[:, 0].tolist() == [ord("a"), ord("c")]
    assert not one.accept(ord("b"))


REFUSED_REGEXES = {
    "(ab": "unclosed group",
    "a)": "unopened group",
    "[z-a]": "invalid character class range",
    "*a": "repetition operator missing expression",
    r"(a)\1": "backreferences are not supported",
    "(?=a)b": "look-around",
    "[^\\x00-\\U0010ffff]": "can produce matches the regex",
    "a\ud800": "lone surrogate",
    "(a{999}){999}": "it is too large",
    "a{1000000}": "it is too large",
    "a" * (MAX_CHARACTERS + 1): f"has {MAX_CHARACTERS + 1} characters: expected at most {MAX_CHARACTERS}",
}


@pytest.mark.parametrize("regex", REFUSED_REGEXES, ids=lambda regex: ascii(regex[:12]))
def test_invalid_regex_is_rejected(regex):
    with pytest.raises(UserError, match=REFUSED_REGEXES[regex]) as caught:
        Grammar(TOKENIZERS["byte"], 257, regex)
    assert len(str(caught.value)) < 300


def nested(depth: int) -> dict:
    schema: dict = {"type": "integer"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


def circular() -> dict:
    schema: dict = {}
    schema["items"] = schema
    return schema


REFUSED_SCHEMAS = {
    "type": ({"type": "strin"}, "Invalid type: strin"),
    "kind": ([1], "expected an object"),
    "text": ("{}", "expected an object"),
    "bool": (True, "expected an object"),
    "keyword": ({"type": "array", "uniqueItems": True}, "Unimplemented keys.*uniqueItems"),
    "format": ({"type": "string", "format": "zzz"}, "Unknown format: zzz"),
    "pattern": ({"type": "string", "pattern": "(a"}, "unclosed group"),
    "nobody": ({"$ref": "#/$defs/x"}, "does not exist"),
    "elsewhere": ({"$ref": "https://example.com/x.json"}, "not present"),
    "itself": ({"$ref": "#"}, "can produce matches the JSON schema"),
    "empty": ({"type": "integer", "minimum": 5, "maximum": 4}, "greater than maximum"),
    "either": ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "oneOf"),
    "lenient": ({"not": {}, "x-guidance": {"lenient": True}}, "Unimplemented keys"),
    "not JSON": ({"const": {1, 2}}, "cannot be serialized as JSON"),
    "not a number": ({"const": float("nan")}, "cannot be serialized as JSON"),
    "circular": (circular(), "cannot be serialized as JSON"),
    "deep": (nested(200), "recursion limit"),
    "deeper": (nested(100_000), "cannot be serialized as JSON"),
    "long": ({"enum": ["x" * 70_000]}, "expected at most"),
    "long const": ({"const": "x" * 60_000}, "it is too large"),
    "many": ({"type": "array", "items": {"const": 1}, "minItems": 50_000}, "it is too large"),
    "wide": ({"allOf": [{"properties": {f"p{i}": {}}} for i in range(500)]}, "too large"),
}


@pytest.mark.parametrize("name", REFUSED_SCHEMAS)
def test_invalid_schema_is_rejected(name):
    schema, words = REFUSED_SCHEMAS[name]
    with pytest.raises(UserError, match=words) as caught:
        Grammar(TOKENIZERS["byte"], 257, json_schema=schema)
    assert len(str(caught.value)) < 300


def combine(how, patterns):
    """A schema of texts that match all of these patterns."""
    parts = [{"type": "string", "pattern": pattern} for pattern in patterns]
    names = [f"#/$defs/{i}" for i in range(len(parts))]
    defs = {str(i): part for i, part in enumerate(parts)}
    if how == "parts":
        return {"allOf": parts}
    if how == "properties":
        return {"allOf": [{"type": "object", "properties": {"a": part}} for part in parts]}
    if how == "references":
        return {"allOf": [{"$ref": name} for name in names], "$defs": defs}
    chain = {
        str(i): {**part, "$ref": name} for i, (part, name) in enumerate(zip(parts, names[1:], strict=False))
    }
    return {"$ref": names[0], "$defs": {**defs, **chain}}


@pytest.mark.parametrize("how", ["parts", "properties", "references", "chain"])
def test_schema_that_combines_many_patterns_is_rejected(how):
    """Compiling it would take exponential time, which none of the matcher's limits would prevent."""
    schema = combine(how, [f".*{i}.*" for i in range(20)])
    with pytest.raises(UserError, match="has 20 patterns, expected at most 8"):
        Grammar(TOKENIZERS["byte"], 257, json_schema=schema)
    tool = Tool("find", {"type": "object", "properties": {"a": schema}})
    with pytest.raises(UserError, match=r"tool find: .* has 20 patterns"):
        check_schemas(TOKENIZERS["byte"], 257, [tool])


def test_many_patterns_that_are_not_combined_are_accepted():
    fields = {f"f{i}": {"type": "string", "pattern": f"^{i}+$"} for i in range(20)}
    fields["last"] = {"$ref": "#/$defs/one", "description": "a reference"}
    schema = {"type": "object", "properties": fields, "$defs": {"one": {"type": "integer"}}}
    Grammar(TOKENIZERS["byte"], 257, json_schema=schema)
    Grammar(TOKENIZERS["byte"], 257, json_schema=combine("parts", [f"^[a-z]*{c}[a-z]*$" for c in "abc"]))


def test_regex_that_is_not_a_str_is_rejected():
    with pytest.raises(UserError, match="regex = '5': expected a str"):
        Grammar(TOKENIZERS["byte"], 257, 5)


def test_text_the_tokenizer_cannot_produce_is_rejected():
    few = Tokenizer.train("char", ["abc"])
    with pytest.raises(UserError, match="no text that this model's tokenizer can produce matches the regex"):
        Grammar(few, few.n_vocab, r"\d+")
    with pytest.raises(UserError, match="can produce matches the regex"):
        write(few, 0, regex="aé")
    assert write(few, 0, regex="(é|b)a") == "ba"


MONSTERS = """
import resource, sys, time
from clearhead.errors import UserError
from clearhead.generate.constraint import Grammar
from clearhead.text.tokenizer import Tokenizer

tokenizer = Tokenizer.train("byte", [])
expressions = [
    "a{1000000}", "(a{999}){999}", "b?(a{999}){999}",
    "((((a{100}){100}){100}){100}){100}", "((((a{1,100}){1,100}){1,100}){1,100}){1,100}",
    "(a|b)*a(a|b){30}", "(.*a.*){60}", "(a?){500}a{500}", r"(\\w{1,100}\\s){1,1000}", "(a*)*" * 500 + "b",
    "(" * 30000 + "a" + ")" * 30000, "a" * 65000, "|".join(f"word{i}" for i in range(6000)),
]
lists = [{"type": "array", "items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(40)]
deep = {"$ref": "#/$defs/d0", "$defs": {f"d{i}": {"anyOf": [each] * 3} for i, each in enumerate(lists)}}
deep["$defs"]["d40"] = {"type": "integer"}
schemas = [
    {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"], "additionalProperties": False},
    {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(2200)}},
    {"type": "string", "pattern": "^(a|b)*a(a|b){25}$"}, {"type": "string", "minLength": 10**6},
    {"type": "array", "items": {"type": "integer"}, "minItems": 10**6}, deep,
    {"allOf": [{"anyOf": [{"properties": {f"a{i}{j}": {}}} for j in range(4)]} for i in range(12)]},
]
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for given in [{"regex": each} for each in expressions] + [{"json_schema": each} for each in schemas]:
    begun = time.process_time()
    try:
        place = Grammar(tokenizer, 257, **given).begin()
        for _ in range(40):
            if not place.accept(int(place.allowed().nonzero()[0])):
                break
    except UserError as error:
        assert len(str(error)) < 300
    taken = time.process_time() - begun
    assert taken < 10, (taken, str(given)[:80])
unit = 1 if sys.platform == "darwin" else 1024
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) * unit / 2**20)
"""


@pytest.mark.slow
def test_pathological_constraints_take_bounded_time_and_memory():
    """They run in a separate process, in case one of them crashes it."""
    done = subprocess.run([sys.executable, "-c", MONSTERS], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert float(done.stdout) < 100  # MB
