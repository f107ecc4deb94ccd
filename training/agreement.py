"""Do generator and trainer mean the same model? Compared on the first samples, before anything is learned from them.

A wrong temperature, weights that never reached the generator or a different precision show as log-probabilities that
disagree, and as nothing else: the run goes on and learns from samples of another policy. On a GPU with vLLM the
generator's own figures are compared by TRL (``sampling/sampling_logp_difference/mean``); without it a few samples are
drawn with the generator's logits kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oracle.errors import TrainingError
from training.encode import prompt_ids

if TYPE_CHECKING:
    from transformers import TrainerCallback
    from trl import GRPOTrainer

VLLM_FIGURE = "sampling/sampling_logp_difference/mean"
PROMPTS, TOKENS = 8, 64


def logp_difference(trainer: GRPOTrainer, prompts: Sequence[Any]) -> float:
    """Mean |log-probability in generation - in training| of sampled tokens, in nats.

    Parameters
    ----------
    trainer : GRPOTrainer
        Generates with transformers, not vLLM.
    prompts : sequence of chat messages
        A few; up to 64 tokens are sampled for each.
    """
    import torch

    tokenizer = trainer.processing_class
    model = trainer.accelerator.unwrap_model(trainer.model)
    asked = tokenizer.pad({"input_ids": prompt_ids(tokenizer, prompts)}, padding_side="left", return_tensors="pt")
    asked = asked.to(model.device)
    training, start = model.training, asked["input_ids"].shape[1]
    with torch.random.fork_rng(), torch.no_grad():
        model.eval()
        written = model.generate(
            **asked,
            generation_config=trainer.generation_config,
            max_new_tokens=min(TOKENS, trainer.max_completion_length),
            output_scores=True,
            return_dict_in_generate=True,
        )
        said = written.sequences[:, start:]
        scores = torch.stack(written.scores, dim=1).float().log_softmax(dim=-1)
        generated = scores.gather(-1, said[:, :, None])[:, :, 0]
        ends = torch.isin(said, torch.tensor(trainer.eos_token_ids, device=said.device)).int()
        counted = (ends.cumsum(dim=1) - ends) == 0  # up to and with the first end of turn
        seen = torch.cat([asked["attention_mask"], counted.to(asked["attention_mask"].dtype)], dim=1)
        trained, _, _ = trainer._get_per_token_logps_and_entropies(
            trainer.model, written.sequences, seen, said.shape[1]
        )
        model.train(training)
    return float((generated - trained.float())[counted].abs().mean())


def agreement_callback(trainer: GRPOTrainer, prompts: Sequence[Any], tolerance: float) -> TrainerCallback:
    """The callback that raises a TrainingError at the start of a run whose generator and trainer disagree."""
    from transformers import TrainerCallback

    def check(difference: float) -> None:
        if not difference <= tolerance:
            raise TrainingError(
                f"log-probabilities of generator and trainer differ by {difference:.3g} nats on average on the first "
                f"samples, beyond logp_tolerance {tolerance:g}: temperature, precision or weights are not the same; "
                "on a GPU set grpo.vllm_importance_sampling_correction and compare dtype and vLLM release"
            )

    class AgreementCallback(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if not trainer.use_vllm and state.global_step == 0:
                check(logp_difference(trainer, prompts[:PROMPTS]))

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            figures = trainer._metrics["train"].get(VLLM_FIGURE) or []
            if trainer.use_vllm and state.global_step == 1 and figures:
                check(figures[0])

    return AgreementCallback()
