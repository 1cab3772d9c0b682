"""Our own family, for networks that no other architecture can express. Only Clearhead reads its names."""

from __future__ import annotations

from typing import Any

from clearhead.errors import UserError
from clearhead.formats.families.family import Family, Named, Tensors, need
from clearhead.model.config import Config
from clearhead.networks import SingleConfig, config_from_json


def write_config(config: SingleConfig) -> dict[str, Any]:
    return {"architectures": [f"Clearhead{config.kind.title()}"], "config": config.to_json()}


def read_config(settings: dict[str, Any]) -> SingleConfig:
    config = need(settings, "config")
    if not isinstance(config, dict):
        raise UserError(f"config = {config!r} in config.json: expected the settings of a network")
    return config_from_json(config)


def same_tensors(tensors: Tensors, config: SingleConfig) -> Named:  # noqa: ARG001 (every family takes a config)
    return dict(tensors)


def holds(config: Config) -> bool:  # noqa: ARG001
    return True


FAMILY = Family("clearhead", "", holds, write_config, read_config, same_tensors, same_tensors)
