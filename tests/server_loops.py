"""The loops in which servers use openai_harmony's parser, in words of our own.

Each takes the library, an encoding and the tokens of a completion, and gives what the loop shows to
a client: texts, in order. So that they run in the environment of each wheel as well, they import
nothing but what they are given.

What they have in common: text is polled after each token, by channel and recipient, and an error
of the parser means that the raw text is shown, or an error to the client.
"""

from __future__ import annotations

from types import ModuleType, SimpleNamespace

ERROR = "500"


def _parser(library: ModuleType, encoding):
    return library.StreamableParser(encoding, role=library.Role.ASSISTANT)


def _is_shown(channel: str | None, recipient: str | None) -> bool:
    """Whether such a server sends text on: as a call, as reasoning, or as the answer."""
    is_call = bool(recipient) and recipient.startswith("functions.")
    return (
        is_call or channel in ("analysis", "final") or (channel == "commentary" and not recipient)
    )


def _segments(library, encoding, tokens, *, skips: bool):
    """A newer chat server's reading: what was polled after each token, and how it ended.

    It takes one new message after each token, remembers the tokens since the last one, and shows
    these as raw text if the end of the stream raises.
    """
    parser, taken, kept = _parser(library, encoding), 0, []

    def new_message():
        nonlocal taken
        if len(parser.messages) <= taken:
            return None
        taken += 1
        return parser.messages[taken - 1]

    for token in tokens:
        try:
            parser.process(token)
        except library.HarmonyError:
            if not skips:
                raise
            continue
        segment = SimpleNamespace(
            channel=parser.current_channel,
            recipient=parser.current_recipient,
            delta=parser.last_content_delta or "",
            message=new_message(),
        )
        kept = [] if segment.message else [*kept, token]
        yield segment
    try:
        parser.process_eos()
        message = new_message()
    except library.HarmonyError:
        raw = encoding.decode(kept)
        yield SimpleNamespace(channel="final", recipient=None, delta=raw, message=None)
        message = library.Message.from_role_and_content(library.Role.ASSISTANT, raw)
        message = message.with_channel("final")
    if message:
        yield SimpleNamespace(channel=None, recipient=None, delta="", message=message)


def streams_and_skips(library, encoding, tokens):
    """Stream deltas; a token that raises is skipped."""
    return _deltas(_segments(library, encoding, tokens, skips=True))


def _deltas(segments):
    return [
        segment.delta
        for segment in segments
        if segment.message is None and _is_shown(segment.channel, segment.recipient)
    ]


def streams(library, encoding, tokens):
    """The same, but a token that raises fails the request: what was sent stays sent."""
    segments = []
    try:
        for segment in _segments(library, encoding, tokens, skips=False):
            segments.append(segment)  # noqa: PERF402 - those before an error count
    except library.HarmonyError:
        segments.append(SimpleNamespace(channel="final", recipient="", delta=ERROR, message=None))
    return _deltas(segments)


def _whole(library, encoding, tokens, *, skips: bool):
    messages = [
        segment.message
        for segment in _segments(library, encoding, tokens, skips=skips)
        if segment.message is not None
    ]
    return [
        message.content[0].text
        for message in messages
        if message.content and _is_shown(message.channel, message.recipient)
    ]


def answers_at_once_and_skips(library, encoding, tokens):
    """Not streamed: the messages, one taken after each token."""
    return _whole(library, encoding, tokens, skips=True)


def answers_at_once(library, encoding, tokens):
    """The same, where a token that raises fails the request."""
    try:
        return _whole(library, encoding, tokens, skips=False)
    except library.HarmonyError:
        return [ERROR]


def reads_what_is_there(library, encoding, tokens):
    """An older chat server: what is in the parser after the last token. No end of the stream."""
    parser = _parser(library, encoding)
    try:
        for token in tokens:
            parser.process(token)
    except library.HarmonyError:
        return [ERROR]
    shown = [
        message.content[0].text
        for message in parser.messages
        if _is_shown(message.channel, message.recipient)
    ]
    if parser.current_content and _is_shown(parser.current_channel, parser.current_recipient):
        shown.append(parser.current_content)
    return shown


def prints_all(library, encoding, tokens):
    """A demo: whatever is polled is printed, and what raises is skipped. No end of the stream."""
    parser, shown = _parser(library, encoding), []
    for token in tokens:
        try:
            parser.process(token)
        except library.HarmonyError:
            continue
        shown.append(parser.last_content_delta or "")
    return shown


def takes_new_messages(library, encoding, tokens):
    """A server of responses: the messages that each chunk of tokens added. No end of the stream."""
    parser, shown = _parser(library, encoding), []
    for start in range(0, len(tokens), 4):
        known = len(parser.messages)
        for token in tokens[start : start + 4]:
            try:
                parser.process(token)
            except library.HarmonyError:
                continue
        shown += [message.content[0].text for message in parser.messages[known:]]
    return [*shown, parser.current_content]


def parses_or_shows_raw(library, encoding, tokens):
    """A server that parses the whole completion, and shows it raw if that fails."""
    try:
        messages = encoding.parse_messages_from_completion_tokens(tokens, library.Role.ASSISTANT)
    except library.HarmonyError:
        return [encoding.decode(tokens)]
    return [message.content[0].text for message in messages]


LOOPS = {
    loop.__name__: loop
    for loop in (
        streams_and_skips,
        streams,
        answers_at_once_and_skips,
        answers_at_once,
        reads_what_is_there,
        prints_all,
        takes_new_messages,
        parses_or_shows_raw,
    )
}
