"""The list of labs, their settings and their results."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from clearhead.api.base import Name, Number, RequestModel, WireModel
from clearhead.labs.lab import Lab, Result, Setting

MAX_SETTINGS = 32
SettingText = Annotated[str, StringConstraints(max_length=2000)]
SettingValue = bool | int | Number | SettingText
WireValue = bool | int | float | str | None
KINDS: dict[type, Literal["switch", "integer", "number", "text"]] = {
    bool: "switch",
    int: "integer",
    float: "number",
    str: "text",
}


class LabSetting(WireModel):
    name: str
    kind: Literal["switch", "integer", "number", "text"]
    default: WireValue
    description: str
    least: float | None
    most: float | None
    choices: list[str]
    longest: int | None = Field(
        description="The maximum number of characters in free text; null for other settings."
    )
    is_prompt: bool = Field(description="Whether the setting is a text for the model to read.")

    @classmethod
    def of(cls, setting: Setting) -> LabSetting:
        return cls(
            name=setting.name,
            kind=KINDS[type(setting.default)],
            default=setting.default,
            description=setting.description,
            least=None if setting.least is None else float(setting.least),
            most=None if setting.most is None else float(setting.most),
            choices=list(setting.choices),
            longest=setting.longest if isinstance(setting.default, str) and not setting.choices else None,
            is_prompt=setting.is_prompt,
        )


class LabDetails(WireModel):
    """A lab, and the question it ends with."""

    name: str
    title: str
    description: str
    question: str
    settings: list[LabSetting]
    model: str | None = Field(description="The model that the lab is designed for; null if it uses none.")
    long: bool = Field(description="Whether the lab trains a model, which takes seconds to minutes.")

    @classmethod
    def of(cls, lab: Lab) -> LabDetails:
        return cls(
            name=lab.name,
            title=lab.title,
            description=lab.description,
            question=lab.question,
            settings=[LabSetting.of(setting) for setting in lab.settings],
            model=lab.model,
            long=lab.long,
        )


class LabList(WireModel):
    labs: list[LabDetails]


class LabRequest(RequestModel):
    """A lab by name; omitted settings take their default values."""

    name: Name = Field(examples=["attention"])
    model: Name | None = Field(None, description="A model listed by /v1/models, for a lab that inspects one.")
    settings: dict[Name, SettingValue] = Field({}, max_length=MAX_SETTINGS, examples=[{"boost": 10}])


class LabTable(WireModel):
    """A table of numbers or strings; if shaded, its numbers are also drawn as colors."""

    kind: Literal["table"]
    name: str
    rows: list[str]
    columns: list[str]
    values: list[list[WireValue]]
    shaded: bool


class LabLines(WireModel):
    """A line for each name, with its range over several seeds."""

    kind: Literal["lines"]
    name: str
    across: str
    up: str
    x: list[float]
    lines: dict[str, list[float | None]]
    spread: dict[str, list[list[float | None]]]
    logarithmic: bool


class LabPoints(WireModel):
    """Labeled points on a plane."""

    kind: Literal["points"]
    name: str
    labels: list[str]
    groups: list[str]
    places: list[list[float | None]]


class LabFinding(WireModel):
    name: str
    value: WireValue


class LabResponse(WireModel):
    lab: str
    settings: dict[str, WireValue]
    findings: list[LabFinding] = Field(description="The numbers that support the lab's claim.")
    parts: list[Annotated[LabTable | LabLines | LabPoints, Field(discriminator="kind")]]

    @classmethod
    def of(cls, result: Result) -> LabResponse:
        plain: dict[str, Any] = result.to_dict()
        findings = [{"name": name, "value": value} for name, value in plain["findings"].items()]
        return cls.model_validate({**plain, "findings": findings})
