"""The recorded engine: which logs answer which turns."""

import asyncio
import gzip
import io
import json
import math

import pytest
from backend_harness import ANSWER, CALL, CHAT_TOOLS, LONG, asked, ids
from hypothesis import given
from strategies import examples, streams

from harmony_stream import (
    ContentDelta,
    Malformed,
    Message,
    Role,
    Vocabulary,
    iter_events,
    parse,
)
from harmony_stream.logs import LogError, LogWarning, is_whole
from harmony_stream.serving import (
    Prompt,
    RecordedEngine,
    RequestError,
    create_app,
    load_recordings,
)
from harmony_stream.serving.recorded import _cut, turns_of_assistant, turns_of_log


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


@pytest.mark.parametrize(
    ("name", "model"),
    [(".json", "json"), ("a.b.c", "a"), ("a", "a"), ("<>", "<>"), ("a\udcff.json", "a\ufffd")],
)
def test_a_log_is_called_by_the_first_part_of_its_name(log, name, model):
    assert list(load_recordings([log(name, final("a"))])) == ["gpt-oss-20b", model]


def test_a_stream_is_called_by_its_name_if_it_has_one(log):
    with log("one.jsonl", final("a")).open("rb") as opened:
        nameless = io.BytesIO(json.dumps(ids(final("b"))).encode())
        assert texts(load_recordings([opened, nameless])) == {
            "gpt-oss-20b": ["a", "b"],
            "one": ["a"],
            "stream": ["b"],
        }


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


def test_one_path_is_no_list_of_logs(log):
    for path in (log("log.jsonl", final("a")), "log.jsonl"):
        with pytest.raises(TypeError, match=r"^places: .* is not a list of logs but one; give \["):
            load_recordings(path)


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


# -- Logs that go on after a stop token --

USER = "<|start|>user<|message|>And 3 + 3?<|end|>"
RESULT = "<|start|>functions.tide to=assistant<|channel|>commentary<|message|>noon<|end|>"
OPENED = "<|start|>assistant"
FOUR = "<|channel|>final<|message|>4<|return|>"
SIX = "<|channel|>final<|message|>6<|return|>"
PYTHON = " to=python<|channel|>analysis code<|message|>1<|call|>"

# A completion, and what the requests of a conversation get of it, one after the other.
CONTINUED = {
    "a tool's result": (CALL + RESULT + OPENED + ANSWER, [CALL, ANSWER]),
    "calls without results": (CALL + OPENED + CALL + OPENED + PYTHON, [CALL, CALL, PYTHON]),
    "an invented turn of the user": (FOUR + USER + OPENED + SIX, [FOUR, SIX]),
    "the assistant again": (FOUR + OPENED + SIX, [FOUR, SIX]),
    "the end of the text": (FOUR.replace("return", "endoftext") + OPENED + SIX,
                            [FOUR.replace("return", "endoftext"), SIX]),
    "a message that was not begun": (CALL + ANSWER, [CALL, ANSWER]),
    "text that was not begun": (FOUR + "MORE", [FOUR, "MORE"]),
    "padding": (FOUR + "<|endoftext|>" * 3, [FOUR]),
    "an opened header": (FOUR + OPENED, [FOUR]),
    "only stop tokens": ("<|return|><|return|>", ["<|return|>"]),
    "nothing of the assistant": ("<|return|>Lost" + USER, ["<|return|>"]),
    "a stop token before anything": ("<|return|>" + OPENED + SIX, [SIX]),
    "a stop token in a header": ("<|channel|>final<|return|>" + OPENED + SIX,
                                 ["<|channel|>final<|return|>", SIX]),
    "a stop token behind a message": ("<|channel|>final<|message|>4<|end|><|return|>" + SIX,
                                      ["<|channel|>final<|message|>4<|end|><|return|>", SIX]),
    "a cut answer": (CALL + RESULT + OPENED + ANSWER[:-20], [CALL, ANSWER[:-20]]),
    "a beginning without a header": ("Hm.<|start|>assistant" + CALL + RESULT + OPENED + ANSWER,
                                     ["Hm.<|start|>assistant" + CALL, ANSWER]),
}  # fmt: skip


@pytest.mark.parametrize(("completion", "turns"), CONTINUED.values(), ids=CONTINUED)
def test_a_stop_token_ends_a_completion_and_the_next_one_follows(completion, turns):
    assert turns_of_log(ids(completion)) == [ids(turn) for turn in turns]


FROM_A_HEADER = {
    name: case for name, case in CONTINUED.items() if case[0].startswith(("<|channel|>", OPENED))
}


@pytest.mark.parametrize(("completion", "turns"), FROM_A_HEADER.values(), ids=FROM_A_HEADER)
def test_a_whole_stream_is_cut_in_the_same_way(completion, turns):
    assert turns_of_log(ids(USER + OPENED + completion)) == [ids(turn) for turn in turns]


def test_a_history_in_which_every_message_ends_alike_is_cut_at_the_messages_of_others():
    four, six = (text.replace("return", "end") for text in (FOUR, SIX))
    hush = "<|channel|>analysis<|message|>Hm.<|end|>" + OPENED
    whole = USER + OPENED + hush + four + USER + OPENED + six + RESULT + OPENED + CALL
    assert turns_of_log(ids(whole)) == [ids(turn) for turn in (hush + four, six, CALL)]
    assert turns_of_log(ids(CALL + RESULT + OPENED + four + USER + OPENED + hush + six)) == [
        ids(turn) for turn in (CALL, four, hush + six)
    ]


def test_an_engine_cuts_what_it_is_given(replays):
    engine = RecordedEngine({"log": [ids(CALL + RESULT + OPENED + ANSWER)]}, on_end=replays.append)
    spoken = [prompt("user"), prompt("user", "assistant", "tool")]
    assert [asyncio.run(timed(engine.sample(each)))[0] for each in spoken] == [
        ids(CALL),
        ids(ANSWER),
    ]


def test_a_loop_over_tools_runs_to_the_answer_of_one_completion():
    engine = RecordedEngine({"log": [ids(CALL + RESULT + OPENED + ANSWER)]})
    app, messages = create_app(engine), [{"role": "user", "content": "When?"}]
    contents = []
    for result in ("noon", None):
        body = {"model": "log", "messages": messages, "tools": CHAT_TOOLS}
        _, answer = asked(app, "POST", "/v1/chat/completions", body)
        message = json.loads(answer)["choices"][0]["message"]
        contents.append(message["content"])
        calls = message.get("tool_calls", ())
        messages += [message, *({"role": "tool", "tool_call_id": call["id"], "content": result}
                                for call in calls)]  # fmt: skip
    assert contents == ["I'll look.", "High tide is at noon."]


STOPS = (200002, 200012, 199999)


@given(streams)
@examples(200)
def test_no_text_of_the_assistant_is_lost_when_a_log_is_cut(tokens):
    turns, strays = _cut(tokens)
    served = iter([token for turn in turns for token in turn])
    spoken, lost = [], []
    for event in iter_events(tokens, role=None if is_whole(tokens) else "assistant"):
        if isinstance(event, ContentDelta) and event.role is Role.ASSISTANT:
            spoken += tokens[event.start : event.stop]
        if isinstance(event, Malformed) and event.text.strip():
            lost.append((event.start, event.stop))

    assert all(token in served for token in spoken if token != ASSISTANT), "in this order"
    assert set(strays) <= set(lost)
    for turn in turns:
        if turns != [tokens]:
            assert not set(STOPS) & set(turn[:-1]), "a backend would read no further"


[ASSISTANT] = ids("assistant")  # it may be what a prompt ends with


STRAY = FOUR + "Lost words" + USER + OPENED + SIX
PLACE = f"{len(ids(FOUR))} to {len(ids(FOUR + 'Lost words'))}"


def test_text_that_is_never_served_is_reported(log):
    path, reports = log("log.jsonl", FOUR, STRAY), []
    assert texts(load_recordings([path], report=reports.append))["log"] == ["4", "4", "6"]
    assert [str(report) for report in reports] == [
        f"{path}: line 2: the text at positions {PLACE} is not in a turn: it is never served"
    ]
    with pytest.warns(LogWarning, match="never served"):
        load_recordings([path])


# What a log holds, and the text in it that no turn has.
STRAYS = {
    "after a stop token": (STRAY, ["Lost words"]),
    "before the first turn of a whole stream": (f"{USER}Lost{OPENED}{FOUR}", ["Lost"]),
    "between messages of one turn": (
        f"{CALL}{RESULT}{OPENED}<|channel|>analysis<|message|>Hm.<|end|>So{OPENED}{FOUR}",
        [],
    ),
    "in a header of a turn": (
        f"{CALL}{RESULT}{OPENED}<|channel|>analysis it is said<|message|>Hm.<|end|>{OPENED}{FOUR}",
        [],
    ),
    "only white space": (f"{FOUR} \n{USER}{OPENED}{SIX}", []),
}


@pytest.mark.parametrize(("text", "lost"), STRAYS.values(), ids=STRAYS)
def test_text_is_reported_only_if_no_turn_has_it(text, lost):
    tokens = ids(text)
    decode = Vocabulary.default().decode
    assert [decode(tokens[start:stop]) for start, stop in _cut(tokens)[1]] == lost


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


@pytest.mark.parametrize("speed", [0, -1, math.inf, math.nan, "fast"])
def test_a_speed_that_is_none_is_refused(speed):
    with pytest.raises(ValueError, match=r"^speed: .* is not a number above 0; give tokens"):
        RecordedEngine({"log": [[200002]]}, speed=speed)


@pytest.mark.parametrize("completion", [200002, "<|return|>", b"a", None, {200002}])
def test_what_is_no_completion_is_refused_by_its_place(completion):
    with pytest.raises(TypeError, match=r"^recordings\['log'\]\[1\]: .* is not a completion; give"):
        RecordedEngine({"log": [[200002], completion]})


def test_a_hook_that_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match=r"^on_end: 'print' is not callable; give"):
        RecordedEngine({"log": [[200002]]}, on_end="print")


def test_an_engine_without_a_hook_replays_as_well():
    engine = RecordedEngine({"log": [ids(ANSWER)]})
    assert asyncio.run(timed(engine.sample(prompt())))[0] == ids(ANSWER)
