"""Messages and events -> tokens."""

from harmony_stream.rendering.profiles import Profile
from harmony_stream.rendering.render import Renderer, render_events

__all__ = ["Profile", "Renderer", "render_events"]
