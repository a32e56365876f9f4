"""The writing side: messages and events -> tokens."""

from harmony_stream.rendering.events import render_events
from harmony_stream.rendering.profiles import Profile
from harmony_stream.rendering.render import Renderer

__all__ = ["Profile", "Renderer", "render_events"]
