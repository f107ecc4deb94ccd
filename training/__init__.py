"""Training: rewards, SFT, GRPO, evaluation and baselines. Heavy libraries are imported inside functions."""
