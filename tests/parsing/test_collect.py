import pickle

import pytest
from hypothesis import given
from strategies import RESERVED, events_of, examples, faults_of, streams, tokens_of

from harmony_stream.parsing.collect import MessageCollector, parse
from harmony_stream.values.events import EndKind, HarmonyParseError, join_deltas
from harmony_stream.values.messages import Role, TextContent
from harmony_stream.vocabulary import Vocabulary


def completion_of(text, **options):
    return parse(tokens_of(text), **options)


# -- Folding events --


def test_a_message_is_given_with_the_event_that_ends_it():
    collector = MessageCollector()
    given = [collector.feed(event) for event in events_of("<|message|>a b<|end|>")]
    assert given[:-1] == [None, None, None]
    assert given[-1] is collector.messages[0]
    assert given[-1].content == [TextContent(text="a b")]


def test_a_collector_holds_messages_ends_and_problems():
    collector = MessageCollector()
    for event in events_of("<|channel|><|message|>a<|end|>b<|start|>user<|message|>c"):
        collector.feed(event)
    assert [message.content[0].text for message in collector.messages] == ["a", "c"]
    assert [end.end for end in collector.ends] == [EndKind.END, EndKind.TRUNCATED]
    assert faults_of(collector.faults) == ["empty_channel", "expected_start"]


def test_what_a_message_has_so_far_is_not_in_the_completion_yet():
    collector = MessageCollector()
    *events, end = events_of("<|message|>a<|end|><|start|>assistant<|message|>b<|end|>")
    for event in events:
        collector.feed(event)
    early = collector.completion()
    collector.feed(end)
    assert len(early.messages) == 1
    assert len(collector.completion().messages) == 2


def test_the_text_of_one_message_does_not_run_into_the_next():
    events = events_of("<|message|>a<|start|>assistant<|message|><|end|>")
    collector = MessageCollector()
    for event in events:
        collector.feed(event)
    assert [message.content[0].text for message in collector.messages] == ["a", ""]


# -- Parsing at once --


def test_parsing_knows_the_role_that_the_prompt_gave():
    assert completion_of("<|message|>a", role="user").messages[0].author.role is Role.USER
    assert (
        completion_of("<|start|>system<|message|>a", role=None).messages[0].author.role == "system"
    )


def test_parsing_may_be_strict():
    with pytest.raises(HarmonyParseError, match="no channel value"):
        completion_of("<|channel|><|message|>a", strict=True)
    with pytest.raises(HarmonyParseError, match="the stream ended"):
        completion_of("<|channel|>final", strict=True)


def test_parsing_may_use_another_vocabulary():
    default = Vocabulary.default()
    other = Vocabulary.from_tiktoken(
        default.tiktoken_encoding, special_tokens={"<|call|>": RESERVED}
    )
    assert parse([*tokens_of("<|message|>a"), RESERVED], vocabulary=other).end is EndKind.CALL


@pytest.mark.parametrize(("token", "error"), [(-1, ValueError), (5.0, TypeError)])
def test_parsing_refuses_what_is_no_token(token, error):
    with pytest.raises(error):
        parse([200008, token])


@given(streams)
@examples(200)
def test_a_completion_has_the_events_of_its_stream_with_adjacent_text_joined(tokens):
    events, collector = events_of(tokens), MessageCollector()
    for event in events:
        collector.feed(event)
    joined = tuple(join_deltas(events))
    assert collector.completion().events == parse(tokens).events == joined


@pytest.mark.parametrize("first", [1, 2, 3])
def test_a_collector_that_joins_a_stream_has_all_text_from_there(first):
    events = events_of("<|channel|>final<|message|>a b c<|return|>")
    collector = MessageCollector()
    for event in events[first:]:
        collector.feed(event)
    assert collector.messages[0].content[0].text == "".join(("a", " b", " c")[first - 1 :])


def test_a_collector_can_be_pickled_inside_a_message_by_any_protocol():
    *events, end = events_of("<|message|>a b<|end|>")
    collector = MessageCollector()
    for event in events:
        collector.feed(event)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        twin = pickle.loads(pickle.dumps(collector, protocol))
        assert twin.feed(end).content[0].text == "a b"
