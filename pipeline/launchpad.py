"""What the launchpad offers: every setting of the Global Land Manager and of training, and nothing else.

The fields, their descriptions and ranges are taken from :class:`oracle.glm_config.GLMConfig` and
:class:`training.config.TrainingConfig`. A field left out stays as the landscape's recipe or the training profile says.
Both are resources, which Dagster prepares before the first step: a wrong value fails before anything runs.
"""

from __future__ import annotations

import json
import os
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import dagster as dg
from pydantic import BaseModel, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from oracle.errors import ConfigurationError, LandoracleError
from oracle.glm_config import GLMConfig
from oracle.recipe import explain
from pipeline.trainer_settings import refuse_unknown_settings
from pipeline.workspace import Workspace
from training.client import Client, LocalClient, SlurmClient
from training.config import Stage, TrainingConfig, load_profile
from training.slurm import load_slurm

BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


class Launcher(StrEnum):
    """Where a training step runs."""

    local = "local"
    slurm = "slurm"


def _fields(model: type[BaseModel], *but: str) -> dict[str, Any]:
    """The fields of a pydantic model as optional ones that Dagster can show."""
    return {
        name: (_shown_type(field.annotation, name), _shown_field(field, name))
        for name, field in model.model_fields.items()
        if name not in but
    }


def _shown_field(field: FieldInfo, name: str) -> Any:
    nested = _section(field.annotation)
    bounds = _bounds(field.metadata) or ", ".join(filter(None, map(_bounds_of, get_args(field.annotation))))
    parts = [field.description or name.replace("_", " "), bounds]
    text = "; ".join(filter(None, parts))
    return Field(default_factory=_config(nested, name), description=text) if nested else Field(None, description=text)


def _shown_type(annotation: Any, name: str) -> Any:
    if nested := _section(annotation):
        return _config(nested, name)
    kind = _without_none(annotation)
    if get_origin(kind) is Literal:
        return _choice(name, get_args(kind)) | None
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _choice(name, [member.value for member in kind]) | None
    if kind in (bool, int, float, str):
        return kind | None
    if get_origin(kind) is dict:
        number = _without_none(get_args(kind)[1]) in (int, float)
        return dict[str, float] | None if number else dict[str, Any] | None
    return Any


def _choice(name: str, values: Iterable[Any]) -> Any:
    return Enum(f"{name}_choice", {str(value): value for value in values})


_made: dict[tuple[type[BaseModel], str], type[dg.Config]] = {}


def _config(model: type[BaseModel], name: str) -> type[dg.Config]:
    if (model, name) not in _made:
        _made[model, name] = create_model(f"{model.__name__}Settings", __base__=dg.Config, **_fields(model))
    return _made[model, name]


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) is Annotated:
        return _without_none(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        rest = [a for a in get_args(annotation) if a is not type(None)]
        return _without_none(rest[0]) if len(rest) == 1 else Any
    return annotation


def _section(annotation: Any) -> type[BaseModel] | None:
    kind = _without_none(annotation)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _bounds(metadata: list[Any]) -> str:
    said = [f"{word} {getattr(m, sign):g}" for m in metadata for sign, word in BOUNDS.items() if hasattr(m, sign)]
    return " and ".join(said)


def _bounds_of(annotation: Any) -> str:
    """Of an ``Annotated`` value in a dict or an optional, where pydantic keeps them in a nested FieldInfo."""
    if get_origin(annotation) is not Annotated:
        return ""
    found = [m for part in get_args(annotation)[1:] for m in getattr(part, "metadata", [part])]
    return _bounds(found)


def _given(config: dg.Config, but: tuple[str, ...] = ()) -> dict[str, Any]:
    """What was set: nested, without what was left out, choices by their values."""
    values: dict[str, Any] = {}
    for name in type(config).model_fields:
        value = getattr(config, name, None)
        if isinstance(value, dg.Config):
            value = _given(value) or None
        if value is not None and name not in but:
            values[name] = value.value if isinstance(value, Enum) else value
    return values


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    both = dict(base)
    for key, value in changes.items():
        old = both.get(key)
        both[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return both


def _dotted(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}={json.dumps(value)}"


_GLMFields: Any = create_model("GLMFields", __base__=dg.ConfigurableResource, **_fields(GLMConfig))
_TrainingFields: Any = create_model(
    "TrainingFields", __base__=dg.ConfigurableResource, **_fields(TrainingConfig, "profile")
)


class GLM(_GLMFields):
    """Settings of the Global Land Manager that win over those of a landscape's recipe."""

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Refuse values out of range."""
        self.applied(GLMConfig())

    def applied(self, recipe: GLMConfig) -> GLMConfig:
        """The recipe's settings with those given on top.

        Raises
        ------
        Failure
            Where a value is out of range; names the setting.
        """
        try:
            return GLMConfig.model_validate(_merged(recipe.model_dump(mode="json"), _given(self)))
        except ValidationError as error:
            raise _refused("glm", explain(error)) from error


class Training(_TrainingFields):
    """A training profile, and settings that win over it."""

    profile: str = Field(
        default_factory=lambda: os.environ.get("LANDORACLE_PROFILE", "pocket"),
        description="pocket, smollm2, gpu, or the path of a YAML file",
    )
    launcher: Launcher = Field(default=Launcher.local, description="local: this machine; slurm: jobs of a cluster")
    cluster: str | None = Field(default=None, description="slurm only: YAML file with the section `slurm`")

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Refuse an unknown profile, unknown settings and values out of range."""
        try:
            refuse_unknown_settings(self.config())
            self.client()
        except LandoracleError as error:
            raise _refused("training", str(error)) from error

    @property
    def overrides(self) -> list[str]:
        """The settings given, each as ``key=value`` of the command line."""
        return list(_dotted(_given(self, ("profile", "launcher", "cluster"))))

    def config(self) -> TrainingConfig:
        """The whole configuration."""
        return load_profile(self.profile, self.overrides)

    def train(self, stage: Stage, workspace: Workspace, on_line: Callable[[str], None]) -> None:
        """Train a stage on the workspace's dataset, where ``launcher`` says."""
        self.client().train(
            stage, workspace.dataset, self.profile, workspace.models, overrides=self.overrides, on_line=on_line
        )

    def client(self) -> Client:
        """What launches a training step."""
        if self.launcher is Launcher.local:
            if self.cluster:
                raise ConfigurationError("cluster is for launcher slurm: set that, or leave cluster out")
            return LocalClient()
        return SlurmClient(load_slurm(Path(self.cluster) if self.cluster else None))


def _refused(what: str, reason: str) -> dg.Failure:
    return dg.Failure(
        description=f"{what}: {reason}. Nothing was run: correct it in the launchpad.", allow_retries=False
    )


def as_settings(overrides: Sequence[str]) -> dict[str, Any]:
    """``["grpo.beta=0.01"]`` as the launchpad's nested settings.

    Raises
    ------
    ConfigurationError
        Where one is not written key=value.
    """
    import yaml

    values: dict[str, Any] = {}
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ConfigurationError(f"{text!r}: an override is written key=value, e.g. grpo.beta=0.04")
        *parents, leaf = key.strip().split(".")
        section = values
        for parent in parents:
            section = section.setdefault(parent, {})
        section[leaf] = _number(yaml.safe_load(value))
    return values


def _number(value: Any) -> Any:
    """YAML 1.1 reads 1e-4 as text."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value
