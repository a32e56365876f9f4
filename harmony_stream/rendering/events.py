"""Events -> tokens: a parser's events, written again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harmony_stream.rendering.header import role_word
from harmony_stream.rendering.profiles import GUIDE, Profile
from harmony_stream.rendering.render import Renderer
from harmony_stream.values.events import EndKind, Event, MessageEnd, MessageStart
from harmony_stream.values.fold import EndedMessage, Fold
from harmony_stream.vocabulary import FormattingToken, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable

_END_TOKENS = {
    EndKind.END: FormattingToken.END,
    EndKind.RETURN: FormattingToken.RETURN,
    EndKind.CALL: FormattingToken.CALL,
    EndKind.END_OF_TEXT: FormattingToken.END_OF_TEXT,
}


def render_events(
    events: Iterable[Event],
    profile: Profile | str = GUIDE,
    vocabulary: Vocabulary | None = None,
) -> list[int]:
    """Return the tokens of events, so that `render_events(parse(tokens)) == tokens`.

    That holds for well-formed tokens in the encoding and layout that this library writes. Others
    are repaired: an end token is appended to a message that the next one cut off, and stray text is
    left out. A stream that ended inside a message ends there.

    Args:
        events: all events of one parser.
        profile: the layout of headers.
        vocabulary: the vocabulary of the parser.

    >>> from harmony_stream.parsing.parser import EventParser
    >>> tokens = [200005, 17196, 200008, 13225, 200002]
    >>> render_events(EventParser().feed_many(tokens)) == tokens
    True
    """
    renderer = Renderer(vocabulary, profile)
    tokens: list[int] = []
    fold = Fold()
    for event in events:
        ended = fold.feed(event)
        if isinstance(ended, EndedMessage):  # the text of a fault belongs to no message
            tokens += _message(renderer, ended.start, ended.text)
            tokens += _end_tokens(renderer, ended.end)
    return tokens if fold.start is None else tokens + _message(renderer, fold.start, fold.text)


def _message(renderer: Renderer, start: MessageStart, text: str) -> list[int]:
    return _fed_header(renderer, start) + renderer.encode(text)


def _end_tokens(renderer: Renderer, event: MessageEnd) -> list[int]:
    if event.end is EndKind.TRUNCATED:
        return []
    mended = FormattingToken.CALL if event.header.is_tool_call else FormattingToken.END
    return [renderer.token(_END_TOKENS.get(event.end, mended))]


def _fed_header(renderer: Renderer, start: MessageStart) -> list[int]:
    """Return the first header without its part in the prompt, which is not in its span.

    That part is usually `<|start|>` and the role. If the span lacks fewer tokens, the header was
    only spelled in another way. A header with a type may be a token shorter, if `<|constrain|>` is
    glued to the word before it.
    """
    tokens = renderer.header_tokens(start.header)
    missing = len(tokens) - (start.stop - start.start)
    usual = 1 + len(renderer.encode(role_word(start.header)))
    if start.index > 0 or missing < usual:
        return tokens
    is_glued = start.header.constrain is not None and missing == usual + 1
    return tokens[usual if is_glued else missing :]
