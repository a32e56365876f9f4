"""A transcript as training data."""

from __future__ import annotations

import attrs


@attrs.frozen
class TrainingView:
    """All tokens as they were prompted and sampled, with `<|return|>`.

    Attributes:
        tokens: the token ids.
        loss_mask: one number for each token: 1 if the model sampled it, else 0.
    """

    tokens: list[int]
    loss_mask: list[int]
