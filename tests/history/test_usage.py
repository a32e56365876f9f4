"""Counts of tokens add up. What is counted where is tested with transcripts."""

from harmony_stream.history.usage import ChannelUsage, TokenUsage


def test_a_channel_has_tokens_of_three_kinds():
    assert ChannelUsage(1, 20, 300).total == 321
    assert ChannelUsage().total == 0


def test_the_total_is_that_of_all_channels_and_of_none():
    usage = TokenUsage({"final": ChannelUsage(1, 2, 3), None: ChannelUsage(special=40)})
    assert usage.total == 46
    assert TokenUsage({}).total == 0
