"""Text generation in all its forms: as a stream, as whole texts, as a batch, by beam search, or with a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from clearhead.classics.recurrent import Recurrent
from clearhead.errors import UserError
from clearhead.generate.beam_search import BeamSearch
from clearhead.generate.decoder import Decoder
from clearhead.generate.detokenizer import Detokenizer, Generated
from clearhead.generate.generation import run_batch, run_beam_search, run_request
from clearhead.generate.request import GenerationRequest, parse_stop
from clearhead.generate.sampling import Sampling
from clearhead.inspect.decoders import EditedDecoder, TracingDecoder, trace_window
from clearhead.inspect.edits import Edit, Edits, EditValue
from clearhead.inspect.state_trace import AnyTrace
from clearhead.inspect.trace_factory import make_trace
from clearhead.model.transformer import Transformer
from clearhead.networks import Network, need_transformer
from clearhead.text.inputs import encode_prompt
from clearhead.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class TextGeneration:
    """Generates the texts of a `LanguageModel`, whose methods describe the settings."""

    network: Network
    tokenizer: Tokenizer
    name: str
    opening_ids: object = None  # the start of a text without a prompt, if they are valid

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
        ids, stops = self._read_prompt(prompt), parse_stop(stop)
        return GenerationRequest(
            tuple(ids), tokens, Sampling.from_options(sampling), seed, stops, samples, seconds
        )

    def stream(
        self,
        prompt: str | Sequence[int] | None,
        tokens: int,
        samples: int = 1,
        decoder: Decoder | None = None,
        *,
        shift: bool = False,
        draft: str | Path | TextGeneration | None = None,
        edit: Mapping[str, EditValue | Edit] | None = None,
        **settings: Any,
    ) -> Iterator[list[Generated]]:
        """Yield the next piece of every sample."""
        if not isinstance(shift, bool):
            raise UserError(f"shift = {shift!r}: expected True or False")
        if shift and (decoder is not None or edit):
            raise UserError("inspect and edit recompute the whole window for each token: omit shift")
        request = self.request(prompt, tokens, samples=samples, **settings)
        if decoder is None and edit:
            network = self._transformer("an edit")
            decoder = EditedDecoder(network, Edits.parse(edit, network.config, grows=True), samples)
        if draft is not None and (decoder is not None or edit):
            raise UserError("inspect and edit process one token at a time: omit draft")
        source = self._network_of(draft) if isinstance(draft, TextGeneration) else draft
        return run_request(self.network, self.tokenizer, request, decoder, shift, source)

    def texts(self, *given: Any, **settings: Any) -> list[Generated]:
        """The output of `stream` as one text per sample."""
        return [
            Generated.concatenate(pieces) for pieces in zip(*self.stream(*given, **settings), strict=True)
        ]

    def batch(
        self,
        prompts: Sequence[Any],
        tokens: int,
        samples: int | None,
        *,
        edit: object = None,
        shift: bool = False,
        draft: object = None,
        **settings: Any,
    ) -> list[Any]:
        """The text, or the texts of all samples, for each prompt."""
        for name, value in (("edit", edit), ("shift", shift), ("draft", draft)):
            if value:
                raise UserError(f"`{name}` applies to a single prompt: pass prompts one at a time")
        count = 1 if samples is None else samples
        requests = [self.request(each, tokens, samples=count, **settings) for each in prompts]
        texts = run_batch(self.network, self.tokenizer, requests)
        return texts if samples is not None else [text for (text,) in texts]

    def search(
        self, prompt: str | Sequence[int] | None, tokens: int, search: BeamSearch, settings: dict[str, Any]
    ) -> Generated:
        """The best text that beam search finds."""
        seconds = settings.pop("seconds", None)
        if others := [name for name, value in settings.items() if value is not None]:
            listed = " or ".join(f"`{name}`" for name in others)
            raise UserError(f"beam search cannot be combined with {listed}")
        request = self.request(prompt, tokens, seconds=seconds)
        return run_beam_search(self.network, self.tokenizer, request, search)

    def traced(
        self,
        prompt: str | Sequence[int] | None,
        tokens: int,
        edit: Mapping[str, EditValue | Edit] | None = None,
        **settings: Any,
    ) -> tuple[Generated, AnyTrace]:
        """A text, and a trace of the prompt and the text."""
        ids = self._read_prompt(prompt)
        if isinstance(self.network, Recurrent):
            [text] = self.texts(prompt, tokens, edit=edit, **settings)
            generated = [i for i in text.ids if i not in self.tokenizer.end_ids]
            generated = generated if self._is_uncut(text, ids) else self.tokenizer.encode(text)
            return text, make_trace(self.network, self.tokenizer, ids + generated, model_name=self.name)
        network = self._transformer()
        edits = Edits.parse(edit or {}, network.config, grows=True)
        decoder = EditedDecoder(network, edits) if edit else TracingDecoder(network)
        [text] = self.texts(prompt, tokens, decoder=decoder, **settings)
        if text.ids[-1] not in self.tokenizer.end_ids:
            decoder.decode_one(torch.tensor([text.ids[-1:]]))  # the last token has not been processed yet
        if self._is_uncut(text, ids):
            return text, decoder.trace(self.tokenizer, self.name)
        device = network.embedding.weight.device
        whole = torch.tensor([ids + self.tokenizer.encode(text)], device=device)
        return text, trace_window(network, whole, self.tokenizer, self.name, edits)

    def _transformer(self, what: str = "this feature") -> Transformer:
        need_transformer(self.network.config, what)
        assert isinstance(self.network, Transformer)
        return self.network

    def _read_prompt(self, prompt: str | Sequence[int] | None) -> list[int]:
        opening, n_vocab = self.opening_ids, self.network.config.n_vocab
        if prompt is None and isinstance(opening, list) and opening and all(type(i) is int for i in opening):
            ids: list[int] = list(opening)
            if 0 <= min(ids) <= max(ids) < n_vocab:
                return ids
        return encode_prompt(prompt, self.tokenizer, n_vocab)

    def _network_of(self, drafting: TextGeneration) -> Network:
        if drafting.tokenizer.to_json() != self.tokenizer.to_json():
            raise UserError(f"{drafting.name} has a different tokenizer from {self.name}: expected the same")
        if (kind := drafting.network.config.kind) != "ngram":
            raise UserError(f"{drafting.name} is of kind {kind}: `draft` expects an n-gram model")
        return drafting.network

    def _is_uncut(self, text: Generated, ids: list[int]) -> bool:
        """Whether the text contains all its tokens: no stop string has cut it."""
        return Detokenizer(self.tokenizer, prompt=ids).push_all(text.sampled, "length") == text
