"""JSON schema -> TypeScript: as the wheels print it, and as it should be."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reference import Wheel
from strategies import VOCABULARY, examples

from harmony_stream.errors import RenderError, RenderReferenceError
from harmony_stream.rendering.profiles import GUIDE, OPENAI_0_0_8, OSS_0_0_11
from harmony_stream.rendering.typescript import tool_identifiers, tool_type
from harmony_stream.values.tools import ToolDescription

FILE = Path(__file__).parents[2] / "cases/typescript.json"
ALL_CASES = {case["id"]: case for case in json.loads(FILE.read_text(encoding="utf-8"))}
CASES = {name: case for name, case in ALL_CASES.items() if "names" not in case}


def tool_of(case):
    return ToolDescription(**(case["tools"][0] if "tools" in case else case["schema"]))


def guide_type(parameters, description=""):
    tool = ToolDescription(name="f", description=description, parameters=parameters)
    return tool_type(tool, GUIDE)


def guide_argument(parameters):
    """What the guide profile prints for the argument alone."""
    return guide_type(parameters).removeprefix("type f = (_: ").removesuffix(") => any;")


def guide_property(schema, **others):
    """What it prints for one property."""
    printed = guide_argument({"type": "object", "properties": {"x": schema}, **others})
    return printed.removeprefix("{\n").removesuffix("\n}")


# --- Cases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("profile", [OPENAI_0_0_8, OSS_0_0_11], ids=lambda profile: profile.name)
def test_the_wheels_print_these_texts(case, profile):
    assert tool_type(tool_of(case), profile) == case["text_0_0_8"]


# Where the guide profile says something else than the wheels: what, and nowhere else.
MENDED = {
    "ts-004": "// Does the thing.\n// all options\ntype everything = (_: {\n// LABEL\n",
    "ts-011": 'side?: "port" | null,',
    "ts-019": "headers?: {\n    [key: string]: string,\n    },",
    "ts-022": "// optional note\nnote?: string | null, // default: null",
    "ts-025": "// width\nv?:\n | number\n | string // width with unit\n,",
    "ts-026": "v?: {\n    a?: string,\n    } & {\n    b?: number,\n    },",
    "ts-027": "memo: {\n    text: string,\n    },",
    "ts-028": "subs?: sendMemo_memo[],",
    "ts-029": "// A map\nmap?: {\n    [key: string]: string,\n    },",
    "ts-030": "// First line.\n// Second line.\nq: string,",
    "ts-033": '"user-id": string,\n"2nd"?: number,\ngröße?: number,',
    "ts-034": "// Does the thing.\ntype op = () => any;",
    "ts-037": "// Examples:\n// - 1\n// - 2\nn?: number,",
    "bug-123": 'kind: "point",',
    "bug-124": 'x?: ("a" | "b")[],',
    "bug-125": "x?: (string | null)[],",
    "bug-126": "x?: (string | number)[],",
    "bug-128": "x?: string[] | null,",
    "bug-129": 'x?: "null_value" | null,',
    "bug-132": "// line one\n// line two\nx?: string,",
    "bug-133": 'x?: string, // default: "a\\nb"',
    "bug-134": 'x?: "a\\"b" | "c\\\\d",',
    "bug-135": '"my-key"?: string,\n"a b"?: string,',
    "bug-137": "// Does it.\n// Top text\ntype f = (_: {\n// inner\nx?: {\n    y?: string,\n    },",
    "bug-138": "(_: {\na?: string,\n} | {\nb?: string,\n}) => any;",
    "bug-139": "// Examples:\n// - 1\n// - 2\nx?: number,",
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_guide_profile_mends_these_cases_and_leaves_the_others_alone(case):
    printed = tool_type(tool_of(case), GUIDE)

    if case["id"] in MENDED:
        assert MENDED[case["id"]] in printed
        assert printed != case["text_0_0_8"]
    else:
        assert printed == case["text_0_0_8"]


@pytest.mark.parametrize("case", [case for case in CASES.values() if "wanted" in case],
                         ids=lambda case: case["id"])  # fmt: skip
def test_what_a_case_wants_is_printed(case):
    wanted = case["wanted"]
    lines = tool_type(tool_of(case), GUIDE).split("\n")

    for line in wanted.get("lines", wanted.get("property_lines", [])):
        assert line in lines
    assert wanted.get("property_line", lines[0]) in lines


# --- The guide profile, feature by feature -------------------------------------------------------

S, N, NULL = {"type": "string"}, {"type": "number"}, {"type": "null"}
XY = {"type": "object", "properties": {"y": S}}

PROPERTIES = {
    "constant": ({"const": -1.5}, "x?: -1.5,"),
    "constant null": ({"const": None}, "x?: null,"),
    "constant object": ({"const": {"a": [1]}}, 'x?: {"a":[1]},'),
    "enum without a type": ({"enum": ["a", 1, None, True]}, 'x?: "a" | 1 | null | true,'),
    "enum of numbers": ({"type": "integer", "enum": [1, 2]}, "x?: 1 | 2,"),
    "enum cut by its type": ({"type": "string", "enum": ["a", 1]}, 'x?: "a",'),
    "enum with null": ({"type": "string", "enum": ["a", 1, None]}, 'x?: "a" | null,'),
    "enum of another type with null": ({"type": "string", "enum": [1, None]}, "x?: 1 | null,"),
    "enum of null": ({"type": "string", "enum": [None]}, "x?: null,"),
    "enum whose type has null": ({"type": ["string", "null"], "enum": ["a", "b"]},
                                 'x?: "a" | "b" | null,'),
    "enum and type that have null": ({"type": ["null", "string"], "enum": [None, "a"]},
                                     'x?: null | "a",'),
    "nullable enum": ({"type": "string", "enum": ["a"], "nullable": True}, 'x?: "a" | null,'),
    "constant whose type has null": ({"type": ["string", "null"], "const": "a"}, 'x?: "a" | null,'),
    "constant of another type": ({"type": "string", "const": 1}, "x?: 1,"),
    "enum of another type": ({"type": "string", "enum": [1, 2]}, "x?: 1 | 2,"),
    "enum of an unknown type": ({"type": "day", "enum": ["mon"]}, 'x?: "mon",'),
    "enum with a line separator": ({"enum": ["a\u2028"]}, 'x?: "a\\u2028",'),
    "null": (NULL, "x?: null,"),
    "nullable": ({**S, "nullable": True}, "x?: string | null,"),
    "nullable enum that has null": ({"enum": ["a", None], "nullable": True}, 'x?: "a" | null,'),
    "nullable object": ({**XY, "nullable": True}, "x?: {\n    y?: string,\n    } | null,"),
    "nullable items": ({"type": "array", "items": {**S, "nullable": True}},
                       "x?: (string | null)[],"),
    "types": ({"type": ["array", "object", "null"], "items": S, "properties": {"y": S}},
              "x?: string[] | {\n    y?: string,\n    } | null,"),
    "unknown types": ({"type": ["day", 5]}, "x?: any,"),
    "object without a type": ({"properties": {"y": S}}, "x?: {\n    y?: string,\n    },"),
    "array without a type": ({"items": S}, "x?: string[],"),
    "array of anything": ({"type": "array"}, "x?: Array<any>,"),
    "array of true": ({"type": "array", "items": True}, "x?: any[],"),
    "array of nothing": ({"type": "array", "items": False}, "x?: never[],"),
    "tuple": ({"type": "array", "prefixItems": [S, N]}, "x?: [string, number],"),
    "tuple of anything": ({"prefixItems": [True, S]}, "x?: [any, string],"),
    "old tuple": ({"type": "array", "items": [S, N]}, "x?: [string, number],"),
    "description of items": ({"type": "array", "items": {**XY, "description": "one"},
                              "description": "all"},
                             "// all\n// one\nx?: {\n    y?: string,\n    }[],"),
    "description of a tuple's items": (
        {"prefixItems": [{**S, "description": "one"}, {**N, "description": "two"}]},
        "// one\n// two\nx?: [string, number],"),
    "descriptions of items of items": (
        {"items": {"description": "row", "items": {**N, "description": "cell"}, "default": []},
         "default": [[1]]},
        "// row\n// cell\nx?: number[][], // default: [[1]]"),
    "description of items in allOf": (
        {"allOf": [{"type": "array", "items": {**S, "description": "one"}}]},
        "// one\nx?: string[],"),
    "map beside properties": ({**XY, "additionalProperties": {**N, "description": "d"}},
                              "x?: {\n    y?: string,\n    } & {\n    // d\n"
                              "    [key: string]: number,\n    },"),
    "no other properties": ({**XY, "additionalProperties": False},
                            "x?: {\n    y?: string,\n    },"),
    "any other properties": ({**XY, "additionalProperties": True},
                             "x?: {\n    y?: string,\n    [key: string]: any,\n    },"),
    "other properties without a word": ({**XY, "additionalProperties": {}},
                                        "x?: {\n    y?: string,\n    [key: string]: any,\n    },"),
    "any properties": ({"type": "object", "additionalProperties": True},
                       "x?: {\n    [key: string]: any,\n    },"),
    "any properties without a type": ({"additionalProperties": {}},
                                      "x?: {\n    [key: string]: any,\n    },"),
    "any properties that are described": (
        {"additionalProperties": {"description": "d"}},
        "x?: {\n    // d\n    [key: string]: any,\n    },"),
    "no properties": ({"type": "object", "additionalProperties": False}, "x?: {\n    },"),
    "any properties beside a union": (
        {"oneOf": [S, N], "additionalProperties": {}},
        "x?: {\n    [key: string]: any,\n    } & (string | number),"),
    "anything": (True, "x?: any,"),
    "nothing": (False, "x?: never,"),
    "no schema": (5, "x?: any,"),
    "anyOf": ({"anyOf": [S, NULL]}, "x?: string | null,"),
    "anyOf that is described": ({"anyOf": [{**S, "description": "a\nb"}, {**N, "default": 2}]},
                                "x?:\n | string // a\n   // b\n | number // default: 2\n,"),
    "anyOf of anything": ({"type": "string", "anyOf": [{}, {}]}, "x?: string,"),
    "anyOf and oneOf": ({"anyOf": [S, N], "oneOf": [S, NULL]},
                        "x?: (string | null) & (string | number),"),
    "requirements": ({**XY, "anyOf": [{"required": ["y"]}]}, "x?: {\n    y?: string,\n    },"),
    "object in one of two ways": ({**XY, "oneOf": [{"properties": {"z": S}}, NULL]},
                                  "x?: {\n    y?: string,\n    } & ({\n    z?: string,\n"
                                  "    } | null),"),
    "oneOf": ({"oneOf": [S, XY]}, "x?:\n | string\n | {\n   y?: string,\n   }\n,"),
    "nullable oneOf": ({"oneOf": [S, N], "nullable": True},
                       "x?:\n | string\n | number\n | null\n,"),
    "nullable oneOf with null": ({"oneOf": [S, NULL], "nullable": True},
                                 "x?:\n | string\n | null\n,"),
    "oneOf in oneOf": ({"oneOf": [{"oneOf": [S, N]}, NULL]}, "x?:\n | string | number\n | null\n,"),
    "described oneOf in items": ({"items": {"oneOf": [{**S, "description": "a"}, N]}},
                                 "x?: (\n     | string // a\n     | number\n    )[],"),
    "first variant described": ({"description": "d", "oneOf": [{**S, "description": "a"}]},
                                "// d\nx?:\n | string // a\n,"),
    "oneOf that is no list": ({"type": "string", "oneOf": {}, "description": "d", "default": 1},
                              "// d\nx?: string, // default: 1"),
    "allOf": ({"allOf": [{"anyOf": [S, N]}, N]}, "x?: (string | number) & number,"),
    "default in allOf": ({"allOf": [{"enum": ["a"], "default": "a"}, {"default": "b"}]},
                         'x?: "a", // default: a'),
    "default beside allOf": ({"allOf": [{**S, "default": "a"}], "default": "b"},
                             'x?: string, // default: "b"'),
    "default of anyOf": ({"anyOf": [{"enum": ["a"]}, NULL], "default": "a"},
                         'x?: "a" | null, // default: "a"'),
    "defaults in anyOf": ({"anyOf": [{"allOf": [{**N, "default": 1}]}, NULL], "default": None},
                          "// default: null\nx?:\n | number // default: 1\n | null\n,"),
    "allOf of one": ({"allOf": [{**S, "description": "d"}]}, "// d\nx?: string,"),
    "default of an enum": ({"enum": ["a"], "default": "a"}, 'x?: "a", // default: a'),
    "broken default of an enum": ({"enum": ["a"], "default": "a\n"}, 'x?: "a", // default: "a\\n"'),
    "title of two lines": ({**S, "title": "a\nb"}, "// a\n// b\n//\nx?: string,"),
    "example with a quote": ({**S, "examples": ['"']}, '// Examples:\n// - "\\""\nx?: string,'),
    "old line ends": ({**S, "description": "a\rb\u2029c\r\n"}, "// a\n// b\n// c\nx?: string,"),
    "odd line ends": ({**S, "title": "a\x85b\v\fc\x1cd", "default": "\x85\x1e"},
                      "// a\n// b\n// \n// c\n// d\n//\n"
                      'x?: string, // default: "\\u0085\\u001e"'),
    "a description that says nothing": ({**S, "description": ""}, "// \nx?: string,"),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "printed"), PROPERTIES.values(), ids=PROPERTIES)
def test_a_property_is_printed_as(schema, printed):
    assert guide_property(schema) == printed


ARGUMENTS = {
    "nullable oneOf": ({"oneOf": [S, N], "nullable": True}, "\n | string\n | number\n | null"),
    "oneOf": ({"oneOf": [S, N]}, "\n | string\n | number"),
    "a comment at the end": ({"oneOf": [S, {**N, "default": "a"}]},
                             '\n | string\n | number // default: "a"\n'),
    "nothing but a reference": ({"$ref": "#/$defs/a", "$defs": {"a": N}}, "number"),
    "anything": ({}, "any"),
    "any properties": ({"type": "object", "properties": {}, "additionalProperties": True},
                       "{\n[key: string]: any,\n}"),
    "no parameters, or null": ({"type": ["object", "null"]}, "{\n} | null"),
    "no references but text": ({"$ref": 5}, "any"),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "printed"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_parameters_are_printed_as(schema, printed):
    assert guide_argument(schema) == printed


@pytest.mark.parametrize(
    ("description", "own", "comments"),
    [("", "", ""), ("a", "a", "// a\n"), ("a", "b\nc", "// a\n// b\n// c\n"), ("", "b", "// b\n")],
)
def test_the_description_of_the_parameters_stands_below_that_of_the_tool(
    description, own, comments
):
    printed = guide_type({"type": "string", "description": own}, description)

    assert printed == f"{comments}type f = (_: string) => any;"


NO_PARAMETERS = [
    {"type": "object"},
    {"type": "object", "properties": {}, "required": []},
    {"type": "object", "properties": {}, "additionalProperties": False, "title": "Nothing"},
    {"properties": {}, "type": ["object"]},
    {"$ref": "#/$defs/none", "$defs": {"none": {"type": "object"}}},
    {"allOf": [{"type": "object", "properties": {}}]},
]


@pytest.mark.parametrize("parameters", NO_PARAMETERS)
def test_parameters_without_any_field_are_none(parameters):
    assert guide_type(parameters, "Does it.") == "// Does it.\ntype f = () => any;"


def test_what_is_said_of_parameters_without_a_field_is_kept():
    assert guide_type({"type": "object", "description": "d"}) == "// d\ntype f = () => any;"


UNITS = {"enum": ["c", "f"], "default": "c", "description": "scale"}
# A definition, and what may stand around it.
DEFINED = [
    UNITS,
    {**S, "default": "a\nb"},
    {"type": "array", "items": {**N, "description": "one", "default": 2}, "default": [1]},
    {**XY, "default": {"y": "a"}},
    {"type": "string", "enum": ["a"], "default": None, "nullable": True},
]
AROUND = {
    "itself": lambda schema: schema,
    "with another default": lambda schema: {**schema, "default": "f"},
    "with a description": lambda schema: {**schema, "description": "d"},
    "allOf": lambda schema: {"allOf": [schema]},
    "allOf with a default": lambda schema: {"allOf": [schema], "default": "f"},
    "anyOf": lambda schema: {"anyOf": [schema, NULL], "default": None},
    "items": lambda schema: {"type": "array", "items": schema, "default": []},
    "tuple": lambda schema: {"prefixItems": [N, schema]},
    "entries": lambda schema: {"type": "object", "additionalProperties": schema},
}


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
@pytest.mark.parametrize("schema", DEFINED)
def test_a_reference_says_what_its_definition_says_in_its_place(schema, around):
    referred = guide_property(around({"$ref": "#/$defs/a"}), **{"$defs": {"a": schema}})

    assert referred == guide_property(around(schema))


def test_descriptions_of_items_that_hold_themselves_end():
    tree = {"description": "A tree.", "items": {"$ref": "#/$defs/tree"}}

    printed = guide_property({"$ref": "#/$defs/tree"}, **{"$defs": {"tree": tree}})

    assert printed.startswith("// A tree.\nx?: f_tree")


@pytest.mark.parametrize("profile", [OPENAI_0_0_8, OSS_0_0_11, GUIDE], ids=lambda each: each.name)
def test_a_tool_without_parameters_takes_none(profile):
    tool = ToolDescription.new("f", "Does it.\r\nTwice.\n")

    assert tool_type(tool, profile) == "// Does it.\n// Twice.\ntype f = () => any;"


def test_parameters_are_seen_as_json():
    tool = ToolDescription.new("f", "", {"enum": ("a",), "default": {1: None}})

    assert tool_type(tool, GUIDE) == 'type f = (_: "a") => any;'


# --- Names of tools ------------------------------------------------------------------------------


def test_names_become_identifiers_each_alone():
    case = ALL_CASES["names-001"]

    assert [tool_identifiers([name])[0] for name in case["names"]] == case["mapped"]


@pytest.mark.parametrize("case", [ALL_CASES["names-003"], ALL_CASES["names-004"]])
def test_names_that_become_one_are_numbered(case):
    assert tool_identifiers(case["names"]) == case["mapped"]


@examples(50)
@given(names=st.lists(st.sampled_from(["a", "a!", "a_2", "a_2_2"]) | st.text(max_size=5)))
def test_no_two_tools_ever_get_one_name(names):
    made = tool_identifiers(names)

    assert len({*made}) == len(names)
    assert all(name.replace("$", "_").isidentifier() for name in made)


# --- References ----------------------------------------------------------------------------------


def test_a_reference_is_printed_in_place_with_the_description_of_what_it_leads_to():
    defs = {"a/b~c d": {"anyOf": [S, N], "description": "either"}}

    printed = guide_property({"$ref": "#/$defs/a~1b~0c%20d"}, **{"$defs": defs})

    assert printed == "// either\nx?: string | number,"


def test_a_reference_may_lead_into_a_list():
    assert guide_property({"$ref": "#/anyOf/1"}, anyOf=[S, N])[:10] == "x?: number"


@pytest.mark.parametrize(
    "reference",
    ["#/$defs/none", "other.json#/a", "#/type/x", "#/list/7", "#/list/x", "#anchor", "#/type/0/y"],
)
def test_a_reference_that_leads_nowhere_is_an_error_with_its_tool(reference):
    with pytest.raises(RenderReferenceError) as caught:
        guide_property({"$ref": reference}, list=[])

    assert (caught.value.value, caught.value.tool) == (reference, "f")
    assert str(caught.value).startswith(f"tool 'f': $ref {reference!r} leads nowhere")


def test_a_type_that_holds_itself_gets_a_name():
    schema = {"description": "A node.", "properties": {"value": N, "next": {"$ref": "#"}}}

    assert guide_type(schema) == (
        "// A node.\n"
        "type f = (_: {\n"
        "value?: number,\n"
        "// A node.\n"
        "next?: {\n"
        "    value?: number,\n"
        "    // A node.\n"
        "    next?: f_parameters,\n"
        "    },\n"
        "}) => any;\n"
        "\n"
        "// A node.\n"
        "type f_parameters = {\n"
        "value?: number,\n"
        "// A node.\n"
        "next?: f_parameters,\n"
        "};"
    )


def test_types_that_are_used_twice_and_refer_to_others_get_names_apart():
    defs = {
        "a": {"type": "array", "items": {"$ref": "#/$defs/leaf"}},
        "b": {"a": {"type": "array", "items": {"$ref": "#/$defs/leaf"}}},
        "leaf": {"enum": [1, 2]},
    }
    twice = {
        name: {"$ref": reference}
        for name, reference in zip("pqrs", ["#/$defs/a", "#/$defs/b/a"] * 2, strict=True)
    }

    printed = guide_type({"properties": twice, "$defs": defs})

    assert printed == (
        "type f = (_: {\np?: f_a,\nq?: f_a_2,\nr?: f_a,\ns?: f_a_2,\n}) => any;\n\n"
        "type f_a = (1 | 2)[];\n\ntype f_a_2 = (1 | 2)[];"
    )


@pytest.mark.parametrize(
    "target",
    [{"$ref": "#/$defs/a"}, {"anyOf": [{"$ref": "#/$defs/a"}]}, {"allOf": [{"$ref": "#/$defs/a"}]}],
)
def test_a_type_that_is_nothing_but_itself_is_anything(target):
    assert guide_argument({"$ref": "#/$defs/a", "$defs": {"a": target}}) == "any"


@pytest.mark.parametrize("key", ["anyOf", "allOf", "oneOf"])
def test_a_bomb_of_references_does_not_explode(key):
    defs = {f"d{level}": {key: [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(40)}

    printed = guide_argument({"$ref": "#/$defs/d0", "$defs": {**defs, "d40": S}})

    assert printed.count("string") < 999


NESTS = {
    "items": lambda inner: {"type": "array", "items": inner},
    "places": lambda inner: {"prefixItems": [inner]},
    "property": lambda inner: {"type": "object", "properties": {"a": inner}},
    "entries": lambda inner: {"type": "object", "additionalProperties": inner},
    "variant": lambda inner: {"oneOf": [inner, S], "description": "a"},
    "part": lambda inner: {"allOf": [inner, {"type": "object"}]},
    "optional property": lambda inner: {
        "type": "object",
        "properties": {"a": {"anyOf": [{**inner, "description": "b"}, {"type": "null"}]}},
    },
    "value": lambda inner: {"const": inner},
}


def nested(kind, levels):
    schema = S
    for _ in range(levels):
        schema = NESTS[kind](schema)
    return schema


def chained(length):
    """Few levels of JSON, but as many types within each other as there are definitions."""
    defs = {
        f"d{number}": {"type": "array", "items": {"$ref": f"#/$defs/d{number + 1}"}}
        for number in range(length)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{length}": S}}


PROFILES_OF_EACH_PRINTER = pytest.mark.parametrize(
    "profile", [OPENAI_0_0_8, GUIDE], ids=lambda each: each.name
)


@PROFILES_OF_EACH_PRINTER
@pytest.mark.parametrize("levels", [129, 1000, 5000, 100_000])
@pytest.mark.parametrize("kind", NESTS)
def test_a_schema_that_is_nested_too_deeply_is_an_error_with_its_tool(profile, kind, levels):
    tool = ToolDescription.new("f", "", nested(kind, levels))

    sentence = "parameters of tool 'f' are nested too deeply: more than 128 levels"
    with pytest.raises(RenderError, match=sentence):
        tool_type(tool, profile)


def test_types_within_types_have_a_limit_too_since_references_make_many_of_few():
    assert guide_argument(chained(42)) == "string" + "[]" * 42

    with pytest.raises(RenderError, match="tool 'f' are nested too deeply: more than 128 levels"):
        guide_argument(chained(43))


@pytest.mark.parametrize("link", [lambda to: to, lambda to: {"allOf": [to]}])
def test_a_description_is_not_looked_for_any_deeper(link):
    defs = {f"d{number}": link({"$ref": f"#/$defs/d{number + 1}"}) for number in range(2000)}
    schema = {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**defs, "d2000": S}}

    with pytest.raises(RenderError, match="tool 'f' are nested too deeply: more than 128 levels"):
        guide_argument(schema)


def test_where_the_caller_leaves_no_room_the_error_is_the_same():
    tool = ToolDescription.new("f", "", nested("property", 20))
    frame, frames = sys._getframe(), 0
    while frame := frame.f_back:
        frames += 1

    with pytest.raises(RenderError, match="parameters of tool 'f' are nested too deeply"):
        called_from(sys.getrecursionlimit() - frames - 100, tool, GUIDE)


@PROFILES_OF_EACH_PRINTER
@pytest.mark.parametrize("kind", NESTS)
def test_a_schema_of_sixty_levels_is_printed_however_deep_the_caller_is(profile, kind):
    levels = max(n for n in range(60) if depth_of(nested(kind, n)) <= 60)
    tool = ToolDescription.new("f", "", nested(kind, levels))

    assert called_from(200, tool, profile) == tool_type(tool, profile)


def called_from(frames, tool, profile):
    """What is printed so many frames further down the stack."""
    return called_from(frames - 1, tool, profile) if frames else tool_type(tool, profile)


def depth_of(value):
    inside = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth_of, inside), default=0) if isinstance(value, dict | list) else 0


# --- Against the wheels --------------------------------------------------------------------------

TEXTS = st.one_of(
    st.sampled_from(["", "null", "a", "b", "a\nb", "a\r\nb\n", '"', "\\", "é\u2028", "\x01"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inside: st.lists(inside, max_size=2) | st.dictionaries(TEXTS, inside, max_size=2),
    max_leaves=4,
)
KINDS = st.sampled_from(
    ["string", "number", "integer", "boolean", "object", "object", "array", "null", "day", "", 5]
)


def schemas_of(inside):
    """Schemas whose keys hold what they should as a rule, and any JSON now and then."""
    keys = {
        "type": KINDS | st.lists(KINDS, max_size=3),
        "oneOf": st.lists(inside, max_size=3),
        "anyOf": st.lists(inside, max_size=2),
        "properties": st.dictionaries(TEXTS, inside, max_size=3),
        "items": inside,
        "required": st.lists(TEXTS, max_size=2),
        "description": TEXTS,
        "title": TEXTS,
        "examples": st.lists(JSON, max_size=2),
        "enum": st.lists(JSON, max_size=3),
        "nullable": st.booleans(),
        "default": JSON,
    }
    return st.fixed_dictionaries(
        {}, optional={key: st.one_of(*[values] * 4, JSON) for key, values in keys.items()}
    )


SCHEMAS = schemas_of(st.recursive(schemas_of(JSON) | JSON, schemas_of, max_leaves=4))


@pytest.fixture(scope="module", params=[OPENAI_0_0_8, OSS_0_0_11], ids=lambda each: each.name)
def wheel_and_profile(request, official_vocabulary_file):
    wheel = Wheel(request.param.name)
    yield wheel.or_skip(), request.param
    wheel.close()


def in_namespace(tools):
    namespace = {"name": "n", "tools": [tool.model_dump() for tool in tools]}
    content = {"type": "developer_content", "tools": {"n": namespace}}
    return {"role": "developer", "content": [content]}


def printed_by(wheel, tools):
    text = VOCABULARY.decode(wheel.tokens("render", message=in_namespace(tools)))
    return text.partition("namespace n {\n\n")[2].rpartition("\n\n} // namespace n")[0]


@pytest.mark.slow
@examples(25)
@given(schemas=st.lists(SCHEMAS, min_size=1, max_size=4), description=TEXTS)
def test_any_schema_is_printed_as_the_wheel_prints_it(wheel_and_profile, schemas, description):
    wheel, profile = wheel_and_profile
    tools = [ToolDescription.new("f", description, schema) for schema in schemas]

    ours = "\n\n".join(tool_type(tool, profile) for tool in tools)

    assert ours == printed_by(wheel, tools)


@pytest.mark.slow
@examples(100)
@given(numbers=st.lists(NUMBERS, min_size=1))
@example(numbers=[1.5e-05, 1e16, 5e-324, 2**64, -(2**63) - 1, 1.843730814488602e-203])
def test_any_number_is_printed_as_the_wheel_prints_it(wheel_and_profile, numbers):
    wheel, profile = wheel_and_profile
    schema = {"type": "object", "properties": {"x": {"default": numbers}}}
    tool = ToolDescription.new("f", "", schema)

    assert tool_type(tool, profile) == printed_by(wheel, [tool])


# Numbers that the parser of the wheels reads inexactly, and their text in 0.0.8 and 0.0.11.
READ_BY_THE_WHEELS = [
    (2**64 - 1, "18446744073709551615", "18446744073709551615"),
    (2**64, "1.8446744073709552e19", "1.8446744073709552e+19"),
    (-(2**63) - 1, "-9.223372036854776e18", "-9.223372036854776e+18"),
    (10**25 + 1, "1e25", "1e+25"),
    (1.5e-05, "0.000015", "0.000015"),
    (5e-324, "5e-324", "5e-324"),
    (1.843730814488602e-203, "1.8437308144886018e-203", "1.8437308144886018e-203"),
]


@pytest.mark.parametrize(("number", "older", "newer"), READ_BY_THE_WHEELS)
def test_numbers_are_written_as_the_wheels_read_them(number, older, newer):
    schema = {"type": "object", "properties": {"x": {"default": number}}}
    tool = ToolDescription.new("f", "", schema)

    for profile, text in [(OPENAI_0_0_8, older), (OSS_0_0_11, newer)]:
        assert tool_type(tool, profile).split("\n")[1] == f"x?: any, // default: {text}"


@pytest.mark.parametrize("schema", [5, None, "string", [], True])
def test_the_wheels_take_what_is_not_a_schema_for_anything(schema):
    tool = ToolDescription.new("f", "", {"type": "array", "items": schema})

    assert tool_type(tool, OPENAI_0_0_8) == "type f = (_: any[]) => any;"


# What the wheels print soundly: one line of text, one type, no enumerations of other things.
PLAIN = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=5)
NAMES = st.text(st.characters(categories=["L"]), min_size=1, max_size=5).filter(str.isidentifier)


def sound_schemas_of(inside):
    notes = {"description": PLAIN, "title": PLAIN, "examples": st.lists(PLAIN, max_size=2)}
    defaults = {"default": PLAIN | st.booleans() | st.integers(-9, 9)}
    strings = st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={"enum": st.lists(PLAIN, max_size=3), **notes, **defaults},
    )
    numbers = st.fixed_dictionaries(
        {"type": st.sampled_from(["number", "integer", "boolean"])}, optional={**notes, **defaults}
    )
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, inside, max_size=3)}
    )
    arrays = st.fixed_dictionaries(
        {
            "type": st.just("array"),
            "items": objects | numbers.map(lambda each: {"type": each["type"]}),
        },
        optional={"description": PLAIN},
    )
    unions = st.fixed_dictionaries(
        {"oneOf": st.lists(strings | numbers, min_size=1, max_size=3)}, optional=defaults
    )
    return st.one_of(strings, numbers, objects, arrays, unions)


SOUND = st.recursive(sound_schemas_of(st.just({})), sound_schemas_of, max_leaves=5)


@examples(100)
@given(properties=st.dictionaries(NAMES, SOUND, min_size=1, max_size=3))
def test_what_the_wheels_print_soundly_the_guide_profile_prints_alike(properties):
    tool = ToolDescription.new("f", "Does it.", {"type": "object", "properties": properties})

    assert tool_type(tool, GUIDE) == tool_type(tool, OPENAI_0_0_8)


# --- Against the compiler ------------------------------------------------------------------------

COMPILER = (
    Path(__file__).resolve().parents[3] / ".reference/typescript/node_modules/typescript/bin/tsc"
)
REFERENCES = st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/$defs/c"])


def linked_schemas_of(inside):
    return st.one_of(
        schemas_of(inside),
        st.fixed_dictionaries({"$ref": REFERENCES}),
        st.fixed_dictionaries({"allOf": st.lists(inside, max_size=2)}),
        st.fixed_dictionaries(
            {"additionalProperties": inside}, optional={"properties": st.just({"a": {}})}
        ),
        st.fixed_dictionaries({"const": JSON}),
    )


LINKED = st.recursive(JSON, linked_schemas_of, max_leaves=4)
TOOLS = st.fixed_dictionaries(
    dict.fromkeys("abc", LINKED),
).flatmap(lambda defs: linked_schemas_of(LINKED).map(lambda schema: {**schema, "$defs": defs}))


@pytest.mark.slow
@pytest.mark.skipif(not COMPILER.exists(), reason="run scripts/setup_typescript.py first")
@examples(3)
@given(schemas=st.lists(TOOLS, min_size=20, max_size=40))
def test_whatever_the_guide_profile_prints_compiles(tmp_path_factory, schemas):
    case_types = [
        tool_type(tool_of(case), GUIDE) for case in CASES.values() if case["id"] != "bug-135"
    ]
    types = [guide_type(schema, "a\rb\u2028c") for schema in schemas] + case_types
    namespaces = [f"namespace n{number} {{\n{text}\n}}" for number, text in enumerate(types)]
    path = tmp_path_factory.mktemp("types") / "tools.ts"
    path.write_text("\n".join(namespaces), encoding="utf-8")

    command = [COMPILER, "--noEmit", "--strict", "--target", "esnext", path]
    result = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (result.returncode, result.stdout) == (0, "")
