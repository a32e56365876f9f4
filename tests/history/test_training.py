"""What trainers are given. How a transcript makes it is tested with transcripts."""

import attrs
import pytest

from harmony_stream.history.training import TrainingView


def test_a_view_is_frozen_and_equal_by_value():
    view = TrainingView([200006, 35644], [0, 1])
    assert view == TrainingView(tokens=[200006, 35644], loss_mask=[0, 1])
    assert view != TrainingView([200006, 35644], [1, 1])
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        view.tokens = []
