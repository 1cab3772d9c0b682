"""A language model: text in, text out."""

import json
import math
import re

import pytest
import torch

from clearhead.errors import UserError
from clearhead.language_model import LanguageModel, load
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.corpus import Document, documents
from clearhead.text.tokenizer import Tokenizer


def test_repr_describes_the_model(model):
    shown = repr(model)
    assert f"{model.config.n_parameter:,} parameters: 1 block of 1 head, width 32, context 64" in shown
    assert f"char tokenizer of {model.tokenizer.n_vocab}" in shown


def test_model_is_shown_as_a_table(model):
    model.name = "<b>"
    shown = model._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "1 block of 1 head, width 32" in shown
    assert f"{model.training['validation_loss']:.4f}" in shown
    model.training = None
    assert "validation" not in model._repr_html_()


def test_logits_match_the_network(model):
    text = "Anna had a kite."
    logits = model.logits(text)
    assert logits.shape == (len(text), model.config.n_vocab)
    with torch.no_grad():
        expected = model.network(torch.tensor([model.tokenizer.encode(text)]))[0]
    assert torch.equal(logits, expected)


def test_saved_model_round_trips(model, trained, tmp_path):
    assert torch.equal(model.logits("Anna"), trained.model.logits("Anna"))
    assert model.training == trained.model.training
    model.save(tmp_path / "again")
    assert torch.equal(load(tmp_path / "again").logits("Anna"), model.logits("Anna"))


def test_save_overwrites_a_model_only_when_requested(model, tmp_path):
    model.save(tmp_path / "model")
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    with torch.no_grad():
        model.network.embedding.weight += 1
    with pytest.raises(UserError, match="already contains a model"):
        model.save(tmp_path / "model")
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before
    model.save(str(tmp_path / "model"), overwrite=True)
    assert torch.equal(load(tmp_path / "model").logits("Anna"), model.logits("Anna"))


def test_same_seed_gives_the_same_text(model):
    one = model.generate("The", tokens=30, seed=5)
    assert one == model.generate("The", tokens=30, seed=5)
    assert one != model.generate("The", tokens=30, seed=6)
    assert one == "".join(model.stream("The", tokens=30, seed=5))
    first, second = model.generate("The", tokens=30, seed=5, samples=2)
    assert first == one != second


PROMPTS = ["The", "Anna had a kite. " * 5, "A", "Once upon a time there was"]


@pytest.mark.parametrize("temperature", [0, 0.8])
def test_list_of_prompts_matches_separate_calls(model, temperature):
    settings = {"tokens": 20, "temperature": temperature, "seed": 3, "stop": "zq"}
    alone = [model.generate(prompt, **settings) for prompt in PROMPTS]
    assert model.generate(PROMPTS, **settings) == alone
    assert model.generate(tuple(PROMPTS[:1]), **settings) == alone[:1]
    ids = [model.tokenizer.encode(prompt) for prompt in PROMPTS]
    assert model.generate(ids, **settings) == alone
    twice = [model.generate(prompt, samples=2, **settings) for prompt in PROMPTS]
    assert model.generate(PROMPTS, samples=2, **settings) == twice


def test_more_prompts_than_slots(model):
    texts = model.generate(["The"] * 40 + ["Anna"], tokens=3, seed=1)
    assert len(texts) == 41
    assert set(texts[:40]) == {model.generate("The", tokens=3, seed=1)}


def test_empty_list_of_prompts_gives_no_texts(model):
    assert model.generate([]) == []
    assert model.generate((), samples=2) == []


def test_engine_matches_generate(model):
    with model.engine(slots=2, queue=10) as engine:
        handles = [engine.submit(model.request(prompt, tokens=20, seed=2, top_k=5)) for prompt in PROMPTS]
        texts = [handle.texts() for handle in handles]
    assert texts == [[model.generate(prompt, tokens=20, seed=2, top_k=5)] for prompt in PROMPTS]


@pytest.mark.parametrize(
    ("prompts", "settings", "message"),
    [
        (["The", ""], {}, "the prompt is empty"),
        (["The", 3], {}, "the prompt has type int: expected a str"),
        (["The"], {"inspect": True}, "`inspect` applies to a single prompt"),
        (["The"], {"edit": {"block.0.hidden": 0}}, "`edit` applies to a single prompt"),
        (["The"], {"tokens": 0}, "tokens = 0"),
        (["The"], {"seed": -1}, "seed = -1"),
        (["The"], {"samples": 0}, "samples = 0"),
        (["The"], {"samples": 1.5}, "samples = 1.5"),
        (["The"], {"shift": True}, "`shift` applies to a single prompt"),
        (["The"], {"tmperature": 1}, "did you mean 'temperature'"),
        ([], {"tmperature": 1}, "did you mean 'temperature'"),
        (["The"], {"temperature": -1}, "temperature = -1"),
        ([[0], [99999]], {}, "id 99999 does not exist"),
    ],
)
def test_invalid_prompts_and_settings_are_rejected(model, prompts, settings, message):
    with pytest.raises(UserError, match=message):
        model.generate(prompts, **settings)


def test_zero_temperature_picks_the_most_likely_token(model):
    text = "The"
    for _ in range(10):
        text += model.tokenizer.decode([int(model.logits(text)[-1].argmax())])
    assert model.generate("The", tokens=10, temperature=0) == text.removeprefix("The")


def test_long_prompts_are_truncated_from_the_left(model):
    prompt = "Anna had a kite. " * 10
    assert len(prompt) > model.config.n_context
    text = model.generate(prompt, tokens=5, temperature=0)
    seen = model.tokenizer.encode(prompt)[-model.config.n_context :]
    with torch.no_grad():
        likeliest = int(model.network(torch.tensor([seen]))[0, -1].argmax())
    assert text.startswith(model.tokenizer.decode([likeliest]))


def test_text_stops_before_a_stop_string(model):
    text = model.generate("The", tokens=60, seed=1)
    stop = text[20:23]
    assert model.generate("The", tokens=60, seed=1, stop=stop) == text[: text.index(stop)]
    assert model.generate("The", tokens=60, seed=1, stop=["§", stop]) == text[: text.index(stop)]
    for none in (None, (), []):
        assert model.generate("The", tokens=60, seed=1, stop=none) == text
        assert model.generate(["The"], tokens=60, seed=1, stop=none) == [text]


def test_result_has_ids_log_probabilities_and_finish_reason(model):
    text = model.generate("The", tokens=30, seed=5, log_probabilities=3)
    assert isinstance(text, str)
    assert text.finish_reason in ("stop", "length")
    assert text == model.tokenizer.decode(text.ids) == model.generate("The", tokens=30, seed=5)
    # Each is the model's own log-probability given the preceding tokens, at any temperature.
    ids = model.tokenizer.encode("The") + text.ids
    told = model.logits(ids[:-1]).log_softmax(-1)[2:]
    for row, drawn, log_probability in zip(told, text.sampled, text.log_probabilities, strict=True):
        assert log_probability == pytest.approx(row[drawn.id].item(), abs=1e-4)
        assert [i for i, _ in drawn.alternatives] == row.topk(3).indices.tolist()
        assert [p for _, p in drawn.alternatives] == pytest.approx(row.topk(3).values.tolist(), abs=1e-4)
    assert model.generate("The", tokens=3).log_probabilities is None


def test_streamed_pieces_add_up_to_the_full_text(model):
    for stop in (None, "e"):
        pieces = list(model.stream("The", tokens=40, seed=5, stop=stop, log_probabilities=1))
        whole = model.generate("The", tokens=40, seed=5, stop=stop, log_probabilities=1)
        assert "".join(pieces) == whole
        assert [i for piece in pieces for i in piece.ids] == whole.ids
        assert [piece.finish_reason for piece in pieces[:-1]] == [None] * (len(pieces) - 1)
        assert pieces[-1].finish_reason == whole.finish_reason
        assert all(pieces[:-1])


def test_each_sample_has_its_own_finish_reason(model):
    texts = model.generate("The", tokens=8, seed=1, samples=9, stop="e")
    assert {text.finish_reason for text in texts} == {"stop", "length"}
    for text in texts:
        assert "e" not in text
        assert (text.finish_reason == "length") <= (len(text.ids) == 8)


def test_generation_stops_at_the_time_limit(model):
    text = model.generate("The", tokens=10**6, seconds=0.3, logit_bias={model.tokenizer.end_id: -100})
    assert text.finish_reason == "time"
    [*_, last] = model.stream("The", tokens=10**6, seconds=0.1, logit_bias={model.tokenizer.end_id: -100})
    assert last.finish_reason == "time"


def test_logit_bias_and_penalties_affect_sampled_tokens(model):
    assert set(model.generate("The", tokens=9, logit_bias={"x": 100})) == {"x"}
    assert model.generate("The", tokens=40, temperature=1, logit_bias={"e": -100}).count("e") == 0
    plain = model.generate("The", tokens=60, temperature=0)
    varied = model.generate("The", tokens=60, temperature=0, presence_penalty=2, frequency_penalty=2)
    assert len(set(varied)) > len(set(plain))


def test_regex_constrains_the_generated_text(model):
    assert re.fullmatch("[A-Z][a-z]{3,5}, (yes|no)", model.generate("The", regex="[A-Z][a-z]{3,5}, (yes|no)"))
    texts = model.generate("The", samples=3, regex="[a-f]{9}", temperature=2.0)
    assert len(set(texts)) == 3
    assert all(re.fullmatch("[a-f]{9}", text) and text.finish_reason == "stop" for text in texts)
    text, trace = model.generate("The", regex="[a-f]{9}", inspect=True)
    assert "".join(trace.tokens) == "The" + text
    assert "".join(model.stream("The", regex="a{3}b?")) in ("aaa", "aaab")


def test_full_context_can_be_shifted(model):
    """The tokens are the same until the context is full; later ones depend on fewer preceding tokens."""
    plain = model.generate("The", tokens=150, seed=1, logit_bias={model.tokenizer.end_id: -100})
    shifted = model.generate("The", tokens=150, seed=1, shift=True, logit_bias={model.tokenizer.end_id: -100})
    assert shifted[:60] == plain[:60]
    assert len(shifted) == len(plain) == 150


def test_evaluation_counts_each_token_once(model):
    text = "Anna had a kite. " * 9
    evaluation = model.evaluate(text)
    assert (evaluation.tokens, evaluation.bytes) == (len(text) + 1, len(text))
    assert evaluation.perplexity == math.exp(evaluation.loss)
    assert evaluation.bits_per_byte == pytest.approx(evaluation.loss / math.log(2) * (1 + 1 / len(text)))
    assert model.evaluate([Document.of("a", text)]) == evaluation
    assert model.evaluate(text, batch_size=1).loss == pytest.approx(evaluation.loss, rel=1e-6)
    assert evaluation.loss < math.log(model.config.n_vocab), "worse than guessing"


def test_evaluation_preserves_training_mode(model):
    model.network.train()
    model.evaluate("Anna had a kite.")
    assert model.network.training


def test_inspect_returns_a_trace(model):
    text = "The chicken"
    trace = model.inspect(text)
    assert trace.tokens == list(text)
    assert torch.equal(trace.logits, model.logits(text))
    weights = trace.block[0].head[0].weights
    assert weights.shape == (len(text), len(text))
    assert torch.equal(weights, weights.tril())
    assert trace.verify() < 1e-5
    with pytest.raises(UserError, match="blocks 0 to 0"):
        trace["block.1.input"]


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda model: model.logits(""), "the text is empty"),
        (lambda model: model.inspect(""), "the text is empty"),
        (lambda model: model.inspect([]), "expected a str, ids, or a list of texts"),
        (lambda model: model.inspect("a", padding="middle"), "expected left or right"),
        (lambda model: model.generate(""), "the prompt is empty"),
        (lambda model: model.stream(""), "the prompt is empty"),
        (lambda model: model.evaluate(""), "the text is empty"),
        (lambda model: model.logits("Ω"), "GREEK CAPITAL LETTER OMEGA"),
        (lambda model: model.logits("a" * 65), "65 tokens exceed the context of 64"),
        (lambda model: model.generate("a", tokens=0), "tokens = 0"),
        (lambda model: model.generate("a", seed=-1), "seed = -1"),
        (lambda model: model.generate("a", seed=2**32), "seed = 4294967296"),
        (lambda model: model.generate("a", samples=0), "samples = 0"),
        (lambda model: model.stream("a", temperature=-1), "temperature = -1"),
        (lambda model: model.generate("a", samples=1.5), "samples = 1.5"),
        (lambda model: model.generate("a", samples=True), "samples = True"),
        (
            lambda model: model.generate("a", samples=10**6),
            "samples = 1000000: expected an integer from 1 to 10000",
        ),
        (
            lambda model: model.request("a", samples=10**6),
            "samples = 1000000: expected an integer from 1 to 10000",
        ),
        (lambda model: model.request("a", samples=1.5), "samples = 1.5"),
        (lambda model: model.request("a", tokens="x"), "tokens = 'x': expected an integer"),
        (lambda model: model.request("a", seed="x"), "seed = 'x'"),
        (lambda model: model.request("a", seconds=math.inf), "seconds = inf: expected a finite number"),
        (lambda model: model.request("a", tmperature=1), "unknown setting 'tmperature'; did you mean 'temp"),
        (lambda model: model.generate("a", tmperature=1), "unknown setting 'tmperature'; did you mean 'temp"),
        (lambda model: model.generate("a", beams=2, stopp="x"), "did you mean 'stop'"),
        (
            lambda model: model.generate("a", stop=5),
            "stop = 5: expected a non-empty string or a list of non-empty strings",
        ),
        (
            lambda model: model.generate("a", stop=["b", 5]),
            "expected a non-empty string or a list of non-empty strings",
        ),
        (
            lambda model: model.generate("a", stop=""),
            "stop = '': expected a non-empty string or a list of non-empty strings",
        ),
        (lambda model: model.stream("a", stop=["b", ""]), "expected a non-empty string"),
        (lambda model: model.request("a", stop=5), "stop = 5"),
        (lambda model: model.generate("a", shift="x"), "shift = 'x': expected True or False"),
        (lambda model: model.engine(slots=1.5), "slots = 1.5: expected an integer from 1 to 1024"),
        (lambda model: model.engine(slots=0), "slots = 0"),
        (lambda model: model.engine(slots=10**6), "slots = 1000000"),
        (lambda model: model.engine(queue=0), "queue = 0: expected an integer from 1 to 100000"),
        (lambda model: model.engine(queue=-1), "queue = -1"),
        (lambda model: model.stream("a", seconds=0), "seconds = 0"),
        (lambda model: model.stream("a", logit_bias={10**6: 1.0}), "`logit_bias` of 1000000"),
        (lambda model: model.stream("a", regex="("), "the regex cannot be used: unclosed group"),
        (lambda model: model.stream("a", json_schema={"type": "x"}), "Invalid type: x"),
        (lambda model: model.stream("a", regex="a", json_schema={}), "both given"),
        (lambda model: model.stream("a", log_probabilities=21), "log_probabilities = 21"),
        (lambda model: model.generate("a", shift=True, inspect=True), "omit shift"),
        (lambda model: model.stream("a", shift=True, edit={"block.0.hidden": 0}), "omit shift"),
    ],
)
def test_invalid_arguments_are_rejected_immediately(ask, words, model):
    with pytest.raises(UserError, match=words):
        ask(model)


def test_bidirectional_models_cannot_generate(trained):
    config = preset("lecture", n_vocab=99, n_context=8, n_block=1, n_head=1, d_model=8, causal=False)
    both = LanguageModel(Transformer(config), trained.tokenizer)
    assert both.logits("Anna").shape == (4, 99)
    for prompt, settings in (
        ("Anna", {}),
        (["Anna"], {}),
        ("Anna", {"beams": 2}),
        ("Anna", {"inspect": True}),
    ):
        with pytest.raises(UserError, match="is bidirectional"):
            both.generate(prompt, **settings)


CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TALKS = [
    [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": f"What is {a} and 2?"},
        {"role": "assistant", "content": f"It is {a + 2}."},
        {"role": "user", "content": "Thanks."},
        {"role": "assistant", "content": "Bye!"},
    ]
    for a in range(3)
]


@pytest.fixture
def talker():
    """A small model with a chat template."""
    made = Tokenizer.train("byte", [])
    made._inner.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    tokenizer = Tokenizer(made._inner, {**made.config, "chat_template": CHATML})
    torch.manual_seed(0)
    config = preset("modern", n_vocab=tokenizer.n_vocab, n_context=64, n_block=1, n_head=1, d_model=16)
    return LanguageModel(Transformer(config), tokenizer)


@pytest.fixture
def talks(tmp_path):
    path = tmp_path / "talks.jsonl"
    path.write_text("".join(json.dumps({"messages": talk}) + "\n" for talk in TALKS))
    return path


def test_conversations_are_evaluated_on_replies_only(talker, talks):
    losses, n_tokens = [], 0
    for talk in TALKS:
        text = talker.chat_text(talk, add_generation_prompt=False)
        spans = [hit.span(1) for hit in re.finditer(r"assistant\n(.*?<\|im_end\|>\n)", text)]
        ids, starts = talker.tokenizer.encode_template(text)
        counts = [any(a <= at < b for a, b in spans) for at in starts]
        n_tokens += len(ids)
        for start in range(0, len(ids) - 1, 64):
            window = torch.tensor(ids[start : start + 65])
            with torch.no_grad():
                surprise = -talker.network(window[None, :-1])[0].double().log_softmax(-1)
            right = surprise.gather(1, window[1:, None])[:, 0].tolist()
            losses += [loss for loss, count in zip(right, counts[start + 1 :], strict=False) if count]
    assert len(losses) == 3 * (len("It is 2.") + len("Bye!") + 4)
    for given in (talks, list(documents([talks]))):
        evaluation = talker.evaluate(given)
        assert evaluation.replies
        assert evaluation.loss == pytest.approx(sum(losses) / len(losses), rel=1e-6)
        assert (evaluation.tokens, evaluation.bytes) == (len(losses), talks.stat().st_size)
        assert evaluation.bits_per_byte is None
    told = []
    talker.evaluate(talks, 1, lambda done, total: told.append((done, total)))
    assert told[-1] == (n_tokens, n_tokens)


def test_jsonl_without_a_chat_template_is_plain_text(talker, talks, tmp_path):
    plain = LanguageModel(talker.network, Tokenizer.train("byte", []))
    whole = plain.evaluate(talks)
    assert not whole.replies
    assert whole == plain.evaluate(talks.read_text())
    assert whole.tokens == talks.stat().st_size + 1
    (tmp_path / "more.txt").write_text("More.")
    assert plain.evaluate(list(documents([talks, tmp_path / "more.txt"]))).tokens == whole.tokens + 6
    with pytest.raises(UserError, match=r"more.txt does not: give one kind at a time"):
        talker.evaluate(list(documents([talks, tmp_path / "more.txt"])))


def test_error_names_a_line_that_is_not_a_conversation(talker, talks):
    with talks.open("a") as file:
        file.write('{"text": "Hello."}\n')
    with pytest.raises(UserError, match=r"talks.jsonl, line 4: there are no messages"):
        talker.evaluate(talks)


@pytest.fixture
def rounded(model_folder):
    pytest.importorskip("numba", reason="numba is not installed: pip install '.[numba]'")
    return load(model_folder, quantize="int8")


@pytest.mark.slow  # numba compiles for seconds
def test_int8_model_stays_close_to_the_original(model, rounded):
    text = "Anna had a kite. Anna had a kite."
    assert abs(rounded.evaluate(text).loss - model.evaluate(text).loss) < 0.02
    greedy = {"tokens": 30, "temperature": 0}
    written = rounded.generate("Anna", **greedy)
    with rounded.engine(slots=2) as engine:
        assert engine.submit(rounded.request("Anna", **greedy)).texts() == [written]


def test_int8_model_refuses_what_needs_exact_weights(model, rounded, model_folder, tmp_path):
    for refused in (
        lambda: rounded.inspect("Anna"),
        lambda: rounded.save(tmp_path / "other"),
        lambda: rounded.export(tmp_path / "other"),
        lambda: rounded.generate("Anna", tokens=2, inspect=True),
        lambda: rounded.weight("block.0.head.0.W_Q"),
    ):
        with pytest.raises(UserError, match="load the model without `quantize`"):
            refused()
    assert not (tmp_path / "other").exists()
    assert load(model_folder, "cpu", quantize="none").logits("Anna").equal(model.logits("Anna"))
    with pytest.raises(UserError, match="quantize = 'int4': expected int8, or none"):
        load(model_folder, quantize="int4")
