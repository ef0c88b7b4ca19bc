"""moto without its catalogue of EC2. Only the tests use it.

moto's CloudFormation imports all services. EC2 reads its types of instances and images of all
regions then, which takes 150 MB. The stacks of this service have no such resource.
"""

from typing import Any

from moto.utilities import utils

FOLDER = "ec2/resources/"
TYPES = "ec2/resources/instance_types.json"


def skip_ec2() -> None:
    """Hide all instance types and images from EC2, before CloudFormation is used."""
    read = utils.load_resource

    def load_resource(resource: str) -> Any:  # noqa: ANN401  JSON of any shape
        if resource.startswith(FOLDER):
            return {} if resource == TYPES else []
        return read(resource)

    utils.load_resource = load_resource
