"""OpenAI's client against the backend: it streams, runs the tool that is called, and goes on.

python examples/backend/client.py [http://127.0.0.1:8000/v1]
"""

import json
import sys

from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000/v1"


def get_gauge(station: str) -> str:
    """Stands for the tool."""
    return json.dumps({"station": station, "level_cm": 287})


client = OpenAI(base_url=URL, api_key="none is needed")
messages: list[ChatCompletionMessageParam] = [
    {"role": "user", "content": "How high is the Rhine at Cologne?"}
]
while True:
    with client.chat.completions.stream(model="conversation", messages=messages) as stream:
        for event in stream:
            if event.type == "content.delta":
                print(event.delta, end="", flush=True)
    message = stream.get_final_completion().choices[0].message
    if not message.tool_calls:
        break
    messages.append(message.model_dump(exclude_none=True))  # type: ignore[arg-type]
    for call in message.tool_calls:
        print(f"{call.function.name}({call.function.arguments})")
        result = get_gauge(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
print()
