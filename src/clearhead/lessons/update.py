"""The update of one weight in a training step, as a sum of terms.

The optimizer turns the gradient into a change in stages, each of which replaces the direction of the one before. A
stage's term is the difference that it makes, times the learning rate, so the terms sum to the change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.errors import UserError
from clearhead.inspect.weights import weight
from clearhead.lessons.gradients import find_adapter, find_parameter, part_of, refuse_product
from clearhead.lessons.recorder import mirror
from clearhead.model.transformer import Transformer
from clearhead.summary_table import TableCell, html_table, text_table
from clearhead.training.lora import SCALE, LoRALinear
from clearhead.training.muon import Muon, by_shape
from clearhead.training.trainer import Trainer


@dataclass(frozen=True, repr=False)
class Update:
    """What a training step does to one weight. Tensors have the shape of `model.weight(name)`.

    `stages` has the direction after each stage: the gradient, clipped, and so on; the change is minus the learning
    rate times the last of them, plus weight decay and rounding. `terms` are in float64 and sum to `change`.
    """

    name: str
    before: Tensor
    after: Tensor
    learning_rate: float
    weight_decay: float
    stages: dict[str, Tensor]
    terms: dict[str, Tensor]
    state: dict[str, Tensor]  # of the optimizer after the step, such as momentum and second_moment
    epsilon: float | None = (
        None  # what AdamW adds to the square root by which it divides; None for other optimizers
    )
    adapters: dict[str, Update] = field(
        default_factory=dict
    )  # of a matrix with an adapter: those of its A and B

    @property
    def change(self) -> Tensor:
        return self.after.double() - self.before.double()

    def at(self, *index: int) -> dict[str, float]:
        """The old value of one number, the terms of its change, and the new value."""
        try:
            terms = {name: term[index].item() for name, term in self.terms.items()}
            return {"before": self.before[index].item(), **terms, "after": self.after[index].item()}
        except (IndexError, RuntimeError, TypeError):
            shape = "×".join(map(str, self.before.shape))
            raise UserError(f"{self.name} is {shape}: {index} does not name one of its numbers") from None

    def cause(self, *index: int) -> str | None:
        """The term that decides whether one number goes up or down; None if it stays the same.

        `gradient` if the number goes against its gradient; otherwise the stage that turned the direction around, as
        momentum can, or weight decay where it outweighs all stages.
        """
        numbers = self.at(*index)
        change = numbers.pop("after") - numbers.pop("before")
        return None if change == 0 else _find_cause(numbers, change > 0)

    def __repr__(self) -> str:
        return f"Update({self._heading})\n{text_table((), self._rows())}"

    def _repr_html_(self) -> str:
        return html_table(("term", "norm"), self._rows(), self._heading)

    @property
    def _heading(self) -> str:
        return f"{self.name}: a change of norm {self.change.norm().item():.4g}, the sum of {len(self.terms)} terms"

    def _rows(self) -> list[tuple[str, TableCell]]:
        return [(f"  {name}", f"{term.norm().item():.4g}") for name, term in self.terms.items()]


def _find_cause(terms: dict[str, float], goes_up: bool) -> str:
    own = {name: value for name, value in terms.items() if name not in ("weight_decay", "rounding")}
    decay, direction = terms.get("weight_decay", 0.0), math.fsum(own.values())
    decay_agrees = decay != 0 and (decay > 0) == goes_up
    if direction == 0 or (direction > 0) != goes_up:
        return "weight_decay" if decay_agrees else "rounding"
    if decay_agrees and abs(decay) > abs(direction):
        return "weight_decay"
    if "gradient" not in own:  # adapters, whose terms are not stages
        return max(own, key=lambda name: own[name] if goes_up else -own[name])
    cause, total, sign = "gradient", 0.0, 1 if goes_up else -1
    for name, value in own.items():
        agreed, total = total * sign > 0, total + value
        if total * sign > 0 and not agreed:
            cause = name
    return cause


def explain_update(name: str, trainer: Trainer, after: Trainer) -> Update:
    """The update of a weight between two states: before a step, with gradients, and after it, with clipped ones."""
    network, updated = trainer.network, after.network
    assert isinstance(network, Transformer)
    assert isinstance(updated, Transformer)
    old, new = weight(network, name), weight(updated, name)
    refuse_product(name, "update")
    parameter = find_parameter(network, name)
    numbered = dict(zip(network.parameters(), updated.parameters(), strict=True))
    if parameter is None:
        layer = find_adapter(network, name)
        own = {"A": layer.A, "B": layer.B}
        found = {
            key: _explain(
                f"{key} of {name}", each, each.detach(), numbered[each].detach(), trainer, after, numbered
            )
            for key, each in own.items()
        }
        return replace(_adapted(name, network, updated, old, new), adapters=found)

    def view(value: Tensor) -> Tensor:
        return part_of(network, parameter, name, value)

    return _explain(name, parameter, old, new, trainer, after, numbered, view)


def _explain(
    name: str,
    parameter: nn.Parameter,
    old: Tensor,
    new: Tensor,
    trainer: Trainer,
    after: Trainer,
    numbered: dict[nn.Parameter, nn.Parameter],
    view: Callable[[Tensor], Tensor] = torch.clone,
) -> Update:
    """The update of the part of a parameter that `view` selects. `numbered` maps parameters to the updated ones."""
    if not parameter.requires_grad or parameter.grad is None:
        return Update(name, old, new, 0.0, 0.0, {}, {"frozen": torch.zeros_like(old).double()}, {})
    clipped = numbered[parameter].grad
    assert clipped is not None
    optimizer, group = _find(after, numbered[parameter])
    if isinstance(optimizer, Muon):
        stages, state = _explain_muon(parameter, trainer, numbered, group)
    else:
        stages, state = _explain_adamw(optimizer.state[numbered[parameter]], group)
    seen = {
        stage: view(value)
        for stage, value in {"gradient": parameter.grad, "clipping": clipped, **stages}.items()
    }
    rate, decay = float(group["lr"]), float(group["weight_decay"])
    terms, previous = {}, torch.zeros_like(old).double()
    for stage, direction in seen.items():
        terms[stage] = -rate * (direction.double() - previous)
        previous = direction.double()
    terms["weight_decay"] = -rate * decay * old.double()
    terms["rounding"] = new.double() - old.double() - torch.stack(list(terms.values())).sum(0)
    kept = {key: view(each) for key, each in state.items()}
    epsilon = None if isinstance(optimizer, Muon) else float(group["eps"])
    return Update(name, old, new, rate, decay, seen, terms, kept, epsilon)


def _explain_adamw(
    state: dict[str, Tensor], group: dict[str, Any]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """AdamW: the mean of the gradients, then divided by the root of the mean of their squares."""
    beta1, beta2 = group["betas"]
    t = float(state["step"])
    mean = state["exp_avg"].double() / (1 - beta1**t)
    square = state["exp_avg_sq"].double() / (1 - beta2**t)
    stages = {"momentum": mean, "second_moment": mean / (square.sqrt() + group["eps"])}
    return stages, {"momentum": state["exp_avg"], "second_moment": state["exp_avg_sq"]}


def _explain_muon(
    parameter: nn.Parameter,
    trainer: Trainer,
    numbered: dict[nn.Parameter, nn.Parameter],
    group: dict[str, Any],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Muon: repeat its step on copies of the matrices that it processes together, and watch its stages."""
    optimizer, own = _find(trainer, parameter)
    together = next(each for each in by_shape(own["params"]) if any(matrix is parameter for matrix in each))
    copies = [matrix.detach().clone().requires_grad_() for matrix in together]
    settings = {name: value for name, value in group.items() if name != "params"}
    again = Muon(copies, **settings)
    for matrix, copied in zip(together, copies, strict=True):
        copied.grad = numbered[matrix].grad  # type: ignore[index]
        again.state[copied].update({key: each.clone() for key, each in optimizer.state[matrix].items()})
    target = copies[next(i for i, matrix in enumerate(together) if matrix is parameter)]
    stages: dict[str, Tensor] = {}

    def watch(stage: str, matrices: list[Tensor], updates: list[Tensor]) -> None:
        stages[stage] = next(u for m, u in zip(matrices, updates, strict=True) if m is target).clone()

    again.step(watch=watch)
    rows, columns = parameter.shape
    found = {"momentum": stages["nesterov"], "newton_schulz": stages["newton_schulz"]}
    if group["normalize_rows"]:
        found["rows"] = stages["rows"]
    found["shape"] = stages["rows"] * max(1.0, rows / columns) ** 0.5
    state = {"momentum": again.state[target]["momentum"]}
    if group["normalize_rows"]:
        state["second_moment"] = again.state[target]["square"][:, None].expand(rows, columns)
    return found, state


def _adapted(name: str, network: Transformer, updated: Transformer, old: Tensor, new: Tensor) -> Update:
    """A frozen matrix with an adapter: W + s · B A changes with A, with B, and with both."""
    before, after = ([m for m in each.modules() if isinstance(m, LoRALinear)] for each in (network, updated))
    terms: dict[str, Tensor] = {}

    def view(change: Callable[[LoRALinear, LoRALinear], Tensor]) -> Tensor:
        plain = mirror(network, {})
        layers = [module for module in plain.modules() if isinstance(module, LoRALinear)]
        for layer, first, second in zip(layers, before, after, strict=True):
            layer._merged = (layer.A._version, layer.B._version), change(first, second).detach()
        return weight(plain, name)

    terms["adapter_A"] = view(lambda first, second: SCALE * first.B.double() @ (second.A - first.A).double())
    terms["adapter_B"] = view(lambda first, second: SCALE * (second.B - first.B).double() @ first.A.double())
    terms["adapter_AB"] = view(
        lambda first, second: SCALE * (second.B - first.B).double() @ (second.A - first.A).double()
    )
    terms["rounding"] = new.double() - old.double() - torch.stack(list(terms.values())).sum(0)
    return Update(name, old, new, 0.0, 0.0, {}, terms, {})


def _find(trainer: Trainer, parameter: Tensor) -> tuple[torch.optim.Optimizer, dict[str, Any]]:
    """The optimizer of a parameter, and its group."""
    for optimizer in trainer.optimizers:
        for group in optimizer.param_groups:
            if any(each is parameter for each in group["params"]):
                return optimizer, group
    raise AssertionError("a trainable parameter has no optimizer")
