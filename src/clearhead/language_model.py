"""A language model: a network and its tokenizer, text in and text out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.formats import folder as model_folder
from clearhead.formats.exporting import export
from clearhead.formats.opening import find_run, find_snapshot, name_of, open_model
from clearhead.formats.saved import Saved
from clearhead.generate.beam_search import BeamSearch
from clearhead.generate.detokenizer import Generated, merge_empty
from clearhead.generate.engine import Engine
from clearhead.generate.fill_mask import fill_mask
from clearhead.generate.request import GenerationRequest
from clearhead.generate.sampling import QUEUE, SLOTS, Sampling, check_names
from clearhead.generate.scoring import score
from clearhead.inspect.base_trace import UNNAMED
from clearhead.inspect.edits import Edit, EditValue
from clearhead.inspect.state_trace import AnyTrace
from clearhead.inspect.trace_factory import make_trace
from clearhead.inspect.weights import weight
from clearhead.model.transformer import Transformer
from clearhead.networks import AnyConfig, Network, describe_shape, need_single, need_transformer
from clearhead.runtime.device import pick_device
from clearhead.runtime.quantization import need_exact
from clearhead.runtime.quantization import quantize as round_matrices
from clearhead.summary_table import html_table
from clearhead.text.conversations import encode_messages, render_messages
from clearhead.text.corpus import Document
from clearhead.text.inputs import encode_continuation, encode_text, read_documents, split_texts
from clearhead.text.tokenizer import Tokenizer
from clearhead.text_generation import TextGeneration
from clearhead.training.evaluation import Evaluation, evaluate_texts

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
# Settings of `generate` that `stream` does not have.
OF_GENERATE = ("samples", "inspect", "beams", "length_penalty")


class LanguageModel:
    """The model that `train` and `load` return."""

    def __init__(
        self,
        network: Network,
        tokenizer: Tokenizer,
        training: dict[str, Any] | None = None,
        name: str = UNNAMED,
    ) -> None:
        self.network = network.eval()
        self.tokenizer = tokenizer
        self.training = training  # how it was trained, if Clearhead trained it
        self.name = name  # its display name: that of its folder or file

    @property
    def config(self) -> AnyConfig:
        return self.network.config

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    def transformer(self, what: str = "this feature") -> Transformer:
        """Return the network if it is a transformer; otherwise, raise an error that names `what`."""
        need_transformer(self.config, what)
        assert isinstance(self.network, Transformer)
        return self.network

    @property
    def _generation(self) -> TextGeneration:
        opening = (self.training or {}).get("opening_ids")
        return TextGeneration(self.network, self.tokenizer, self.name, opening)

    def __repr__(self) -> str:
        kind, n_vocab = self.tokenizer.kind, self.config.n_vocab
        return f"LanguageModel({describe_shape(self.config)}, {kind} tokenizer of {n_vocab})"

    def _repr_html_(self) -> str:
        training = self.training or {}
        labels = {"steps_done": "steps", "tokens": "tokens of text", "validation_loss": "validation loss"}
        rows = [
            ("network", describe_shape(self.config)),
            ("tokenizer", f"{self.tokenizer.kind}, {self.config.n_vocab:,} tokens"),
            *((label, training[name]) for name, label in labels.items() if training.get(name) is not None),
        ]
        return html_table((), rows, self.name)

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Save to a folder that `load` and transformers can open. Raises an error if the folder already
        contains a model, unless `overwrite` is true.
        """
        network = need_single(self.network, "saving")
        need_exact(network, "saving")
        if not overwrite:
            model_folder.check_free(Path(folder))
        model_folder.save(Path(folder), Saved(network, self.tokenizer, self.training))

    def export(self, path: str | Path, to: str | None = None, numbers: str | None = None) -> None:
        """Export for other programs: a folder for transformers, or one GGUF file for llama.cpp.

        `to` is huggingface or gguf; by default, the path's suffix decides. `numbers` is the data type of the
        matrices in a GGUF file: F32, F16 (default) or Q8_0. An n-gram model is exported as an ARPA file.
        """
        export(
            Saved(need_single(self.network, "exporting"), self.tokenizer, self.training),
            Path(path),
            to,
            numbers,
        )

    def chat_text(self, messages: Sequence[Mapping[str, str]], add_generation_prompt: bool = True) -> str:
        """Render messages, each with a role and content, using this model's chat template."""
        return render_messages(self.tokenizer, messages, add_generation_prompt)

    def chat_ids(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """`chat_text` as token ids, a prompt that `generate` replies to.

        The template's special tokens are parsed; those in the messages are ordinary characters.
        """
        return encode_messages(self.tokenizer, messages)

    @torch.inference_mode()
    def logits(self, text: str | Sequence[int]) -> Tensor:
        """The logits of the next token after each token of the text: T V.

        A text begins with the model's start token, if it expects one; ids are taken as they are.
        """
        ids = encode_text(text, self.tokenizer, self.config.n_vocab)
        return self.network(torch.tensor([ids], device=self.device))[0]

    def log_probabilities(
        self,
        text: str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]],
        prefix: str | Sequence[int] | None = None,
        top: int | None = None,
    ) -> Any:
        """The log-probability of each token of a text, whether greedy decoding would choose it, and, with `top`, that
        many alternatives.

        After a prefix, only the tokens of the text are scored; after an empty one, the text starts a document.
        Without a prefix, the first token has no log-probability. A list of texts, or of lists of ids, is processed as
        a few large batches; the result is then a list.
        """
        texts, single = split_texts(text)
        n_vocab = self.config.n_vocab
        encoded = [encode_continuation(prefix, each, self.tokenizer, n_vocab) for each in texts]
        scored = score(self.network, [ids for ids, _ in encoded], [first for _, first in encoded], top)
        return scored[0] if single else scored

    def generate(
        self,
        prompt: str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]] | None = None,
        tokens: int = GenerationRequest.tokens,
        *,
        samples: int | None = None,
        inspect: bool = False,
        beams: int | None = None,
        length_penalty: float | None = None,
        **settings: Any,
    ) -> Any:
        """Generate text from a prompt; without one, from the start of a document or, if the model was trained on
        a single document, from the start of a line.

        The prompt is a text, which begins with the model's start token if it expects one, or ids, such as those of
        `chat_ids`, which are taken as they are. Generation ends after `tokens` tokens, at
        the end of the document, or before a stop string. The result is a str that also has `ids`,
        `log_probabilities` and `finish_reason`; with `samples`, a list of that many texts; with `inspect`,
        the text and a trace of the prompt and the text. Other settings are those of `stream`. The same seed
        gives the same text. A list of prompts is processed as one batch; the result is a list of what each
        prompt would give on its own.

        With `beams`, beam search finds the text with the highest log-probability divided by its length to the
        power of `length_penalty` (default 1). The result is deterministic.
        """
        check_names(settings, [*signature(self.stream).parameters, *OF_GENERATE])
        generation = self._generation
        if isinstance(settings.get("draft"), LanguageModel):
            settings["draft"] = settings["draft"]._generation
        many = isinstance(prompt, list | tuple) and (not prompt or type(prompt[0]) is not int)
        one = cast("str | Sequence[int] | None", prompt)
        if beams is not None:
            if many:
                raise UserError("`beams` applies to a single prompt: pass prompts one at a time")
            given = {**settings, "samples": samples, "inspect": inspect or None}
            search = BeamSearch(beams) if length_penalty is None else BeamSearch(beams, length_penalty)
            return generation.search(one, tokens, search, given)
        if length_penalty is not None:
            raise UserError("`length_penalty` applies to beam search: set `beams` too, or omit it")
        if inspect and samples is not None:
            raise UserError("`inspect` applies to one text: omit `samples`")
        if many:
            if inspect:
                raise UserError("`inspect` applies to a single prompt: pass prompts one at a time")
            return generation.batch(cast("Sequence[Any]", prompt), tokens, samples, **settings)
        if inspect:
            return generation.traced(one, tokens, **settings)
        texts = generation.texts(one, tokens, 1 if samples is None else samples, **settings)
        return texts[0] if samples is None else texts

    def request(
        self,
        prompt: str | Sequence[int] | None = None,
        tokens: int = GenerationRequest.tokens,
        *,
        samples: int = GenerationRequest.samples,
        seed: int = GenerationRequest.seed,
        stop: str | Sequence[str] | None = None,
        seconds: float | None = None,
        **sampling: Any,
    ) -> GenerationRequest:
        """A request for an engine, with the sampling settings of `generate`. `seconds` is the time limit."""
        return self._generation.request(
            prompt, tokens, samples=samples, seed=seed, stop=stop, seconds=seconds, **sampling
        )

    def engine(self, slots: int = SLOTS, queue: int = QUEUE) -> Engine:
        """An engine that serves many requests at once, from any thread:
        `engine.submit(model.request("Once"))`.

        `slots` sequences are generated at once, and `queue` requests may wait. Do not change the weights
        while it runs: the engine may hold a copy.
        """
        return Engine(self.network, self.tokenizer, slots, queue)

    def stream(
        self,
        prompt: str | Sequence[int] | None = None,
        tokens: int = GenerationRequest.tokens,
        *,
        temperature: float = Sampling.temperature,
        top_k: int | None = Sampling.top_k,
        top_p: float | None = Sampling.top_p,
        min_p: float | None = Sampling.min_p,
        repetition_penalty: float = Sampling.repetition_penalty,
        presence_penalty: float = Sampling.presence_penalty,
        frequency_penalty: float = Sampling.frequency_penalty,
        logit_bias: Mapping[int | str, float] | None = None,
        regex: str | None = None,
        json_schema: Mapping[str, Any] | None = None,
        log_probabilities: int | None = Sampling.log_probabilities,
        seed: int = GenerationRequest.seed,
        stop: str | Sequence[str] | None = None,
        seconds: float | None = None,
        shift: bool = False,
        draft: str | Path | LanguageModel | None = None,
        edit: Mapping[str, EditValue | Edit] | None = None,
    ) -> Iterator[Generated]:
        """Like `generate`, but yields the text in pieces; the last piece has the finish reason.

        The sampling rules and their order are described in `generate/sampler.py`. The penalties lower the
        logits of tokens already used; `repetition_penalty` includes those in the prompt. `logit_bias` maps
        ids, or the texts of single tokens, to a number added to the logit; -100 excludes the token. `regex` or
        `json_schema` constrains the text, which matches unless tokens or time run out. `log_probabilities` returns
        that many alternatives for each sampled token, with log-probabilities before any rule. `seconds`
        limits the time. With `shift`, a full context drops its older half instead of being recomputed for
        each token: faster, but an approximation. `draft` proposes tokens that the model then checks several at a
        time, which gives the same text, often faster: "repeats" proposes what followed the same tokens earlier; a
        text file, or an n-gram model with the same tokenizer, proposes what its n-grams predict. `edit` applies at
        every token.
        """
        settings = {
            name: value for name, value in locals().items() if name not in ("self", "prompt", "tokens")
        }
        settings["draft"] = draft._generation if isinstance(draft, LanguageModel) else draft
        return merge_empty(piece for (piece,) in self._generation.stream(prompt, tokens, **settings))

    def fill(self, text: str, count: int = 5) -> list[list[tuple[str, float]]]:
        """The most likely tokens for each ___ (or <|mask|>) in a text, with their probabilities.

        For bidirectional models (`train` with `bidirectional`); each blank is one token.
        """
        return fill_mask(self.network, self.tokenizer, text, count)

    def evaluate(
        self,
        text: str | Path | Sequence[Document],
        batch_size: int = 32,
        report: Callable[[int, int], object] = lambda *_: None,
        *,
        context: int | None = None,
        stride: int | None = None,
    ) -> Evaluation:
        """The loss over the whole text in windows of `context` tokens (default: the model's context), including the
        ends of documents.

        By default, windows are disjoint. With a smaller `stride`, each starts that many tokens after the previous one:
        every token still counts once, after at least `context` minus `stride` tokens of its document, if there are
        that many. If the model expects a start token, every window begins with it.

        A path, or the name of an existing file, is read. Documents do not see each other: each has the loss that
        it has on its own. For a model with a chat template, .jsonl files are conversations, rendered with it, and
        the loss is that of the assistant's replies. For a bidirectional model, it is the loss on masked tokens,
        whose choice depends only on the window's tokens. `report(done, total)` receives token counts.
        """
        texts = read_documents(text)
        return evaluate_texts(self.network, self.tokenizer, texts, batch_size, report, context, stride)

    def inspect(
        self,
        text: str | Sequence[str] | Sequence[int] | Tensor,
        edit: Mapping[str, EditValue | Edit] | None = None,
        grad: bool = False,
        padding: str = "right",
        watch: Callable[[], object] = lambda: None,
    ) -> AnyTrace:
        """Trace every step of what the model computes for a text, or for several as one padded batch.

        A recurrent network's trace holds its states. A text may also be given as ids, which are taken as they are;
        a str begins with the model's start token, if it expects one. `edit` sets values at sites;
        with `grad`, gradients flow through the trace. `watch` is called before each block, and may raise an
        exception to stop.
        """
        return make_trace(self.network, self.tokenizer, text, edit, grad, padding, watch, self.name)

    def weight(self, name: str) -> Tensor:
        """A weight by name, such as block.0.head.0.W_Q: input features × output features, as in x W."""
        need_exact(self.network, "reading a weight by name")
        return weight(self.transformer("reading a weight by name"), name)


def load(
    name: str | Path,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype = "float32",
    step: int | None = None,
    quantize: str | None = None,
    base: str | Path | None = None,
) -> LanguageModel:
    """Load a model from its folder or file, or by its name (built in, pulled, or on the Hugging Face Hub).

    The default device is the best available, or the CPU if the model is quantized; `dtype` is the data type of the
    weights. For a run with snapshots, `step` selects one. `quantize="int8"` quantizes the matrices: on a CPU,
    generation is several times faster and slightly less accurate, and the model cannot be inspected. A LoRA adapter is
    merged into `base`, or into the model that it names.
    """
    if quantize not in (None, "none", "int8"):
        raise UserError(f"quantize = {quantize!r}: expected int8, or none")
    rounded = quantize == "int8"
    dtype = str(dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise UserError(f"dtype = {dtype!r}: expected one of {', '.join(DTYPES)}")
    source = name if step is None else find_snapshot(find_run(name), step)
    saved = open_model(source, DTYPES[dtype], base)
    called = name_of(name, step)
    if rounded:
        need_transformer(saved.network.config, "quantize")
        device = "cpu" if device is None else device
    network = saved.network.to(pick_device(device))
    if rounded and isinstance(network, Transformer):
        round_matrices(network)
    return LanguageModel(network, saved.tokenizer, saved.training, called)
