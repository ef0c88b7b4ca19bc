"""A bare function that does only what nothing can avoid for a request.

``infra.bench.floor`` runs ``python bare_function.py <kind> <calls> <recording>`` in new processes
and measures them, as ``first_answer.py``, which wrote the recording. The function parses the event,
hashes the key, validates the input and the result by the models of the operation, sends the same
requests to the database, and writes the same body.
"""

import gc
import json
import sys
from typing import Any

Json = dict[str, Any]
MODELS = {
    "read": ("chalicelib.domains.leads.operations.leads", "LeadListQuery", "LeadList"),
    "write": ("chalicelib.domains.catalog.operations.products", "ProductCreate", "ProductResult"),
    "tools/call": ("chalicelib.domains.leads.operations.leads", "LeadListQuery", "LeadList"),
}
"""The module, the input and the result of each kind's operation."""


def main(kind: str, calls: int, recording: str) -> None:
    """Serve a request of a kind.

    Raises:
        RuntimeError: the response is not that of the application.
    """
    gc.disable()  # As the application does.
    sys.path.insert(0, "")
    with open(recording) as file:  # noqa: PTH123  pathlib is not a part of the cost
        recorded = json.load(file)
    from chalicelib.lib import precompiled  # noqa: PLC0415  the imports are part of the measurement

    precompiled.use()
    from hashlib import sha256  # noqa: PLC0415
    from importlib import import_module  # noqa: PLC0415

    from first_answer import stub_database  # type: ignore[import-not-found]  # noqa: PLC0415  beside this script
    from pydantic_core import from_json, to_json  # noqa: PLC0415

    from chalicelib.engine.connection import connection  # noqa: PLC0415

    module, *names = MODELS[kind]
    models = import_module(module)
    read_input, result_of = (getattr(models, name) for name in names)
    stub_database(recorded["key"])
    send = connection().client._make_api_call  # noqa: SLF001  as PynamoDB does
    is_tool = kind == "tools/call"
    data = from_json(recorded["body"])
    if is_tool:
        data = from_json(data["result"]["content"][0]["text"])
    values = {name: value for name, value in data["data"].items() if name != "status"}
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()

    def serve(event: Json, requests: list[tuple[str, Json]]) -> Json:
        scheme, _, token = event["headers"]["Authorization"].partition(" ")
        (_, of_key), *others = requests
        of_key["Key"]["pk"]["S"] = f"KEY#{sha256(token.encode()).hexdigest()}"
        if scheme != "Bearer" or "Item" not in send("GetItem", of_key):
            return {"statusCode": 401}
        message = from_json(event["body"]) if event["body"] else {}
        read_input.model_validate(message["params"]["arguments"] if is_tool else message)
        for operation, request in others:
            send(operation, request)
        result = result_of.model_validate(values)
        body = b'{"data":{"status":true,%b}}' % to_json(result, by_alias=True)[1:-1]
        if is_tool:
            content = [{"type": "text", "text": body.decode()}]
            answer = {"content": content, "isError": False}
            body = to_json({"jsonrpc": "2.0", "id": message["id"], "result": answer})
        headers = {"Content-Type": "application/json"}
        return {"statusCode": 200, "headers": headers, "body": body.decode()}

    for number in range(calls):
        reply = serve(recorded["event"], recorded["next" if number else "first"])
    if kind != "write" and json.loads(reply["body"]) != json.loads(recorded["body"]):
        raise RuntimeError(reply)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
