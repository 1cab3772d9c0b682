"""The trace of a transformer: every site by name, and its analyses as methods.

Shapes, for one sequence: T positions, C features, V tokens in the vocabulary; a batch has B in front.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.attribution import Attribution, attribute_logit
from clearhead.inspect.block_views import BlockView, Parts
from clearhead.inspect.comparison import Comparison, align
from clearhead.inspect.gradients import SiteGradients
from clearhead.inspect.lens import Lens
from clearhead.inspect.paths import PathHop, follow_path
from clearhead.inspect.residual_trace import ResidualTrace
from clearhead.inspect.saliency import Objective, attribute_inputs, make_objective, site_gradients
from clearhead.inspect.sites import parse_site
from clearhead.inspect.sweep import sweep
from clearhead.inspect.verification import verify
from clearhead.summary_table import plural


class Trace(ResidualTrace):
    """The result of inspecting a transformer on a text."""

    _gradients: tuple[Objective, SiteGradients] | None = None  # those of the last objective

    def __repr__(self) -> str:
        edited = f", {plural(len(self.edits.made), 'edit')}" if self.edits.made else ""
        positions, sites = plural(len(self), "position"), plural(len(self.sites()), "site")
        return f"Trace({self._describe_text()}: {positions}, {sites}{edited})"

    @property
    def block(self) -> Parts[BlockView]:
        return Parts("block", (BlockView(self, i) for i in range(self.config.n_block)))

    def sweep(self, over: str, measure: Callable[[Trace], float], patch_from: Trace | None = None) -> Tensor:
        """Apply `measure` to every variant of this trace; variants run in batches.

        Over "head", each variant ablates the output of one head, or patches it from another trace: blocks ×
        heads. Over "block × position", each does so for the input of one block at one position: blocks ×
        positions.
        """
        return sweep(self, over, measure, patch_from)

    @torch.no_grad()
    def verify(self) -> float:
        """Return the largest relative error ‖difference‖/‖value‖ of any token.

        Recomposes each block from its steps and the logits from the final residual stream, and compares
        both with what the model computed. Returns NaN if any value is NaN.
        """
        return verify(self)

    def lens(self) -> Lens:
        """Return the logit lens: the prediction after each block."""
        self.check_single()
        return Lens(self)

    def attribute(
        self,
        token: str | int,
        position: int = -1,
        through: Sequence[PathHop] = (),
        against: str | int | None = None,
    ) -> Attribution:
        """Decompose a token's logit at a position by head, feed-forward layer, embedding and bias.

        The scale of the final norm is treated as constant; the parts sum to the logit. `through` follows a
        path backward: each (block, head, position) takes what that head moves from a position it attends
        to, and decomposes it by what was written to the residual stream there, with the attention weights
        treated as constant. `against` names a second token: the parts are then those of the difference between
        the two logits, and positive parts favor `token`.
        """
        self.check_single()
        token, position = self.token_id(token), self.check_position(position)
        other = None if against is None else self.token_id(against)
        with torch.set_grad_enabled(self.grad):
            if not through:
                return attribute_logit(self, token, position, other)
            return follow_path(self, token, position, through, other).attribution()

    def gradient(
        self,
        site: str,
        of: str = "logit",
        token: str | int | None = None,
        position: int = -1,
        against: str | int | None = None,
    ) -> Tensor:
        """Return the gradient of a logit with respect to a site, in the shape of the site.

        The logit is that of `token` (default: the most likely one) after `position`, minus that of `against` if given.
        `of` may also be probability, log_probability, or loss (that of the text itself). The gradient at a site shows
        how that number changes if `edit` changes the site's value and everything after it is recomputed.
        """
        objective = make_objective(self, of, token, position, against)
        place = parse_site(site, self.config)
        if self._gradients is None or self._gradients[0] != objective:
            self._gradients = objective, site_gradients(self, objective)
        return self._gradients[1].read(place)[0]

    def attribute_inputs(
        self,
        token: str | int,
        position: int = -1,
        method: str = "gradient_x_input",
        site: str = "embedding",
        against: str | int | None = None,
        points: int = 32,
        baseline: float | Tensor = 0.0,
    ) -> Attribution:
        """Attribute a token's logit to the positions of a site, by default to the tokens of the text.

        `gradient_x_input` multiplies the value, minus the baseline, by the gradient: a linear approximation.
        `integrated_gradients` takes the mean gradient at `points` points on the straight path from the baseline
        to the value: the parts sum to the difference between the logits at its two ends, up to the error of the
        integral.
        """
        objective = make_objective(self, "logit", token, position, against)
        return attribute_inputs(self, objective, site, method, points, baseline)

    def compare(self, other: Trace) -> Comparison[Trace]:
        """Align the tokens of this trace and another, and compare the two at every site.

        Both models must have the same sites.
        """
        if not isinstance(other, Trace):
            raise UserError(f"cannot compare with an object of type {type(other).__name__}: expected a trace")
        for trace in (self, other):
            trace.check_single()
        if self.sites() != other.sites():
            message = "the two models have different sites: compare models of the same shape"
            raise UserError(message, "different_sites")
        pairs = align(self.pieces[0], other.pieces[0])
        if not pairs:
            message = "the two texts have no token in common: nothing can be compared"
            raise UserError(message, "nothing_in_common")
        return Comparison(self, other, pairs)

    def vector(self, word: str, block: int | None = None, occurrence: int | None = None) -> Tensor:
        """Return the contextual vector of a word at the input of a block, or at `final` if no block is given.

        At block 0, it depends on no other token; the site `embedding` holds the static vector.
        """
        name = "final" if block is None else f"block.{block}.input"
        return self.read(name, rows=self.position_of(word, occurrence))[0]
