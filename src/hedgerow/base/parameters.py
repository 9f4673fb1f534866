# SPDX-License-Identifier: Apache-2.0
"""Parameters: what all settings, of models, sensors, scenes and files, are made of.

A parameter is declared once: its name with the unit, bounds, default, and a docstring under it. The check of what a
user gives, the sentence that refuses it, and the help that lists it, all come from there. This is the one place that
turns what pydantic finds wrong into sentences.

    class VoxelParameters(Parameters):
        side_m: Positive = 0.3

    VoxelParameters.parse({"side_m": -1}, "model voxel")  # side_m: input should be greater than 0, found -1
"""

import difflib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Self, cast, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from hedgerow.errors import FileError, InputError, Location, ParameterError, shown

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""0 is none, 1 is all."""


def _require_not_tiny(value: float) -> float:
    if 0 < value < 1e-6:
        raise ValueError(f"{value:g} is less than 0.000001, the least that is of use")
    return value


Place = Annotated[float, Field(ge=-1e8, le=1e8, allow_inf_nan=False)]
"""A map coordinate; a hundred thousand kilometres hold those of every projection [m]."""
Length = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False), AfterValidator(_require_not_tiny)]
"""A length that something has: up to a thousand kilometres, from a micrometre on [m]."""
Extent = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False), AfterValidator(_require_not_tiny)]
"""A length that may be 0 [m]."""
Factor = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False), AfterValidator(_require_not_tiny)]
"""A factor of a size."""
Degrees = Annotated[float, Field(ge=-36_000, le=36_000, allow_inf_nan=False)]
"""An angle, up to a hundred turns either way [deg]."""


class Row(NamedTuple):
    """One parameter, as help shows it."""

    name: str
    default: str
    meaning: str


class Parameters(BaseModel):
    """Frozen; unknown names are refused; the docstring under a field is its meaning."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @classmethod
    def parse(cls, values: object, where: str) -> Self:
        """Check values given by name.

        Args:
            values: a table of values; groups of parameters are tables in it.
            where: what they are parameters of, for the error: "compare", "model voxel".

        Raises:
            ParameterError: an InputError that knows the place; an unknown name, or a value that cannot be.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise _refusal(cls, values, error, where) from None

    @classmethod
    def parse_from(cls, values: object, path: object, table: str = "") -> Self:
        """Check values that a file holds.

        Args:
            values: a table of values; groups of parameters are tables in it.
            path: the file, for the error.
            table: the table in the file that they come from. Default: they are all of it.

        Raises:
            FileError: an unknown name, or a value that cannot be; names the file and the field.
        """
        try:
            return cls.parse(values, table or "the file")
        except ParameterError as error:
            place = (*((table,) if table else ()), *error.location)
            raise FileError(f"{path}: {ParameterError(place, error.said) if place else error.said}") from None

    @classmethod
    def rows(cls) -> list[Row]:
        """Return name, default and meaning of every parameter, for help."""
        return [
            Row(
                name,
                "required" if field.is_required() else str(field.get_default(call_default_factory=True)),
                " ".join((field.description or "").split()),
            )
            for name, field in cls.model_fields.items()
        ]


class StrictParameters(Parameters):
    """Parameters whose values must be of their type already: no texts for numbers, no fractions for counts."""

    model_config = ConfigDict(strict=True)


def _refusal(kind: type[BaseModel], values: object, error: ValidationError, where: str) -> ParameterError:
    """Turn the first of pydantic's complaints into one sentence."""
    errors = error.errors(include_url=False)
    first = errors[0]
    location = _place(first["loc"], values, first["type"] == "missing")
    context = first.get("ctx", {})
    own = context.get("error")
    match first["type"]:
        case "missing":
            said = "missing" + _expected(kind, location)
        case "extra_forbidden":
            said = _unknown(kind, location, where)
        case "value_error" if isinstance(own, InputError):
            # Raised by a check of the model itself, which sees the field from its own table.
            inner = own.location if isinstance(own, ParameterError) else (own.field,)
            location, said = (*location, *inner), own.said
        case "value_error":
            said = str(own)
        case "union_tag_invalid" | "union_tag_not_found":
            location = (*location, str(context["discriminator"]).strip("'"))
            said = "missing"
            if "tag" in context:
                said = f"expected one of {context['expected_tags']}, found '{context['tag']}'"
        case "model_type" | "dict_type":
            said = f"expected a table of values by name, found {shown(first['input'])}"
        case _:
            said = f"{first['msg'][0].lower()}{first['msg'][1:]}, found {shown(first['input'])}"
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    return ParameterError(location, said + more, where)


def _place(location: Location, values: object, is_missing: bool) -> tuple[int | str, ...]:
    """Leave out pydantic's notes of which kind of several it tried; they lead to nothing in the values."""
    place: list[int | str] = []
    here = values
    for n, part in enumerate(location, 1):
        if isinstance(here, Mapping) and part in here:
            here = cast("Mapping[Any, Any]", here)[part]
        elif isinstance(here, Sequence) and isinstance(part, int) and part < len(cast("Sequence[Any]", here)):
            here = cast("Sequence[Any]", here)[part]
        elif not (is_missing and n == len(location)):
            continue
        place.append(part)
    return tuple(place)


def _expected(kind: type[BaseModel], location: Location) -> str:
    """Say what a missing field means."""
    for owner in _tables(kind, location):
        field = owner.model_fields.get(str(location[-1]))
        if field and field.description:
            meaning = " ".join(field.description.split()).rstrip(".")
            return f"; expected: {meaning[0].lower()}{meaning[1:]}"
    return ""


def _unknown(kind: type[BaseModel], location: Location, where: str) -> str:
    """Say what there is instead of a name that is not."""
    owners = _tables(kind, location)
    names = list(dict.fromkeys(name for owner in owners for name in owner.model_fields))
    near = difflib.get_close_matches(str(location[-1]), names, n=2)
    guess = f"did you mean {' or '.join(near)}? " if near else ""
    there = f"it has {', '.join(names)}" if len(owners) == 1 else "leave it out or mend its name"
    return f"{where} has no such parameter; {guess}{there}"


def _tables(kind: type[BaseModel], location: Location) -> list[type[BaseModel]]:
    """Return the models that may stand around a place; several, if it is one of several kinds."""
    kinds = [kind]
    for part in location[:-1]:
        inner = [owner.model_fields[part].annotation for owner in kinds if part in owner.model_fields]
        # A part that is no field of a model is a key or the number of an entry.
        kinds = [model for annotation in inner for model in _models_in(annotation)] if inner else kinds
    return kinds


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]
