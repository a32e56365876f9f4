"""Names as the model writes them are resolved to one declared name, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from harmony_stream.adapters.names import addressed, bare_name, declared_name
from harmony_stream.values.header import Header
from harmony_stream.values.messages import Role

ASSISTANT = Role.ASSISTANT

# recipient, declared names, the one that is meant
MEANT = [
    ("functions.shelljson", {"shell"}, "shell"),
    ("functions.shellcode", {"shell"}, "shell"),
    ("shelljson", {"shell"}, "shell"),
    ("functions.shellcommentary", {"shell"}, "shell"),
    ("functions.shellcommentaryjson", {"shell"}, "shell"),
    ("functions.shell.json", {"shell"}, "shell"),
    ("functions.shellJSON", {"shell"}, "shell"),
    ("functions.functions.get_w", {"get_w"}, "get_w"),
    ("functions.functions.functions.get_w", {"get_w"}, "get_w"),
    ("function.get_w", {"get_w"}, "get_w"),
    ("functions:get_w", {"get_w"}, "get_w"),
    ("functions/get_w", {"get_w"}, "get_w"),
    ("functions..get_w", {"get_w"}, "get_w"),
    (".get_w", {"get_w"}, "get_w"),
    ("functions.get_w.", {"get_w"}, "get_w"),
    ("get_w:", {"get_w"}, "get_w"),
    ("Functions.Get_W", {"get_w"}, "get_w"),
    ("functions.functions.shelljson", {"shell"}, "shell"),
    ("functions.get_w", {"functions.get_w"}, "functions.get_w"),
    ("functions.functions.get_w", {"functions.get_w"}, "functions.get_w"),
    ("Knots.Sum", {"knots.sum"}, "knots.sum"),
    ("functions.knots.sumjson", {"knots.sum"}, "knots.sum"),
    # The name as it stands goes before shorter ones, and its case before others.
    ("functions.functions.shelljson", {"shell", "shelljson"}, "shelljson"),
    ("functions.functions.F", {"f", "F"}, "F"),
    ("functions.functions.barcodejson", {"barcode", "bar"}, "barcode"),
    # More than one, or none.
    ("functions.GET_W", {"get_w", "Get_W"}, None),
    ("functions.functions.f", {"f", "functions.f"}, None),
    ("functions.shell2", {"shell"}, None),
    ("functions.get-w", {"get_w"}, None),
    ("functions.json", {"shell"}, None),
    ("browser.search", {"find"}, None),
    ("other.shell", {"shell"}, None),
    ("functions.", {"shell"}, None),
    ("functions.shelljson", set(), None),
]


@pytest.mark.parametrize(("recipient", "tools", "meant"), MEANT)
def test_a_name_means_the_declared_one_that_it_spells_otherwise(recipient, tools, meant):
    assert declared_name(recipient, tools) == meant
    assert declared_name(recipient, sorted(tools, reverse=True)) == meant


@given(
    st.text("functions.:/jsoncodeABa_ÅſK", max_size=24), st.sets(st.text("abAB.json", min_size=1))
)
@examples(300)
def test_a_name_is_resolved_to_a_declared_one_or_not_at_all(recipient, tools):
    meant = declared_name(recipient, tools)
    assert meant is None or meant in tools
    bare = bare_name(recipient)
    found = {tool for tool in tools if bare and bare_name(tool) == bare}
    assert len(found) != 1 or meant in found


@pytest.mark.parametrize("name", ["functions", "f", "functionsf", "_", "\ufffd", "knots.sum"])
def test_what_is_a_name_stays_one(name):
    assert bare_name(name) == bare_name(f"functions.{name}") == name


# header (channel, recipient, type), left-over words, the header as written, declared names ->
# recipient, type, words that are left
ADDRESSED = [
    (("commentary", None, "json"), "functions.hail", "commentary to= functions.hail json",
     {"hail"}, ("functions.hail", "json", "")),
    (("commentary", None, "json"), "hail", "commentary to= hail json", {"hail"},
     ("hail", "json", "")),
    (("commentary", None, "<|constrain|>json"), "functions.hail",
     "commentary to=  functions.hail<|constrain|>json", {"hail"},
     ("functions.hail", "<|constrain|>json", "")),
    (("commentary", None, None), "to =functions.hail", "commentary to =functions.hail", {"hail"},
     ("functions.hail", None, "")),
    (("commentary", None, None), "to = functions.hail", "commentary to = functions.hail", {"hail"},
     ("functions.hail", None, "")),
    (("commentary", None, "functions.hail"), "", "", {"hail"}, ("functions.hail", None, "")),
    (("commentary", "functions.", "hail"), "", "", {"hail"}, ("functions.hail", None, "")),
    (("commentary", "functions", None), ".hail", "commentary to=functions .hail", {"hail"},
     ("functions.hail", None, "")),
    (("commentary", "functions.get", None), "_w", "commentary to=functions.get _w", {"get_w"},
     ("functions.get_w", None, "")),
    (("commentary", None, "json"), "functions.hailjson now",
     "commentary to= functions.hailjson now json", {"hail"},
     ("functions.hailjson", "json", "now")),
    (("commentary", None, "json"), "Let me see. functions.hail",
     "Let me see.<|channel|>commentary to= functions.hail json", {"hail"},
     ("functions.hail", "json", "Let me see.")),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "left", "written", "tools", "wanted"), ADDRESSED)
def test_a_recipient_that_a_space_broke_is_put_together(fields, left, written, tools, wanted):
    channel, recipient, kind = fields
    header = Header(ASSISTANT, None, channel, recipient, kind)
    found = addressed(header, left, written, tools)
    assert (found.header.recipient, found.header.content_type, found.left) == wanted
    assert found.header.channel == channel
    assert addressed(header, left, written, ()) is None


NOT_ADDRESSED = [
    (Header(ASSISTANT, None, "commentary", None, "json"), "functions.hail",
     "functions.hail<|channel|>commentary json", {"hail"}),  # spoken of, not addressed
    (Header(ASSISTANT, None, "commentary", None, "hail"), "", "", {"hail"}),
    (Header(ASSISTANT, None, "commentary", None, "json"), "", "", {"json"}),
    (Header(ASSISTANT, None, "commentary", "functions.f", "json"), "now",
     "commentary to=functions.f now json", {"f", "fnow"}),
    (Header(ASSISTANT, None, "commentary", "functions.", "json"), "", "", {"hail"}),
    (Header(ASSISTANT, None, "commentary"), "", "", {"hail"}),
    (Header(Role.USER, None, None, None, "functions.hail"), "", "", {"hail"}),
]  # fmt: skip


@pytest.mark.parametrize(("header", "left", "written", "tools"), NOT_ADDRESSED)
def test_other_words_of_a_header_address_nobody(header, left, written, tools):
    assert addressed(header, left, written, tools) is None
