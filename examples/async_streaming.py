"""An async server that streams several completions at a time.

    python examples/async_streaming.py

`aiter_events` takes any async iterable of token ids: an engine's output, a queue, a socket. It
ends the stream by itself, so that the last event is always a `MessageEnd` (or a `Malformed`).
"""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

from harmony_stream import ContentDelta, MessageCollector, aiter_events

LOGS = Path(__file__).parent
TOKENS_PER_SECOND = 200


async def engine(log: Path) -> AsyncIterator[int]:
    """Stands for the model: it samples the tokens of a recorded completion, in time."""
    for token in json.loads(log.read_text()):
        await asyncio.sleep(1 / TOKENS_PER_SECOND)
        yield token


async def serve(name: str) -> None:
    """Stream what a user may see as it comes; keep the whole message beside it."""
    collector = MessageCollector()
    async for event in aiter_events(engine(LOGS / f"{name}.json")):
        collector.feed(event)
        # A delta is never a part of a character, however the tokens cut the text.
        if isinstance(event, ContentDelta) and event.header.is_visible:
            print(f"{name}: {event.text!r}")
    completion = collector.completion()
    for call in completion.tool_calls:
        print(f"{name}: calls {call.name} with {call.arguments}")
    print(f"{name}: {completion.end}, thought {len(completion.reasoning)} characters")


async def main() -> None:
    """Two completions at once: each has its own parser, nothing is shared."""
    await asyncio.gather(serve("two_plus_two"), serve("tool_call"))


if __name__ == "__main__":
    asyncio.run(main())
