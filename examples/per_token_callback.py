"""A backend that is called for each token, as most engines do it.

    python examples/per_token_callback.py

One parser belongs to one completion. `on_token` may be called from anywhere, as long as the
tokens come in order; what it does with an event is up to the application.
"""

import json
from pathlib import Path

from harmony_stream import ContentDelta, Event, EventParser, Malformed, MessageEnd, MessageStart

LOG = Path(__file__).with_name("preamble_and_calls.json")


class Completion:
    """Gives visible text to the user at once, and tool calls when they are complete."""

    def __init__(self) -> None:
        # The prompt ended with <|start|>assistant, which is what the parser assumes.
        self.parser = EventParser()
        self.arguments = ""

    def on_token(self, token: int) -> None:
        """Called by the engine. One token gives one event or none, as a rule."""
        for event in self.parser.feed(token):
            self.on_event(event)

    def on_end(self) -> None:
        """Called when the engine stops, for whatever reason: nothing may be left in the parser."""
        for event in self.parser.close():
            self.on_event(event)

    def on_event(self, event: Event) -> None:
        """The header is known from the first event on, so text never has to wait."""
        match event:
            case MessageStart():
                self.arguments = ""
            case ContentDelta(header=header) if header.is_visible:
                print(event.text, end="", flush=True)
            case ContentDelta(header=header) if header.is_tool_call:
                self.arguments += event.text
            case MessageEnd(header=header) if header.is_tool_call and event.complete:
                print(f"\n-> {header.recipient}({self.arguments})")
            case Malformed():
                print(f"\n!! {event.error}")


if __name__ == "__main__":
    completion = Completion()
    for each in json.loads(LOG.read_text()):  # the engine: it samples these tokens
        completion.on_token(each)
    completion.on_end()
