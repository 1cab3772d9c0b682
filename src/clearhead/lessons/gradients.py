"""The gradients of a training step's loss by name: with respect to every site, and to every weight."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor, nn

from clearhead.errors import UserError, guess
from clearhead.inspect.gradients import SiteGradients
from clearhead.inspect.sites import Site, SiteError, all_sites, parse_site, site_shape
from clearhead.inspect.weights import view_weight, weight, weight_names
from clearhead.lessons.recorder import has_adapters
from clearhead.lessons.uses import Uses
from clearhead.model.transformer import Transformer
from clearhead.training.lora import LoRALinear

PRODUCTS = ("QK", "OV")  # of two weights, with no numbers of their own


class Gradients(Mapping[str, Tensor]):
    """Reads like a dict of site and weight names. Each gradient is computed when it is read.

    The gradient of a site has the site's shape; that of a weight, the shape that `model.weight` returns.
    """

    def __init__(self, network: Transformer, parts: list[SiteGradients], single: bool) -> None:
        self.network, self.parts, self.single = network, parts, single
        self.config = network.config
        self.ids = torch.cat([part.forward.ids for part in parts])
        self.positions = torch.cat([part.forward.positions.expand_as(part.forward.ids) for part in parts])
        self._names = weight_names(self.config)

    @property
    def uses(self) -> Uses:
        return Uses(self.config, self.ids, self.positions, self.site_value, self.by_site)

    def __getitem__(self, name: str) -> Tensor:
        if name in self._names:
            return self.by_weight(name)
        return self._shaped(self.by_site(self._parse(name, self._own_names)))

    def __contains__(self, name: object) -> bool:
        return name in set(self)

    def __iter__(self) -> Iterator[str]:
        """The names of all sites, and of all weights but products that have no gradient of their own."""
        yield from map(str, all_sites(self.config))
        yield from self._own_names

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Gradients({len(all_sites(self.config)):,} sites, {len(self._names):,} weights)"

    def value(self, name: str) -> Tensor:
        """The value of a site in the forward pass of the step."""
        if name in self._names:
            raise SiteError(f"{name} is a weight, not a site: its value is lesson.model.weight({name!r})")
        return self._shaped(self.site_value(self._parse(name)))

    def shape(self, name: str) -> list[int]:
        """The shape of the gradient with respect to a site of one text, or to a weight."""
        if name in self._names:
            return list(weight(self.network, name).shape)
        return site_shape(str(self._parse(name, self._own_names)), self.config, self.ids.shape[1])

    def by_site(self, site: Site) -> Tensor:
        """The gradient with respect to a site of the whole batch: B T …."""
        return torch.cat([part.read(site) for part in self.parts])

    def site_value(self, site: Site) -> Tensor:
        return torch.cat([part.value(site) for part in self.parts])

    def by_weight(self, name: str) -> Tensor:
        """The gradient that training computed or, for a frozen or adapted weight, that it would compute."""
        parameter = find_parameter(self.network, name)
        if parameter is not None and parameter.grad is not None:
            return part_of(self.network, parameter, name, parameter.grad)
        if name == "unembedding.W" and self.config.tied:
            return self.by_weight("embedding.W").T
        rows = self.config.n_context if name == "position.W" else self.config.n_vocab
        return torch.stack([use.total(rows) for use in self.uses.of(name)]).sum(0)

    def weight_parts(self, name: str, row: int | None, column: int) -> Tensor:
        """What each position of the batch adds to one number of a weight's gradient: B T."""
        if name == "unembedding.W" and self.config.tied:
            assert row is not None
            name, row, column = "embedding.W", column, row
        return torch.stack([use.parts(row, column) for use in self.uses.of(name)]).sum(0)

    @property
    def _own_names(self) -> list[str]:
        """The weights that have a gradient: all but products whose factors the model also uses separately."""
        bilinear = self.config.position != "rotary" and not self.config.qk_norm
        return [name for name in self._names if bilinear or not name.endswith(".QK")]

    def _parse(self, name: str, weights: Iterable[str] = ()) -> Site:
        """The site of this name. An error suggests a similar name among `weights`."""
        try:
            return parse_site(name, self.config)
        except SiteError as error:
            meant = guess(str(name), weights)
            if not meant:
                raise
            message = f"{name!r} is neither a site nor a weight{meant}"
            raise SiteError(message, "site_unknown", site=str(name)) from error

    def _shaped(self, tensor: Tensor) -> Tensor:
        return tensor[0] if self.single else tensor


def refuse_product(name: str, what: str) -> None:
    """Raise an error that names the two weights to ask for instead of their product."""
    if name.endswith(PRODUCTS):
        first, second = ("W_Q", "W_K") if name.endswith("QK") else ("W_V", "W_O")
        head = name[: -len("QK")]
        raise UserError(
            f"{name} is the product of two weights and has no {what} of its own: ask for {head}{first} or "
            f"{head}{second}"
        )


def find_parameter(network: Transformer, name: str) -> nn.Parameter | None:
    """The parameter that a weight is part of; None for a product, and for a matrix with an adapter."""
    if name.endswith(PRODUCTS):
        return None
    whole = _whole(network, name)
    if isinstance(whole, nn.Parameter):
        return whole
    assert has_adapters(network)
    return None


def find_adapter(network: Transformer, name: str) -> LoRALinear:
    """The layer with an adapter whose matrix the weight is part of."""
    whole = _whole(network, name)
    layers = (each for each in network.modules() if isinstance(each, LoRALinear))
    return next(each for each in layers if each.weight is whole)


def _whole(network: Transformer, name: str) -> Tensor:
    """The tensor that a weight is a view of."""
    with torch.enable_grad():
        view = view_weight(network, name)
    return view if view._base is None else view._base


def part_of(network: Transformer, parameter: nn.Parameter, name: str, value: Tensor) -> Tensor:
    """A view of the part that belongs to the weight, in a tensor shaped like its parameter."""
    view, whole = weight(network, name), value.detach().contiguous()
    assert parameter.is_contiguous()
    offset = view.storage_offset() - parameter.storage_offset() + whole.storage_offset()
    return whole.as_strided(view.size(), view.stride(), offset)
