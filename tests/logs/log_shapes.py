"""What engines and trainers write, made by code in the shapes that they have."""

import io
import json
import random
from array import array

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from strategies import tokens_of

THINKING = "<|channel|>analysis<|message|>The tide is out.<|end|>"
ANSWER = "<|channel|>final<|message|>Three boats are in. ⛵<|return|>"
CALL = '<|channel|>commentary to=functions.moor <|constrain|>json<|message|>{"berth": 4}<|call|>'
TURN = "<|start|>assistant"

PROMPT = tokens_of("<|start|>user<|message|>How many boats?<|end|><|start|>assistant")
FIRST = tokens_of(THINKING + TURN + ANSWER)
SECOND = tokens_of(CALL)
ROWS = [FIRST, SECOND]
WIDTH = max(map(len, ROWS))
PAD = 199999


def ids(tokens):
    return array("I", tokens)


def pieces(tokens, size):
    return [tokens[first : first + size] for first in range(0, len(tokens), size)]


def lines(values):
    return "".join(json.dumps(value) + "\n" for value in values).encode()


# -- Whole answers ---------------------------------------------------------------------------------


def vllm_completion(rows=ROWS, prompt=PROMPT):
    return {
        "id": "cmpl-1",
        "object": "text_completion",
        "model": "gpt-oss-20b",
        "choices": [
            {
                "index": n,
                "text": "...",
                "finish_reason": "stop",
                "stop_reason": row[-1],
                "token_ids": row,
                "prompt_token_ids": prompt,
            }
            for n, row in enumerate(rows)
        ],
        "usage": {"prompt_tokens": len(prompt), "completion_tokens": sum(map(len, rows))},
    }


def vllm_chat(rows=ROWS, prompt=PROMPT):
    return {
        "id": "chatcmpl-1",
        "prompt_token_ids": prompt,
        "choices": [
            {"index": n, "message": {"role": "assistant", "content": "..."}, "token_ids": row}
            for n, row in enumerate(rows)
        ],
    }


def vllm_logprobs(rows=ROWS):
    return {
        "choices": [
            {
                "index": n,
                "logprobs": {"content": [{"token": f"token_id:{t}", "logprob": -0.5} for t in row]},
            }
            for n, row in enumerate(rows)
        ]
    }


def vllm_completion_logprobs(rows=ROWS):
    return {
        "choices": [
            {"index": n, "logprobs": {"tokens": [f"token_id:{t}" for t in row]}}
            for n, row in enumerate(rows)
        ]
    }


def vllm_responses(rows=ROWS, prompt=PROMPT):
    def raw(tokens):
        return {"type": "raw_message_tokens", "message": "...", "tokens": tokens}

    return {
        "id": "resp_1",
        "input_messages": [raw(prompt)],
        "output_messages": [raw(row) for row in rows],
    }


def sglang_generate(row=FIRST):
    return {
        "text": "...",
        "output_ids": row,
        "meta_info": {"id": "a", "completion_tokens": len(row), "finish_reason": {"type": "stop"}},
    }


def sglang_logprobs(row=FIRST):
    triples = [[-0.25, token, None] for token in row]
    return {"text": "...", "meta_info": {"id": "a", "output_token_logprobs": triples}}


def sglang_chat(rows=ROWS, prompt=PROMPT):
    return {
        "id": "b",
        "choices": [{"index": n, "message": {}} for n, _ in enumerate(rows)],
        "sglext": {"output_ids": rows, "input_ids": prompt},
    }


def sglang_chat_response_ids(rows=ROWS):
    return {"choices": [{"index": n, "response_token_ids": row} for n, row in enumerate(rows)]}


def tinker(rows=ROWS, prompt=PROMPT):
    samples = [
        {"tokens": row, "logprobs": [-0.1] * len(row), "stop_reason": "stop"} for row in rows
    ]
    return {"prompt_tokens": prompt, "samples": samples}


def trl(rows=ROWS, prompt=PROMPT):
    return {"prompt_ids": [prompt] * len(rows), "completion_ids": rows, "logprobs": []}


# -- Captures of streams ---------------------------------------------------------------------------


def sse(events, ending="\n", done=True):
    blocks = [f"data: {json.dumps(event)}{ending}{ending}" for event in events]
    return ("".join(blocks) + (f"data: [DONE]{ending}{ending}" if done else "")).encode()


def vllm_events(tokens=FIRST, choice=0, name="cmpl-1", size=5, prompt=PROMPT):
    """vLLM: new ids with each event, the prompt with the first."""
    parts = pieces(tokens, size)
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        event = {
            "id": name,
            "model": "gpt-oss-20b",
            "choices": [
                {
                    "index": choice,
                    "text": "...",
                    "token_ids": part,
                    "finish_reason": "stop" if is_last else None,
                    "stop_reason": tokens[-1] if is_last else None,
                }
            ],
        }
        if number == 0:
            event["choices"][0]["prompt_token_ids"] = prompt
        yield event


def sglang_events(tokens=FIRST, index=0, name="rid-1", size=5, cumulative=True):
    """SGLang: all ids so far, or new ones; the count of all is beside them."""
    for stop in [*range(size, len(tokens), size), len(tokens)]:
        begin = 0 if cumulative else (stop - 1) // size * size
        reason = {"type": "stop", "matched": tokens[-1]} if stop == len(tokens) else None
        yield {
            "text": "...",
            "index": index,
            "output_ids": tokens[begin:stop],
            "meta_info": {"id": name, "completion_tokens": stop, "finish_reason": reason},
        }


def llama_cpp_events(tokens=FIRST, size=1):
    """llama.cpp: new ids with each event, and no id; `stop` comes with the last, which has none."""
    for part in pieces(tokens, size):
        yield {"index": 0, "content": "...", "tokens": part, "stop": False, "id_slot": -1}
    yield {"index": 0, "content": "", "tokens": [], "stop": True, "stop_type": "eos"}


# -- Tables and arrays -----------------------------------------------------------------------------


def padded(rows=ROWS, pad=PAD, left=False, dtype=np.int64):
    table = np.full((len(rows), max(map(len, rows))), pad, dtype)
    for row, tokens in enumerate(rows):
        start = table.shape[1] - len(tokens) if left else 0
        table[row, start : start + len(tokens)] = tokens
    return table


def npy(values):
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def npz(save=np.savez, **arrays):
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def ray_table(rows=ROWS, kind=None):
    return pa.table(
        {
            "id": pa.array([f"r{n}" for n, _ in enumerate(rows)]),
            "prompt_token_ids": pa.array([PROMPT] * len(rows), pa.list_(pa.int64())),
            "generated_tokens": pa.array(rows, kind or pa.list_(pa.int64())),
            "num_generated_tokens": pa.array([len(row or ()) for row in rows]),
        }
    )


def parquet(table, **options):
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def arrow_file(table):
    file = io.BytesIO()
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


def arrow_stream(table):
    file = io.BytesIO()
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


def big_log(path, tokens):
    """A well-formed log of at least so many tokens, which does not compress well."""
    chance = random.Random(5)
    with path.open("wb") as file:
        for _ in range(tokens // (len(FIRST) + 10) + 1):
            words = [chance.randrange(199998) for _ in range(10)]
            file.write(lines([{"token_ids": [*FIRST[:5], *words, *FIRST[5:]]}]))
    return path
