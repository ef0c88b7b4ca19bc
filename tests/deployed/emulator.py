"""Run ministack as AWS on this machine, with additions for ``make test-deployed``.

It runs in an environment of its own (``build/deployed``). Each function under "Additions" adds one
behaviour; its first line says what AWS does. The rest serves ministack's ASGI app:

- over HTTP, at ``AWS_ENDPOINT_URL``, for the SDKs;
- over TLS, at the hosts that AWS gives to APIs and function URLs. A proxy (``HTTPS_PROXY``) leads
  requests for these hosts here and tunnels all others, such as pip's requests.

Each right that a request of a deployed function needs is a line of ``calls.jsonl``: the function,
the action, its resource, and whether the function's policy allows it, as ministack finds.
"""

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack import app as gateway
from ministack.core import iam_evaluator
from ministack.services import apigateway_v1, backup, bedrock_runtime, lambda_svc, s3, sts
from ministack.services.cloudformation import drift, provisioners

FOLDER = Path(os.environ["EMULATOR_FOLDER"])
PYTHON = os.environ["FUNCTION_PYTHON"]
AWS_HOSTS = (".amazonaws.com", ".on.aws")


# Additions


def lock_vaults() -> None:
    """AWS Backup: PUT /backup-vaults/<name>/vault-lock locks a vault, without a response's body."""
    inner = backup.handle_request

    async def handle(method: str, path: str, *more: Any) -> Any:
        if method == "PUT" and path.endswith("/vault-lock"):
            return 200, {}, b""
        return await inner(method, path, *more)

    backup.handle_request = handle


def select_for_backups() -> None:
    """CloudFormation: AWS::Backup::BackupSelection is a selection of its plan; Ref is its id."""

    def create(_: str, request: dict[str, Any], __: str) -> tuple[str, dict[str, str]]:
        status, _headers, body = backup._create_selection(request["BackupPlanId"], request)
        if status >= 400:
            raise ValueError(body)
        selection = json.loads(body)["SelectionId"]
        return selection, {
            "Id": selection,
            "SelectionId": selection,
            "BackupPlanId": request["BackupPlanId"],
        }

    def update(selection: str, old: Any, new: Any, stack: str) -> tuple[str, dict[str, str]]:
        delete(selection, old)
        return create("", new, stack)

    def delete(selection: str, request: dict[str, Any]) -> None:
        backup._delete_selection(request["BackupPlanId"], selection)

    provisioners._RESOURCE_HANDLERS["AWS::Backup::BackupSelection"] = {
        "create": create,
        "update": update,
        "delete": delete,
    }


def alarm_on_expressions() -> None:
    """CloudWatch: an alarm has one metric, or an expression of several (``Metrics``)."""
    inner = provisioners._cw_metric_alarm_record

    def record(name: str, request: dict[str, Any]) -> Any:
        if not (metrics := request.get("Metrics")):
            return inner(name, request)
        single = {key: value for key, value in request.items() if key != "Metrics"}
        alarm = inner(name, single | {"MetricName": "expression", "Namespace": "expression"})
        return alarm | {"Metrics": metrics}

    provisioners._cw_metric_alarm_record = record


def import_apis() -> None:
    """API Gateway: POST /restapis?mode=import creates an API from a definition, PUT replaces it."""
    inner = apigateway_v1.handle_request

    def take(spec: dict[str, Any], about: dict[str, Any]) -> str:
        kinds = spec.get("x-amazon-apigateway-binary-media-types", [])
        return str(apigateway_v1._import_rest_api(spec, about | {"binaryMediaTypes": kinds}))

    async def handle(
        method: str, path: str, headers: Any, body: bytes, query: dict[str, list[str]]
    ) -> Any:
        if (method, path) == ("POST", "/restapis") and "import" in query.get("mode", ()):
            types = query.get("endpointConfigurationTypes", ["EDGE"])
            answered = take(json.loads(body), {"endpointConfiguration": {"types": types}})
            return apigateway_v1._get_rest_api(answered)
        if method == "PUT" and (match := re.fullmatch(r"/restapis/(\w+)", path)):
            ours, spec = match[1], json.loads(body)
            replaced = take(spec, {})
            for kept_state in (apigateway_v1._resources, apigateway_v1._authorizers_v1):
                kept_state[ours] = kept_state[replaced]
            kinds = apigateway_v1._rest_apis[replaced]["binaryMediaTypes"]
            apigateway_v1._rest_apis[ours]["binaryMediaTypes"] = kinds
            apigateway_v1._gateway_responses[ours] = {}
            apigateway_v1._delete_rest_api(replaced)
            return apigateway_v1._get_rest_api(ours)
        return await inner(method, path, headers, body, query)

    apigateway_v1.handle_request = handle


def name_secrets_by_arn() -> None:
    """CloudFormation: Ref of AWS::SecretsManager::Secret is its ARN, not its name."""
    kinds = provisioners._RESOURCE_HANDLERS["AWS::SecretsManager::Secret"]
    create, update, delete = kinds["create"], kinds["update"], kinds["delete"]

    def name(arn: str) -> str:
        return arn.partition(":secret:")[2].rpartition("-")[0]

    def arn_parts(result_of: tuple[str, dict[str, str]]) -> tuple[str, dict[str, str]]:
        return result_of[1]["Arn"], result_of[1]

    kinds["create"] = lambda *request: arn_parts(create(*request))
    kinds["update"] = lambda arn, *request, **more: arn_parts(update(name(arn), *request, **more))
    kinds["delete"] = lambda arn, request: delete(name(arn), request)
    read, properties = drift._DRIFT_READERS["AWS::SecretsManager::Secret"]
    by_name = lambda arn, *request: read(name(arn), *request)  # noqa: E731  as above
    drift._DRIFT_READERS["AWS::SecretsManager::Secret"] = by_name, properties


def read_parts_of_versions() -> None:
    """S3: GET of a version with a Range is answered with 206 and these bytes."""
    inner = s3.handle_request

    async def handle(
        method: str,
        path: str,
        headers: dict[str, str],
        body: bytes,
        query: Any,
        *more_args: Any,
        **more: Any,
    ) -> Any:
        status, answered, content = await inner(
            method, path, headers, body, query, *more_args, **more
        )
        wanted_range = headers.get("range", "")
        if method == "GET" and status == 200 and "versionId" in query and wanted_range:
            first, last = s3._parse_range(wanted_range, len(content))
            about = {"Content-Range": f"bytes {first}-{last}/{len(content)}"}
            part = content[first : last + 1]
            return 206, answered | about | {"Content-Length": str(len(part))}, part
        return status, answered, content

    s3.handle_request = handle


def wrap_runtimes() -> None:
    """Lambda: AWS_LAMBDA_EXEC_WRAPPER is started with the command of the runtime as arguments."""
    dispatch, unpack = lambda_svc._execute_function_dispatch, lambda_svc._provided_runtime_code_dir

    def choose(func: Any, config: dict[str, Any], *more_args: Any) -> Any:
        if "AWS_LAMBDA_EXEC_WRAPPER" in config.get("Environment", {}).get("Variables", {}):
            # ministack speaks the Runtime API with a custom runtime, which is an own "bootstrap".
            config = config | {"Runtime": "provided.al2023"}
            func = func | {"config": config}
        return dispatch(func, config, *more_args)

    def unpack_with_bootstrap(code: bytes) -> str:
        folder = str(unpack(code))
        bootstrap = Path(folder, "bootstrap")
        if not bootstrap.exists():
            wrapper = '"$LAMBDA_TASK_ROOT${AWS_LAMBDA_EXEC_WRAPPER#/var/task}"'
            bootstrap.write_text(f"#!/bin/sh\nexec {wrapper} {PYTHON} /var/runtime/bootstrap.py\n")
            bootstrap.chmod(0o755)
        return folder

    lambda_svc._execute_function_dispatch = choose
    lambda_svc._provided_runtime_code_dir = unpack_with_bootstrap


def answer_slowly() -> None:
    """Bedrock: a model may take minutes. Here it does if the conversation has the word "slowly"."""
    inner = bedrock_runtime.handle_request

    async def handle(method: str, path: str, headers: Any, body: bytes, query: Any) -> Any:
        if b"slowly" in body:
            await asyncio.sleep(300)
        return await inner(method, path, headers, body, query)

    bedrock_runtime.handle_request = handle


def authorize_models() -> None:
    """Bedrock: ConverseStream needs InvokeModelWithResponseStream, on the profile and its model."""
    inner = iam_evaluator.enforce

    def enforce(key: str, action: str, service: str, region: str, **more: Any) -> Any:
        if action != "bedrock:ConverseStream":
            return inner(key, action, service, region, **more)
        start, _, name = more["resource_arn"].rpartition("/")
        resources = [more["resource_arn"]]
        if match := re.match(r"(?:eu|us|apac)\.(.+)", name):
            account = os.environ["MINISTACK_ACCOUNT_ID"]
            profile = f"arn:aws:bedrock:{region}:{account}:inference-profile/{name}"
            resources = [profile, f"{start}/{match[1]}"]
        stream_action = "bedrock:InvokeModelWithResponseStream"
        denials = [
            inner(key, stream_action, service, region, **more | {"resource_arn": resource})
            for resource in resources
        ]
        return next(filter(None, denials), None)

    iam_evaluator.enforce = enforce


def record_rights() -> None:
    """Not of AWS: each right that a deployed function uses is written down, with its function.

    Its session has the function's name.
    """
    inner, calls = iam_evaluator.enforce, (FOLDER / "calls.jsonl").open("a", buffering=1)

    def enforce(key: str, action: str, service: str, region: str, **more: Any) -> Any:
        denial = inner(key, action, service, region, **more)
        if session := sts._sessions.get(key):
            function = session["Arn"].rpartition("/")[2]
            resource = more.get("resource_arn", "*")
            calls.write(json.dumps([function, action, resource, denial is None]) + "\n")
        return denial

    iam_evaluator.enforce = enforce


ADDITIONS = (
    lock_vaults,
    select_for_backups,
    alarm_on_expressions,
    import_apis,
    name_secrets_by_arn,
    read_parts_of_versions,
    wrap_runtimes,
    authorize_models,
)
FOR_TESTS = (answer_slowly, record_rights)


# The server


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Lead requests for an API's own host to the path that ministack uses."""
    host = dict(scope.get("headers", ())).get(b"host", b"").decode()
    if match := re.match(r"(\w+)\.execute-api\.", host):
        prefix = f"/_aws/execute-api/{match[1]}"
        raw = prefix.encode() + scope["raw_path"]
        scope = {**scope, "path": prefix + scope["path"], "raw_path": raw}
    await gateway.app(scope, receive, send)


async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls_port: int) -> None:
    """Handle CONNECT: AWS's hosts are served here, others are tunnelled."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:  # the client has closed an unused connection
        return
    host, _, port = head.split()[1].rpartition(":")
    ours = host.endswith(AWS_HOSTS)
    far, receiver = await asyncio.open_connection(
        "127.0.0.1" if ours else host, tls_port if ours else int(port)
    )
    writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")

    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while piece := await source.read(65536):
                sink.write(piece)
                await sink.drain()
        except OSError:
            pass
        finally:
            sink.close()

    await asyncio.gather(copy(reader, receiver), copy(far, writer))


async def main(port: int, tls_port: int, proxy_port: int) -> None:
    for change in (*FOR_TESTS, *ADDITIONS):
        change()
    config = Config()
    config.insecure_bind = [f"127.0.0.1:{port}"]
    config.bind = [f"127.0.0.1:{tls_port}"]
    config.certfile, config.keyfile = str(FOLDER / "server.pem"), str(FOLDER / "server.key")
    server = await asyncio.start_server(
        lambda reader, writer: proxy(reader, writer, tls_port), "127.0.0.1", proxy_port
    )
    async with server:
        await serve(application, config)


if __name__ == "__main__":
    asyncio.run(main(*(int(argument) for argument in sys.argv[1:])))
