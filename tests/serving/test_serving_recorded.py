"""The recorded engine: which logs answer which turns."""

import asyncio
import gzip
import json

import pytest
from backend_harness import ANSWER, CALL, LONG, ids

from harmony_stream import Message, parse
from harmony_stream.logs import LogError, LogWarning
from harmony_stream.serving import Prompt, RecordedEngine, RequestError, load_recordings
from harmony_stream.serving.recorded import turns_of_assistant, turns_of_log


@pytest.fixture
def log(tmp_path):
    """Writes a log of so many completions, given as marked text, and gives its path."""

    def write(name, *completions):
        path = tmp_path / name
        lines = [json.dumps({"token_ids": ids(text)}) for text in completions]
        content = "\n".join(lines).encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write


def texts(recordings):
    return {
        model: [parse(list(turn)).final_text for turn in turns]
        for model, turns in recordings.items()
    }


def final(text):
    return f"<|channel|>final<|message|>{text}<|return|>"


def test_all_logs_together_are_a_model_and_so_is_each_log_and_each_completion(log):
    paths = [log("one.jsonl", final("a")), log("many.jsonl.gz", final("b"), final("c"))]
    assert texts(load_recordings(paths)) == {
        "gpt-oss-20b": ["a", "b", "c"],
        "one": ["a"],
        "many": ["b", "c"],
        "many:1": ["b"],
        "many:2": ["c"],
    }


def test_logs_of_one_name_are_told_apart(log, tmp_path):
    (tmp_path / "old").mkdir()
    paths = [log("run.jsonl", final("a")), log("old/run.jsonl", final("b"))]
    paths.append(log("run.json", final("c")))
    assert list(load_recordings(paths, name="run")) == ["run", "run-2", "run-3", "run-4"]


@pytest.mark.parametrize(("name", "model"), [(".json", "json"), ("a.b.c", "a"), ("a", "a")])
def test_a_log_is_called_by_the_first_part_of_its_name(log, name, model):
    assert list(load_recordings([log(name, final("a"))])) == ["gpt-oss-20b", model]


def test_a_record_that_cannot_be_read_is_reported_and_the_others_are_served(log):
    path = log("log.jsonl", final("a"))
    path.write_text(path.read_text() + '\n{"token_ids": [-1]}\n')
    reports = []
    assert texts(load_recordings([path], report=reports.append))["log"] == ["a"]
    assert [type(report) for report in reports] == [LogError]
    with pytest.warns(LogWarning, match="line 2"):
        load_recordings([path])


def test_logs_without_any_completion_cannot_be_served(log):
    with pytest.raises(ValueError, match="nothing to serve"):
        load_recordings([log("log.jsonl", "<|start|>user<|message|>Hi<|end|>")])


def test_a_whole_stream_is_the_turns_of_the_assistant_in_it():
    stream = ids(
        "<|start|>system<|message|>s<|end|><|start|>user<|message|>Hi<|end|>"
        f"<|start|>assistant{CALL}"
        "<|start|>functions.tide to=assistant<|channel|>commentary<|message|>noon<|end|>"
        f"<|start|>assistant{ANSWER}<|start|>user<|message|>Thanks<|end|><|start|>assistant"
    )
    assert turns_of_log(stream) == [ids(CALL), ids(ANSWER)]


def test_a_turn_that_begins_otherwise_than_a_prompt_ends_is_kept_whole():
    stream = ids("<|start|>assistant to=python<|channel|>analysis<|message|>1<|call|>")
    [turn] = turns_of_log(stream)
    assert parse(turn).tool_calls[0].name == "python"
    implied = ids("<|start|>user<|message|>Hi<|end|><|channel|>final<|message|>Hello<|return|>")
    assert turns_of_log(implied) == [implied[-5:]]


def test_messages_that_follow_each_other_are_one_turn():
    roles = ["system", "user", "assistant", "assistant", "tool", "assistant", "user"]
    messages = [Message.from_role_and_content(role, "x") for role in roles]
    assert turns_of_assistant(messages) == 2


# -- Replaying --


def prompt(*roles, speed=None):
    messages = tuple(Message.from_role_and_content(role, "x") for role in roles)
    return Prompt("log", messages, [], speed=speed)


async def timed(tokens):
    now = asyncio.get_running_loop().time
    begin = now()
    return [token async for token in tokens], now() - begin


@pytest.fixture
def replays():
    return []


@pytest.fixture
def engine(replays):
    return RecordedEngine({"log": [ids(CALL), ids(ANSWER)]}, speed=200, on_end=replays.append)


def test_the_turns_of_the_conversation_choose_the_completion(engine, replays):
    first, _ = asyncio.run(timed(engine.sample(prompt("user"))))
    second, _ = asyncio.run(timed(engine.sample(prompt("user", "assistant", "tool"))))
    assert (first, second) == (ids(CALL), ids(ANSWER))
    assert [str(replay) for replay in replays] == [
        f"log, turn 1: {len(first)} tokens",
        f"log, turn 2: {len(second)} tokens",
    ]


def test_a_turn_that_was_not_recorded_is_refused_at_once(engine):
    with pytest.raises(RequestError, match="turn 3"):
        engine.sample(prompt("assistant", "user", "assistant"))


@pytest.mark.parametrize(("asked", "speed"), [(None, 200), (400, 400)])
def test_tokens_come_in_time(engine, asked, speed):
    tokens, seconds = asyncio.run(timed(engine.sample(prompt(speed=asked))))
    assert seconds >= (len(tokens) - 1) / speed


def test_a_replay_that_is_closed_early_says_how_far_it_came(replays):
    engine = RecordedEngine({"log": [ids(LONG)]}, on_end=replays.append)

    async def take_three():
        tokens = engine.sample(prompt())
        for _ in range(3):
            await anext(tokens)
        await tokens.aclose()

    asyncio.run(take_three())
    assert str(replays[0]) == f"log, turn 1: 3 of {len(ids(LONG))} tokens"


def test_an_engine_without_a_hook_replays_as_well():
    engine = RecordedEngine({"log": [ids(ANSWER)]})
    assert asyncio.run(timed(engine.sample(prompt())))[0] == ids(ANSWER)
