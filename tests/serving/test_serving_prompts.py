"""What an engine is given: the tokens say what the messages say, and a prompt is pruned once."""

import pytest
from backend_harness import CHAT_TOOLS, RESPONSES_TOOLS, Listening, asked
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from harmony_stream import Role, parse
from harmony_stream.rendering.render import Renderer
from harmony_stream.serving import create_app
from harmony_stream.values.messages import RenderOptions

RENDERER = Renderer(profile="guide")


def prompt_of(path, body):
    """The prompt with which an engine is asked because of a request."""
    engine = Listening()
    status, answer = asked(create_app(engine), "POST", path, {"model": "any", **body})
    assert status == 200, answer
    return engine.prompts[0]


def chat_prompt(messages, **fields):
    return prompt_of("/v1/chat/completions", {"messages": messages, **fields})


def responses_prompt(items, **fields):
    return prompt_of("/v1/responses", {"input": items, **fields})


def alone(message, options):
    """The messages that a parser reads where this one is rendered by itself."""
    return parse(RENDERER.render(message, options), role=None).messages


def assert_the_tokens_say_what_the_messages_say(prompt):
    declares = any(
        getattr(part, "tools", None)
        for message in prompt.messages
        if message.author.role is Role.DEVELOPER
        for part in message.content
    )
    options = RenderOptions(conversation_has_function_tools=declares)
    read = parse(prompt.tokens, role=None)
    assert not read.faults
    assert list(read.messages) == [each for m in prompt.messages for each in alone(m, options)]
    instructions = (Role.SYSTEM, Role.DEVELOPER)
    said = [each for each in prompt.messages if each.author.role not in instructions]
    assert [m for m in read.messages if m.author.role not in instructions] == said


def channels(prompt):
    return [
        (message.author.role.value, message.channel, message.recipient)
        for message in prompt.messages[1:]
    ]


# -- Cases --

CODE = {
    "type": "code_interpreter_call",
    "id": "ci_1",
    "container_id": "auto",
    "code": "6*7",
    "status": "completed",
    "outputs": [{"type": "logs", "logs": "42"}],
}


def reasoning(text):
    return {
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": text}],
    }


def test_a_call_on_analysis_and_its_result_stay_when_the_turn_is_finished():
    prompt = responses_prompt(
        [
            {"role": "user", "content": "6 * 7?"},
            CODE,
            {"type": "message", "role": "assistant", "content": "42."},
            {"role": "user", "content": "Sure?"},
        ],
        tools=[{"type": "code_interpreter", "container": {"type": "auto"}}],
    )
    assert channels(prompt) == [
        ("user", None, None),
        ("assistant", "analysis", "python"),
        ("tool", "analysis", "assistant"),
        ("assistant", "final", None),
        ("user", None, None),
    ]
    assert_the_tokens_say_what_the_messages_say(prompt)


def test_the_reasoning_of_an_interrupted_turn_stays_behind_a_finished_one():
    prompt = chat_prompt(
        [
            {"role": "user", "content": "When?"},
            {"role": "assistant", "reasoning": "Ask the table.", "tool_calls": [
                {"id": "c1", "function": {"name": "tide", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "noon"},
            {"role": "user", "content": "No, tomorrow."},
            {"role": "assistant", "reasoning": "Gone.", "content": "At one."},
            {"role": "user", "content": "Thanks."},
        ],
        tools=CHAT_TOOLS,
    )  # fmt: skip
    texts = [message.content[0].text for message in prompt.messages if message.channel]
    assert "Ask the table." in texts
    assert "Gone." not in texts
    assert_the_tokens_say_what_the_messages_say(prompt)


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_named_author_is_read_back(role):
    messages = [{"role": role, "name": "ana", "content": "Hi"}, {"role": "user", "content": "?"}]
    assert_the_tokens_say_what_the_messages_say(chat_prompt(messages))


# -- Law: the tokens, parsed back, are the messages; for any conversation, of both kinds of input --

words = st.sampled_from(["Hm.", "At noon.", "潮 🌊", '{"a": 1}', "<|end|> is text", " ", "a\nb"])
names = st.sampled_from(["tide", "wind", "browser.search", "functions.tide"])
users = words.map(lambda text: {"role": "user", "content": text})


@st.composite
def chat_steps(draw):
    """A message of the assistant with calls, and the results of some of them."""
    number = draw(st.integers(0, 10**12))
    called = draw(st.lists(names, min_size=1, max_size=2))
    calls = [
        {"id": f"c{number}-{place}", "function": {"name": name, "arguments": draw(words)}}
        for place, name in enumerate(called)
    ]
    step = {"role": "assistant", "tool_calls": calls}
    step |= draw(st.fixed_dictionaries({}, optional={"reasoning": words, "content": words}))
    answered = draw(st.permutations(calls))[: draw(st.integers(0, 2))]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": draw(words)} for call in answered
    ]
    return [step, *results]


chat_answers = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": words}, optional={"reasoning": words}
)


@st.composite
def conversations(draw, steps, answers):
    """Turns: a question, any number of steps, and an answer unless the user interrupts."""
    entries = []
    for _ in range(draw(st.integers(1, 4))):
        entries.append(draw(users))
        entries += [entry for step in draw(st.lists(steps, max_size=3)) for entry in step]
        entries += draw(st.lists(answers, max_size=1))
    return entries


def unique(entries, key):
    """The entries without those whose calls have an id that was there before."""
    seen, kept = set(), []
    for entry in entries:
        calls = {call["id"] for call in entry.get("tool_calls", ())}
        identity = {entry[key]} if key in entry else set()
        if (calls or identity) and "output" not in entry and entry.get("role") != "tool":
            if (calls | identity) & seen:
                return kept
            seen |= calls | identity
        kept.append(entry)
    return kept


@given(conversations(chat_steps(), chat_answers))
@examples(100)
def test_chat_messages_are_in_the_prompt_as_they_are_in_the_tokens(messages):
    messages = unique(messages, "call_id")
    assert_the_tokens_say_what_the_messages_say(chat_prompt(messages, tools=CHAT_TOOLS))


@st.composite
def item_steps(draw):
    """Items of one step: reasoning, a preamble, a call of any kind, and its result if it is had."""
    items = [reasoning(text) for text in draw(st.lists(words, max_size=1))]
    items += [
        {"type": "message", "role": "assistant", "phase": "commentary", "content": text}
        for text in draw(st.lists(words, max_size=1))
    ]
    return items + draw(item_calls())


@st.composite
def item_calls(draw):
    text = draw(words)
    match draw(st.sampled_from(["function", "code", "search", "mcp", "custom"])):
        case "code":
            outputs = draw(st.none() | words.map(lambda logs: [{"type": "logs", "logs": logs}]))
            return [{**CODE, "code": text, "outputs": outputs}]
        case "search":
            action = {"type": "search", "query": text}
            return [{"type": "web_search_call", "id": "ws", "action": action}]
        case "mcp":
            call = {"type": "mcp_call", "server_label": "box", "name": "run", "arguments": text}
            return [{**call, "output": draw(st.none() | words)}]
        case kind:
            return draw(client_calls(kind, text))


@st.composite
def client_calls(draw, kind, text):
    call_id = f"c{draw(st.integers(0, 10**12))}"
    key = {"function": "arguments", "custom": "input"}[kind]
    name = "function_call" if kind == "function" else "custom_tool_call"
    call = {"type": name, "call_id": call_id, "name": draw(names), key: text}
    result = {"type": f"{name}_output", "call_id": call_id, "output": draw(words)}
    return [call, result][: draw(st.integers(1, 2))]


item_answers = words.map(lambda text: {"type": "message", "role": "assistant", "content": text})


@given(conversations(item_steps(), item_answers))
@examples(100)
def test_input_items_are_in_the_prompt_as_they_are_in_the_tokens(items):
    items = unique(items, "call_id")
    tools = [{"type": "web_search"}, {"type": "code_interpreter"}, *RESPONSES_TOOLS]
    assert_the_tokens_say_what_the_messages_say(responses_prompt(items, tools=tools))
