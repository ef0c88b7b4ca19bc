"""Files that the console's forms send, which become files of the workspace.

A browser cannot fill a file control again. The files are therefore stored before the other fields
are checked, and a refused form carries their ids in hidden fields with the control's name.
"""

from chalicelib.core.errors import AppError
from chalicelib.transports.console.console_request import ConsoleRequest, Uploads

REFUSED_FILE = "refused_file"  # key of a field error whose message is ``Uploads.problem``


def store_files(request: ConsoleRequest, control: str) -> Uploads:
    """Store the files of a control, once in a request, and return them after the earlier ones.

    A refused file ends the upload. Its message is in the language of the page.
    """
    if control not in request.uploads:
        request.uploads[control] = _store(request, control)
    return request.uploads[control]


def _store(request: ConsoleRequest, control: str) -> Uploads:
    ids = [file_id for file_id in request.form.get(control, []) if file_id]
    files = [file for file in request.sent_files if file.field == control]
    for place, file in enumerate(files):
        try:
            ids.append(request.upload(file, f"{control}-{place}")["id"])
        except AppError as error:
            problem = request.problem(error)
            return Uploads(ids, next(iter(problem.fields.values()), problem.summary))
    return Uploads(ids)
