"""The stack with the service's tables, bucket, secrets and log groups.

The tables are generated from the store's models. Every resource is retained when the stack is
deleted or the resource is removed from the template. The tables also have deletion protection.
"""

from typing import Any

from chalicelib.engine.tables import TABLES, Row
from infra.deploy.names import function_name
from infra.deploy.policies import FUNCTIONS

CHOICES = {
    "Domain": "",
    "HostedZoneId": "",
    "SitesDomain": "",
    "SitesHostedZoneId": "",
    "AlarmEmail": "",
    "BackupRegion": "",
    "TablesInUse": "workspace",
    "Edge": "true",
}
"""Parameters with the operator's choices, and their defaults.

CloudFormation keeps the value of a parameter that a deployment does not give. This stack is the
first that a deployment changes, and ``destroy`` keeps it. The other stacks receive these values.
"""
LOG_DAYS = 90
"""Days that logs are kept, as long as the audit log. They contain no personal data."""
KEPT_DAYS = 35
"""Days that replaced and deleted objects can be restored, as with tables' point-in-time recovery.
"""
UNFINISHED_DAYS = 1
"""Days until parts of an incomplete multipart upload are deleted. Presigned uploads have no parts.
"""

Resource = dict[str, Any]


def template() -> dict[str, Any]:
    """Return the template, whose parameters and outputs ``stacks.build`` documents."""
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Workspace API: tables, objects, secrets and logs of a stage. All retained.",
        "Parameters": {
            "Stage": {"Type": "String", "AllowedPattern": "[a-z][a-z0-9]{0,15}"},
            "TablePrefix": {
                "Type": "String",
                "Default": "workspace",
                # The bucket's name contains the stage.
                "AllowedPattern": "[a-z][a-z0-9-]{0,15}",
            },
            **{name: {"Type": "String", "Default": value} for name, value in CHOICES.items()},
        },
        "Resources": {
            **{f"{name.title()}Table": table(name, row) for name, row in TABLES.items()},
            **{_logical(name): _log_group(name) for name in FUNCTIONS},
            "Bucket": _bucket(),
            "EdgeSecret": _retained(
                "AWS::SecretsManager::Secret",
                Name=_sub("workspace-api/${Stage}/edge-secret"),
                Description="What the edge adds to every request, so that origins know it.",
                GenerateSecretString={"PasswordLength": 48, "ExcludePunctuation": True},
            ),
            "LlmKeySecret": _retained(
                "AWS::SecretsManager::Secret",
                Name=_sub("workspace-api/${Stage}/llm-api-key"),
                Description="The model provider's key (LLM_API_KEY); empty where it needs none.",
            ),
            "MaxTokenSecret": _retained(
                "AWS::SecretsManager::Secret",
                Name=_sub("workspace-api/${Stage}/max-token"),
                Description="The token of the bot at MAX (MAX_TOKEN); empty without a bot.",
            ),
            "MasterKeySecret": _retained(
                "AWS::SecretsManager::Secret",
                Name=_sub("workspace-api/${Stage}/master-key"),
                Description="The key that secrets of webhooks are computed from. Never lose it.",
                GenerateSecretString={"PasswordLength": 48, "ExcludePunctuation": True},
            ),
            "TelegramTokenSecret": _retained(
                "AWS::SecretsManager::Secret",
                Name=_sub("workspace-api/${Stage}/telegram-bot-token"),
                Description="The Telegram bot's token (TELEGRAM_BOT_TOKEN); empty without a bot.",
            ),
            "SmsKeySecret": _retained(
                "AWS::SecretsManager::Secret",
                Name=_sub("workspace-api/${Stage}/sms-key"),
                Description="The SMS provider's key (SMS_KEY); empty without SMS.",
            ),
        },
        "Outputs": {
            "BucketName": {"Value": {"Ref": "Bucket"}},
            "EdgeSecretArn": {"Value": {"Ref": "EdgeSecret"}},
            "LlmKeySecretArn": {"Value": {"Ref": "LlmKeySecret"}},
            "MasterKeySecretArn": {"Value": {"Ref": "MasterKeySecret"}},
            "MaxTokenSecretArn": {"Value": {"Ref": "MaxTokenSecret"}},
            "TelegramTokenSecretArn": {"Value": {"Ref": "TelegramTokenSecret"}},
            "SmsKeySecretArn": {"Value": {"Ref": "SmsKeySecret"}},
            # CloudFormation stores parameters only together with a change, such as of an output.
            "Choices": {"Value": {"Fn::Join": [";", [{"Ref": name} for name in CHOICES]]}},
        },
    }


def table(name: str, row: type[Row]) -> Resource:
    """Return a model's table as a CloudFormation resource, with the keys of ``ensure_tables``.

    It also has settings that only AWS needs: recovery to any moment of the last 35 days, and
    deletion protection.

    Raises:
        ValueError: the model has a global index, which this function does not support.
    """
    model: Any = row  # PynamoDB has no public names for the next calls.
    schema, expires = model._get_schema(), model._ttl_attribute()  # noqa: SLF001  as above
    if schema["global_secondary_indexes"]:
        msg = f"{name} has a global index: say here how CloudFormation makes it"
        raise ValueError(msg)
    indexes = [
        {
            "IndexName": index["index_name"],
            "KeySchema": _hash_first(index["key_schema"]),
            "Projection": index["projection"],
        }
        for index in schema["local_secondary_indexes"]
    ]
    properties = {
        "TableName": _sub("${TablePrefix}-${Stage}-" + name),
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": schema["attribute_definitions"],
        "KeySchema": _hash_first(schema["key_schema"]),
        # Daily backups by themselves would lose up to a day of bookings and payments.
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
        "DeletionProtectionEnabled": True,
    }
    if indexes:
        properties["LocalSecondaryIndexes"] = sorted(indexes, key=lambda index: index["IndexName"])
    if expires:
        properties["TimeToLiveSpecification"] = {
            "AttributeName": expires.attr_name,
            "Enabled": True,
        }
    return _retained("AWS::DynamoDB::Table", **properties)


def _hash_first(keys: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return a key's parts in DynamoDB's order (API reference, KeySchemaElement)."""
    return sorted(keys, key=lambda key: key["KeyType"])


def _bucket() -> Resource:
    rules = [
        {
            "Id": "FormerVersions",
            "Status": "Enabled",
            "NoncurrentVersionExpiration": {"NoncurrentDays": KEPT_DAYS},
            # Markers of deleted objects would otherwise remain forever and slow down every
            # listing.
            "ExpiredObjectDeleteMarker": True,
        },
        {
            "Id": "UnfinishedUploads",
            "Status": "Enabled",
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": UNFINISHED_DAYS},
        },
    ]
    everything = dict.fromkeys(
        ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"),
        True,
    )
    # Uploads from any page are allowed, because they need a presigned URL.
    uploads = {"AllowedMethods": ["PUT"], "AllowedOrigins": ["*"], "AllowedHeaders": ["*"]}
    encryption = {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    return _retained(
        "AWS::S3::Bucket",
        BucketName=_sub("${TablePrefix}-${Stage}-${AWS::AccountId}-${AWS::Region}"),
        PublicAccessBlockConfiguration=everything,
        # Without ACLs, the bucket's policy decides about every object.
        OwnershipControls={"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
        BucketEncryption={"ServerSideEncryptionConfiguration": [encryption]},
        VersioningConfiguration={"Status": "Enabled"},
        LifecycleConfiguration={"Rules": rules},
        CorsConfiguration={"CorsRules": [{**uploads, "MaxAge": 3600}]},
    )


def _log_group(function: str) -> Resource:
    """Return a function's log group, which Lambda would create without retention."""
    name = function_name("${Stage}", function=function)
    return _retained(
        "AWS::Logs::LogGroup", LogGroupName=_sub(f"/aws/lambda/{name}"), RetentionInDays=LOG_DAYS
    )


def _logical(function: str) -> str:
    words = function.replace("_", "-").split("-")
    return "".join(word.title() for word in words) + "Logs"


def _retained(kind: str, **properties: Any) -> Resource:  # noqa: ANN401  properties as in CloudFormation
    return {
        "Type": kind,
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
        "Properties": properties,
    }


def _sub(text: str) -> dict[str, str]:
    return {"Fn::Sub": text}
