"""The functions of a Lambda zip, unpacked and run in a process without access to anything else."""

import json
import subprocess
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any, Self


def unpack(zipped: Path, folder: Path) -> Path:
    """Unpack a zip as Lambda does, with the file modes it contains. Return the folder."""
    with zipfile.ZipFile(zipped) as archive:
        archive.extractall(folder)
        for entry in archive.infolist():
            if rights := entry.external_attr >> 16 & 0o777:
                (folder / entry.filename).chmod(rights)
    return folder


LAMBDA = """
import json, os, re, resource, sys, types
from contextlib import nullcontext
from datetime import datetime
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)
sys.path.insert(0, sys.argv[1])
import app
from chalicelib.core import clock
context = types.SimpleNamespace(aws_request_id="lambda", function_name="workspace-api-dev")
for line in sys.stdin:
    handler, event, moment = json.loads(line)
    if handler:
        stopped = clock.using(lambda: datetime.fromisoformat(moment)) if moment else nullcontext()
        with stopped:
            answer = getattr(app, handler)(event, context)
    else:
        files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        answer = {"path": sys.path, "files": files}
        answer["seconds"] = sum(each.ru_utime + each.ru_stime for each in used)
        # ``ru_maxrss`` would include the process of the tests, from which this one was started.
        status = open("/proc/self/status").read()
        answer["peak of children"] = used[1].ru_maxrss * 1024
        answer["peak"] = int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) * 1024
    print(json.dumps(answer), file=answers)
"""


class Lambda:
    """The functions of an unpacked zip, run without any other third-party modules."""

    def __init__(self, folder: Path, python: str, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [python, "-I", "-S", "-B", "-c", LAMBDA, str(folder)],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, handler: str, event: dict[str, Any], at: datetime | None = None) -> Any:
        """Run a function on an event. Without a function name, return what the process has used.

        That is the loaded modules, the seconds of processor time with those of its own processes,
        the peaks of its own memory and of the largest of these in bytes.

        ``at`` stops the clock of the function at a moment. Jobs are due in minutes to a year.
        """
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([handler, event, at and at.isoformat()]) + "\n")
        answer = self._process.stdout.readline()
        assert answer, "the function ended; its error is above"
        return json.loads(answer)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        token: str | None = None,
        route: str = "",
        **more: str,
    ) -> tuple[int, Any]:
        """Send an event of API Gateway (REST proxy integration), and return status and envelope.

        ``more`` are further headers.
        """
        headers = {"Accept": "application/json"}
        headers |= more
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        raw_path, _, query = path.partition("?")
        values = dict(pair.split("=") for pair in query.split("&")) if query else None
        event = {
            "resource": route or raw_path,
            "path": raw_path,
            "httpMethod": method,
            "headers": headers,
            "multiValueHeaders": {name: [value] for name, value in headers.items()},
            "queryStringParameters": values,
            "multiValueQueryStringParameters": values and {k: [v] for k, v in values.items()},
            "pathParameters": {"id": raw_path.rpartition("/")[2]} if route else None,
            "stageVariables": None,
            "requestContext": {
                "resourcePath": route or raw_path,
                "path": f"/dev{raw_path}",
                "httpMethod": method,
                "stage": "dev",
                "protocol": "HTTP/1.1",
                "requestId": "c6af9ac6-7b61-11e6-9a41-93e8deadbeef",
                "identity": {"sourceIp": "203.0.113.7"},
            },
            "body": None if body is None else json.dumps(body),
            "isBase64Encoded": False,
        }
        answer = self.run("app", event)
        envelope = json.loads(answer["body"])
        return answer["statusCode"], envelope.get("data", envelope)
