"""Texts of our own to parse: prose, Chinese, emoji, JSON arguments, and a mixture of them."""

from __future__ import annotations

import json
import random

_ENGLISH = """\
The harbour master keeps two ledgers. In the first she writes what arrives: the hour, the draught,
the name of the skipper, and whether the holds smelled of oranges or of tar. In the second she
writes what was promised, because promises have tides of their own. When someone asks how many
boats there are, she answers with a question about the weather; the number changes before the ink
is dry. Let us work it out step by step: 17 boats at noon, minus 4 that left for the islands, plus
2 that came back with torn sails, gives 15. Is that the whole answer? Not quite, since "boat" is a
matter of opinion below six metres.
"""
_CHINESE = """\
港口的管理员有两本账簿。第一本记录到达的船只：时间、吃水深度、船长的姓名，以及货舱里是橙子还是焦油的气味。第二本记录承诺，
因为承诺也有自己的潮汐。有人问港里一共有多少条船，她总是先反问天气如何，因为墨迹未干，数字已经变了。我们一步一步来算：中午
有十七条船，四条开往群岛，两条带着破帆回来，所以是十五条。这就是全部答案吗？不完全是，六米以下算不算船，见仁见智。
"""
_EMOJI = "⛵🧭🌊 👩🏽‍✈️👨‍👩‍👧‍👦 🏴‍☠️🐙🦑🪸 🇳🇿🇯🇵🇧🇷 🤷🏾‍♀️🙅🏻‍♂️ 🎏🪝🛟🧉 ok! "


def _arguments(number: int) -> str:
    chance = random.Random(number)
    ports = ["Oban", "Lyttelton", "Zadar", "Valparaíso"]
    return json.dumps(
        {
            "port": chance.choice(ports),
            "berths": [chance.randrange(1000) for _ in range(6)],
            "crew": [
                {"name": f"sailor_{n}", "age": 20 + n, "on_board": n % 2 == 0} for n in range(3)
            ],
            "note": 'say "ahoy"\nand wait',
        },
        ensure_ascii=False,
        indent=chance.choice([None, 2]),
    )


TEXTS = {
    "English": _ENGLISH,
    "Chinese": _CHINESE,
    "emoji": _EMOJI * 6,
    "JSON": "\n".join(_arguments(number) for number in range(4)),
}
MIXED = f"{_ENGLISH}{_CHINESE}{_ENGLISH}{_EMOJI}{TEXTS['JSON']}"


def completion(text: str, messages: int, end: str = "<|return|>") -> str:
    """A completion of so many messages: thinking, a call, an answer, over and over."""
    headers = [
        "<|channel|>analysis<|message|>",
        "<|channel|>commentary to=functions.moor <|constrain|>json<|message|>",
        "<|channel|>final<|message|>",
    ]
    pieces = [headers[number % 3] + text for number in range(messages)]
    return "<|end|><|start|>assistant".join(pieces) + end
