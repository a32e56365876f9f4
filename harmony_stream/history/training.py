"""A transcript as a model is trained on it."""

from __future__ import annotations

import attrs


@attrs.frozen
class TrainingView:
    """All tokens as they were prompted and sampled, `<|return|>` included.

    Attributes:
        tokens: their ids.
        loss_mask: as long; 1 for those that the model sampled, 0 for the others.
    """

    tokens: list[int]
    loss_mask: list[int]
