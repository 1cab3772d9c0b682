"""Labs: what there is, what can be set, and what came out."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from clearhead.api.base import Asked, Name, Number, Wire
from clearhead.labs.lab import Lab, Result, Setting

MOST_SETTINGS = 32
SettingText = Annotated[str, StringConstraints(max_length=2000)]
Given = bool | int | Number | SettingText
Value = bool | int | float | str | None
KINDS: dict[type, Literal["switch", "whole", "number", "text"]] = {
    bool: "switch",
    int: "whole",
    float: "number",
    str: "text",
}


class LabSetting(Wire):
    name: str
    kind: Literal["switch", "whole", "number", "text"]
    default: Value
    says: str
    least: float | None
    most: float | None
    choices: list[str]

    @classmethod
    def of(cls, setting: Setting) -> LabSetting:
        return cls(
            name=setting.name,
            kind=KINDS[type(setting.default)],
            default=setting.default,
            says=setting.says,
            least=None if setting.least is None else float(setting.least),
            most=None if setting.most is None else float(setting.most),
            choices=list(setting.choices),
        )


class LabDetails(Wire):
    """What it shows, and the question it ends with."""

    name: str
    title: str
    says: str
    question: str
    settings: list[LabSetting]
    model: str | None = Field(description="The model it is meant for; none where it looks into none.")
    long: bool = Field(description="It trains: seconds to minutes.")

    @classmethod
    def of(cls, lab: Lab) -> LabDetails:
        return cls(
            name=lab.name,
            title=lab.title,
            says=lab.says,
            question=lab.question,
            settings=[LabSetting.of(setting) for setting in lab.settings],
            model=lab.model,
            long=lab.long,
        )


class LabList(Wire):
    labs: list[LabDetails]


class LabRequest(Asked):
    """A lab by name; what is not set is as usual."""

    name: Name = Field(examples=["attention"])
    model: Name | None = Field(None, description="For a lab that looks into one: one of /v1/models.")
    settings: dict[Name, Given] = Field({}, max_length=MOST_SETTINGS, examples=[{"boost": 10}])


class LabTable(Wire):
    """Numbers or words; shaded, they are drawn as colours too."""

    kind: Literal["table"]
    name: str
    rows: list[str]
    columns: list[str]
    values: list[list[Value]]
    shaded: bool


class LabLines(Wire):
    """A line for each name, and around it how far apart seeds lie."""

    kind: Literal["lines"]
    name: str
    across: str
    up: str
    x: list[float]
    lines: dict[str, list[float | None]]
    spread: dict[str, list[list[float | None]]]
    logarithmic: bool


class LabPoints(Wire):
    """Places on a map."""

    kind: Literal["points"]
    name: str
    labels: list[str]
    groups: list[str]
    places: list[list[float | None]]


class LabFound(Wire):
    name: str
    value: Value


class LabAnswer(Wire):
    lab: str
    settings: dict[str, Value]
    found: list[LabFound] = Field(description="The numbers that its claim stands on.")
    parts: list[Annotated[LabTable | LabLines | LabPoints, Field(discriminator="kind")]]

    @classmethod
    def of(cls, result: Result) -> LabAnswer:
        plain: dict[str, Any] = result.to_dict()
        found = [{"name": name, "value": value} for name, value in plain["found"].items()]
        return cls.model_validate({**plain, "found": found})
