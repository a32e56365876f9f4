"""Headers that were read before, and had no fault: found again by their tokens.

Streams repeat their headers. `feed_many` finds one by all of its tokens, in a twentieth of the time
that the machine takes. `feed` follows a trie, at 0.4 us a token, where the machine takes 3; if it
leaves the trie before `<|message|>`, it feeds the machine the tokens that it had only followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harmony_stream.parsing.items import kind_and_data
from harmony_stream.parsing.states import TABLE, State
from harmony_stream.values.read_header import Opening

if TYPE_CHECKING:
    from harmony_stream.values.header import Header
    from harmony_stream.values.messages import Role
    from harmony_stream.vocabulary import Vocabulary

# A header has 3 to 12 tokens. Headers that are longer, or more than fit into so many nodes, do not
# come again. They are forgotten also by the parsers that wait at a root.
_LONGEST = 64
_MOST_NODES = 4096
# Prompts give few authors, and parsers have few limits.
_MOST_TABLES = 16


class Node(dict[int, "Node"]):
    """A place in a header: the next places by token.

    Attributes:
        parent: the place before the last token; None before the first one.
        token: the last token.
        length: the number of tokens up to here.
        state: the state that a parser is in.
        header: the header, if the last token is its `<|message|>`.
        so_far: the header as far as it is known here, if that was asked for.
    """

    __slots__ = ("header", "length", "parent", "so_far", "state", "token")

    def __init__(self, state: State, parent: Node | None = None, token: int = -1) -> None:
        self.state = state
        self.parent = parent
        self.token = token
        self.length: int = 0 if parent is None else parent.length + 1
        self.header: Header | None = None
        self.so_far: Header | None = None

    def tokens(self) -> tuple[int, ...]:
        """Return the tokens up to here, with the `<|start|>` that opened the header, if one did."""
        return () if self.parent is None else (*self.parent.tokens(), self.token)


NOWHERE = Node(State.CONTENT)
"""The node of a parser that is in no header, or in one that has no node."""


class Root(Node):
    """The place before the first token of a header.

    Attributes:
        longest: the most tokens that a header can have here, with its `<|message|>`.
        whole: the headers by all of their tokens.
    """

    __slots__ = ("longest", "whole")

    def __init__(self, state: State, longest: int) -> None:
        super().__init__(state)
        self.longest = longest
        self.whole: dict[tuple[int, ...], Header] = {}


class KnownHeaders:
    """The headers that came after one kind of prompt; none has more than `limit` tokens."""

    __slots__ = ("_count", "_roots", "_vocabulary")

    def __init__(self, vocabulary: Vocabulary, limit: int) -> None:
        self._vocabulary = vocabulary
        self._count = 0
        self._roots = {
            Opening.START: Root(State.EXPECT_START, limit + 2),
            Opening.PROMPT: Root(State.ROLE, limit + 1),
        }

    def _forget(self) -> None:
        self._count = 0
        for root in self._roots.values():
            root.clear()
            root.whole.clear()

    def root(self, opening: Opening) -> Root:
        """Return the place before a header that `<|start|>`, or the prompt, opens."""
        return self._roots[opening]

    def remember(self, opening: Opening, tokens: tuple[int, ...], header: Header) -> None:
        """Remember a header without a fault.

        Args:
            opening: what opens it: `<|start|>`, or the prompt.
            tokens: its tokens, with that `<|start|>` and with `<|message|>`.
            header: their meaning.
        """
        if len(tokens) > _LONGEST:
            return
        if self._count + len(tokens) > _MOST_NODES:
            self._forget()
        root = self._roots[opening]
        root.whole[tokens] = header
        node: Node = root
        for token in tokens:
            node = self._next(node, token)
        node.header = header

    def _next(self, node: Node, token: int) -> Node:
        if token not in node:
            kind, _ = kind_and_data(self._vocabulary, token)
            node[token] = Node(TABLE[node.state][kind].next, node, token)
            self._count += 1
        return node[token]


class _Tables(dict[tuple["Role | None", str | None, int], KnownHeaders]):
    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._vocabulary = vocabulary

    def __missing__(self, prompt: tuple[Role | None, str | None, int]) -> KnownHeaders:
        if len(self) >= _MOST_TABLES:  # more if threads race
            self.clear()
        self[prompt] = known = KnownHeaders(self._vocabulary, prompt[-1])
        return known


def known_headers(
    vocabulary: Vocabulary, role: Role | None, name: str | None, limit: int
) -> KnownHeaders:
    """Return the headers that all parsers with this author and this limit know.

    Args:
        vocabulary: the meaning of the tokens.
        role: the author's role that the prompt gives.
        name: and the name.
        limit: the greatest length of a header, which none of them exceeds.
    """
    return vocabulary.table(_Tables)[role, name, limit]
