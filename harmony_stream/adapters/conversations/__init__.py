"""Conversations, which the renderer writes as prompts, made from the requests of API clients.

`conversation_from_chat` reads the messages of the Chat Completions API, and
`conversation_from_responses` the input items of the Responses API. Nothing vanishes silently: a
value that harmony cannot express raises a `ConversationError`, which names the message, the field
and the remedy. Nothing is invented either: dates are arguments, and text is passed on unchanged.
"""

from harmony_stream.adapters.conversations.chat import conversation_from_chat
from harmony_stream.adapters.conversations.fields import ConversationError
from harmony_stream.adapters.conversations.responses import conversation_from_responses

__all__ = ["ConversationError", "conversation_from_chat", "conversation_from_responses"]
