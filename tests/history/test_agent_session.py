"""Thirty turns of an agent whose model does not spell as the encoder does.

The model here is a script that writes its texts in tokens of one to four bytes, which any model may
do: what it samples is then no canonical encoding, and a server that decodes and encodes again sends
back other tokens than those that stand in the cache.
"""

import random

import pytest
from strategies import SPECIAL, VOCABULARY, tokens_of

from harmony_stream.history import HistoryPolicy, LastTurns, normalize_history
from harmony_stream.history.transcript import Transcript
from harmony_stream.rendering.render import Renderer
from harmony_stream.values.messages import Conversation, Message, RenderConversationConfig, Role

TURNS = 30
TURNS_A_QUESTION = 6
RENDERER = Renderer(profile="guide")
OPENED = tokens_of("<|start|>assistant")
END, RETURN = SPECIAL["<|end|>"], SPECIAL["<|return|>"]
THOUGHT = (
    "<|channel|>analysis<|message|>",
    "The tide at Oban, day {}: I'll look it up. 潮",
    "<|end|>",
)
PREAMBLE = ("<|channel|>commentary<|message|>", "Looking up day {} of 30 …", "<|end|>")
CALLS = [
    ("<|channel|>commentary to=functions.tide <|constrain|>json<|message|>",
     '{{"harbour": "Oban", "day": {}}}', "<|call|>"),
    ("<|channel|>analysis to=python code<|message|>", "print({} ** 2 / 30)", "<|call|>"),
]  # fmt: skip
ANSWER = ("<|channel|>final<|message|>", "On day {} it is 4.2 m high 🌊 at Oban.", "<|return|>")
TOOLS = ["functions.tide", "python"]


def is_last(turn):
    """Whether the model answers in this turn: it calls tools in the others."""
    return turn % TURNS_A_QUESTION == TURNS_A_QUESTION - 1


def spelled(text, dice):
    """The text in pieces of one to four bytes, each encoded for itself."""
    data, tokens = text.encode(), []
    while data:
        size = dice.randint(1, 4)
        tokens += VOCABULARY.tiktoken_encoding._encode_bytes(data[:size])
        data = data[size:]
    return tokens


def sample(turn, dice):
    """The messages that the model samples in a turn, each as tokens without its opened header."""
    parts = [THOUGHT, ANSWER] if is_last(turn) else [THOUGHT, PREAMBLE, CALLS[turn % 2]]
    return [
        [*tokens_of(head), *spelled(text.format(turn), dice), *tokens_of(end)]
        for head, text, end in parts
    ]


class Session:
    """A session, and beside it a plain list of what its prompts have to be made of."""

    def __init__(self):
        self.transcript = Transcript(RENDERER)
        self.pieces = []  # (turn of the user, whether it is a thought, tokens)
        self.prompts = []
        self.samples = []
        self.questions = 0

    def add(self, tokens, is_thought=False):
        self.pieces.append((self.questions, is_thought, tokens))

    def ask(self, turn):
        self.questions += 1
        question = Message.from_role_and_content(Role.USER, f"How high is the tide on day {turn}?")
        self.transcript.add_messages([question])
        self.add(RENDERER.render(question))

    def answer_call(self, turn):
        name, channel = TOOLS[turn % 2], ["commentary", "analysis"][turn % 2]
        self.transcript.add_tool_result(name, str(turn))
        result = Message(author={"role": "tool", "name": name}, content=str(turn),
                         channel=channel, recipient="assistant")  # fmt: skip
        self.add(RENDERER.render(result))

    def expected(self, keeps):
        kept = [
            tokens
            for question, is_thought, tokens in self.pieces
            if not is_thought or keeps(question, self.questions)
        ]
        return [token for tokens in kept for token in tokens] + OPENED

    def run(self, policy, keeps):
        dice = random.Random(2025)
        for turn in range(TURNS):
            if turn % TURNS_A_QUESTION == 0:
                self.ask(turn)
            prompt = self.transcript.prompt(policy=policy)
            assert prompt == self.expected(keeps)
            messages = sample(turn, dice)
            tokens = [token for each in messages for token in [*OPENED, *each]][len(OPENED) :]
            self.prompts.append(prompt)
            self.samples.append(tokens)
            for token in tokens:
                self.transcript.feed(token)
            self.transcript.end_sample()
            for place, each in enumerate(messages):
                ended = [END if token == RETURN else token for token in each]
                self.add([*OPENED, *ended], is_thought=place == 0)
            if not is_last(turn):
                self.answer_call(turn)
        self.ask(TURNS)
        self.prompts.append(self.transcript.prompt(policy=policy))
        assert self.prompts[-1] == self.expected(keeps)
        return self


POLICIES = {
    HistoryPolicy.FINISHED_TURNS: lambda question, now: question == now,
    LastTurns(2): lambda question, now: question >= now - 2,
    HistoryPolicy.KEEP: lambda question, now: True,
}


@pytest.mark.parametrize(("policy", "keeps"), POLICIES.items(), ids=str)
def test_every_prompt_holds_what_was_sampled_unchanged(policy, keeps):
    session = Session().run(policy, keeps)

    assert len(session.samples) == TURNS
    history = normalize_history(session.transcript.messages, policy)
    assert session.transcript.dropped == history.dropped


def test_the_tokens_are_not_those_of_the_encoder():
    dice = random.Random(2025)
    for turn in range(TURNS):
        for tokens in sample(turn, dice):
            assert tokens_of(VOCABULARY.decode(tokens)) != tokens


def test_with_nothing_dropped_each_prompt_begins_with_the_last_and_what_was_sampled():
    session = Session().run(HistoryPolicy.KEEP, lambda question, now: True)

    for prompt, sampled, following in zip(
        session.prompts[:-1], session.samples, session.prompts[1:], strict=True
    ):
        seen = [*prompt, *sampled]
        assert following[: len(seen)] == [END if token == RETURN else token for token in seen]


def test_a_trainer_sees_each_sampled_token_once():
    session = Session().run(HistoryPolicy.KEEP, lambda question, now: True)

    view = session.transcript.training()
    trained = [token for token, counts in zip(view.tokens, view.loss_mask, strict=True) if counts]
    assert trained == [token for sampled in session.samples for token in sampled]
    assert trained.count(RETURN) == TURNS // TURNS_A_QUESTION


def test_a_naive_rendering_of_the_same_session_differs():
    session = Session().run(HistoryPolicy.KEEP, lambda question, now: True)
    ours = session.prompts[-1]

    naive = RENDERER.render_conversation_for_completion(
        Conversation.from_messages(session.transcript.messages),
        Role.ASSISTANT,
        RenderConversationConfig(auto_drop_analysis=False),
    )

    assert VOCABULARY.decode(naive) == VOCABULARY.decode(ours)
    place = next(i for i, (a, b) in enumerate(zip(naive, ours, strict=False)) if a != b)
    print(
        f"the first difference is at token {place} of {len(ours)} (rendered again: {len(naive)}): "
        f"sampled {ours[place]} ({VOCABULARY.decode([ours[place]])!r}), "
        f"rendered {naive[place]} ({VOCABULARY.decode([naive[place]])!r})"
    )
    # It is in the first sampled message: all that an engine has cached behind it would be lost.
    assert len(session.prompts[0]) <= place < len(session.prompts[0]) + len(session.samples[0])
