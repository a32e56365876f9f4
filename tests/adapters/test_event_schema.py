"""The published JSON Schema and TypeScript types are those of the event classes."""

import importlib.util
import json
from pathlib import Path

import jsonschema
import pytest
from clients import events_of
from hypothesis import given
from strategies import examples, streams

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script():
    path = ROOT / "scripts" / "make_event_schema.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def published(name):
    return (ROOT / "harmony_stream" / name).read_text(encoding="utf-8")


SCHEMA = json.loads(published("events.schema.json"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_published_files_are_what_the_script_makes(script):
    assert {name: published(name) for name in script.files()} == script.files()


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@given(streams)
@examples(50)
def test_every_event_is_as_the_schema_says(tokens):
    for event in events_of(tokens):
        VALIDATOR.validate(json.loads(json.dumps(event.to_dict())))


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "content_delta", "index": 0, "start": 0, "stop": 1},
        {"type": "content_delta", "index": 0, "text": "a", "start": 0, "stop": 1, "more": 1},
        {"type": "delta", "index": 0, "text": "a", "start": 0, "stop": 1},
        {"type": "message_end", "index": 0, "end": "over", "complete": True, "start": 0, "stop": 1},
    ],
)
def test_what_is_no_event_is_refused(wrong):
    assert not VALIDATOR.is_valid(wrong)


def test_every_field_is_described():
    for name, definition in SCHEMA["$defs"].items():
        for key, field in definition["properties"].items():
            assert "const" in field or field["description"], (name, key)
