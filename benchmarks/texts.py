"""Texts of our own: prose, Chinese, emoji, JSON arguments, code, and a mixture.

Only the standard library: the workers of the wheels make their tokens from it as well.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


_CODE = """\
def berths(harbour: Harbour, *, draught: float = 2.5) -> list[Berth]:
    \"\"\"Return the free berths that are deep enough, the nearest first.\"\"\"
    free = (berth for berth in harbour.berths if not berth.boat and berth.depth >= draught)
    return sorted(free, key=lambda berth: (berth.distance, -berth.depth))


class Pilot:
    def __init__(self, name: str, licences: frozenset[str] = frozenset()) -> None:
        self.name, self.licences = name, licences

    async def board(self, ship: Ship) -> None:
        if ship.kind not in self.licences:
            raise PermissionError(f"{self.name} has no licence for {ship.kind!r}")
        async with ship.ladder() as ladder:
            await ladder.climb(timeout=30.0)
"""


_JSON = "\n".join(_arguments(number) for number in range(4))

# About 600 tokens each, so that they differ in kind and not in length. The mixed one has 1,300, of
# which a fifth are parts of characters.
TEXTS = {
    "English": _ENGLISH * 4,
    "Chinese": _CHINESE * 4,
    "emoji": _EMOJI * 7,
    "JSON": _JSON,
    "code": _CODE * 3,
    "mixed": f"{_ENGLISH}{_CHINESE}{_ENGLISH}{_EMOJI * 4}{_JSON}",
}

_HEADERS = [
    "<|channel|>analysis<|message|>",
    "<|channel|>commentary to=functions.moor <|constrain|>json<|message|>",
    "<|channel|>final<|message|>",
]
_BETWEEN = "<|end|><|start|>assistant"


def completion(text: str, messages: int, end: str = "<|return|>") -> str:
    """Return a completion of that many messages: reasoning, a call, an answer, over and over."""
    pieces = [_HEADERS[number % 3] + text for number in range(messages)]
    return _BETWEEN.join(pieces) + end


COMPLETIONS = {
    **{name: completion(text, 9) for name, text in TEXTS.items()},
    "short messages": completion("Aye, moored.", 300),
    "1,800 tokens": completion(_CODE, 9),
    "5 tokens": "<|channel|>final<|message|>Hello<|return|>",
    "107 tokens": completion(" ".join(_ENGLISH.split()[:36]), 2),
    "a header": _HEADERS[2],
    "a short call": _HEADERS[1] + '{"berth": 7}<|call|>',
    "an answer": _HEADERS[2] + TEXTS["mixed"] * 4,
    "a call": _HEADERS[1] + TEXTS["JSON"] * 8,
}
"""Marked text by name."""


def random_completions(count: int, encode: Callable[[str], list[int]]) -> list[list[int]]:
    """Return completions of one to three messages, 100 to 300 tokens each, always the same."""
    chance = random.Random(7)
    bodies = [encode(TEXTS[name]) for name in ("English", "Chinese", "emoji", "JSON")]
    frames = [encode(completion("@", messages)) for messages in (1, 2, 3)]
    (mark,) = encode("@")
    return [list(_filled(chance.choice(frames), mark, bodies, chance)) for _ in range(count)]


def _filled(
    frame: list[int], mark: int, bodies: list[list[int]], chance: random.Random
) -> Iterator[int]:
    for token in frame:
        if token == mark:
            body = chance.choice(bodies)
            start = chance.randrange(len(body) // 2)
            yield from body[start : start + chance.randrange(100, 300)]
        else:
            yield token
