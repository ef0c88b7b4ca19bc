"""Small experiments on a database, each of which returns what was observed in a few words.

``infra/proof/emulators.toml`` has what moto and DynamoDB Local are known to do.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

from botocore.exceptions import ClientError

TABLE = "probes"
KB = 1024
ROUNDS = 40
"""Rounds in which concurrent transactions may meet."""

Item = dict[str, Any]
Probe = Callable[["Table"], str]


class Table:
    """A table of its own with a local index, and shortcuts for its requests."""

    def __init__(self, client: Any) -> None:
        self.client = client
        client.create_table(
            TableName=TABLE,
            KeySchema=_keys("pk", "sk"),
            AttributeDefinitions=[
                {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "o1")
            ],
            LocalSecondaryIndexes=[
                {
                    "IndexName": "by_o1",
                    "KeySchema": _keys("pk", "o1"),
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            ],
            BillingMode="PAY_PER_REQUEST",
        )

    def put(self, sk: str = "a", pk: str = "p", **more: Any) -> Any:
        """Put an item; values are strings unless they are in DynamoDB's JSON."""
        return self.client.put_item(TableName=TABLE, Item=item(sk, pk, **more))

    def get(self, sk: str = "a", **options: Any) -> Item | None:
        """Return an item, read consistently."""
        options.setdefault("ConsistentRead", True)
        response = self.client.get_item(TableName=TABLE, Key=item(sk), **options)
        row: Item | None = response.get("Item")
        return row

    def update(self, expression: str, values: Item, sk: str = "a", **options: Any) -> Any:
        """Update an item by an expression."""
        return self.client.update_item(
            TableName=TABLE,
            Key=item(sk),
            UpdateExpression=expression,
            ExpressionAttributeValues=values,
            **options,
        )

    def query(self, condition: str = "pk = :p", values: Item | None = None, **more: Any) -> Any:
        """Query a partition."""
        return self.client.query(
            TableName=TABLE,
            KeyConditionExpression=condition,
            ExpressionAttributeValues={":p": {"S": "p"}, **(values or {})},
            **more,
        )

    def transact(self, *actions: Item, **options: Any) -> Any:
        """Send a transaction."""
        return self.client.transact_write_items(TransactItems=list(actions), **options)


def item(sk: str = "a", pk: str = "p", **more: Any) -> Item:
    """Return an item in DynamoDB's JSON."""
    values = {"pk": pk, "sk": sk, **more}
    return {n: v if isinstance(v, dict) else {"S": v} for n, v in values.items()}


def put(sk: str, condition: str = "", **options: Any) -> Item:
    """Return the Put of a transaction."""
    demand = {"ConditionExpression": condition} if condition else {}
    return {"Put": {"TableName": TABLE, "Item": item(sk), **demand, **options}}


def add(sk: str = "a") -> Item:
    """Return the update of a transaction that counts."""
    return {
        "Update": {
            "TableName": TABLE,
            "Key": item(sk),
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
    }


def outcome(call: Callable[[], Any]) -> str:
    """Return the code of a refusal, or "accepted"."""
    try:
        call()
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    except Exception as error:
        return f"crash: {type(error).__name__}"
    return "accepted"


def _keys(partition: str, sort: str) -> Sequence[Item]:
    kinds = ((partition, "HASH"), (sort, "RANGE"))
    return [{"AttributeName": name, "KeyType": kind} for name, kind in kinds]


def token_repeated(table: Table) -> str:
    token = str(uuid4())  # DynamoDB Local keeps the tokens of other probes.
    for _ in range(2):
        table.transact(add(), ClientRequestToken=token)
    return f"carried out {(table.get() or {})['n']['N']} times"


def token_reused(table: Table) -> str:
    token = str(uuid4())
    table.transact(add(), ClientRequestToken=token)
    return outcome(lambda: table.transact(add("b"), ClientRequestToken=token))


def one_item_twice(table: Table) -> str:
    return outcome(lambda: table.transact(put("a"), add("a")))


def items_in_transaction(table: Table) -> str:
    return outcome(lambda: table.transact(*(put(f"{n}") for n in range(101))))


def bytes_in_transaction(table: Table) -> str:
    large = [
        {"Put": {"TableName": TABLE, "Item": item(f"{n}", text="x" * 390 * KB)}} for n in range(11)
    ]
    return outcome(lambda: table.transact(*large))


def cancellation_reasons(table: Table) -> str:
    table.put("a")
    table.put("c")
    free = "attribute_not_exists(pk)"
    try:
        table.transact(put("a", free), put("b", free), put("c", free))
    except ClientError as error:
        return ", ".join(
            reason.get("Code", "-") for reason in error.response["CancellationReasons"]
        )
    return "accepted"


def item_of_failed_condition(table: Table) -> str:
    table.put("a", kept="yes")
    return_values = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    try:
        table.transact(put("a", "attribute_not_exists(pk)", **return_values))
    except ClientError as error:
        (reason,) = error.response["CancellationReasons"]
        return "returned" if reason.get("Item", {}).get("kept") == {"S": "yes"} else "missing"
    return "accepted"


def concurrent_transactions(table: Table) -> str:
    def attempt(_: int) -> str:
        return outcome(lambda: table.transact(add(), add("b")))

    with ThreadPoolExecutor(8) as pool:
        seen = set(pool.map(attempt, range(8 * ROUNDS)))
    return ", ".join(sorted(seen))


def rolled_back(table: Table) -> str:
    table.put("b")
    outcome(lambda: table.transact(put("a"), put("b", "attribute_not_exists(pk)")))
    return "nothing written" if table.get("a") is None else "partly written"


def largest_item(table: Table) -> str:
    room = 400 * KB - len("pkpskatext")
    return outcome(lambda: table.put(text="x" * room))


def too_large_item(table: Table) -> str:
    return outcome(lambda: table.put(text="x" * 400 * KB))


def long_partition_key(table: Table) -> str:
    return outcome(lambda: table.put(pk="x" * 2049))


def long_sort_key(table: Table) -> str:
    return outcome(lambda: table.get("x" * 1025))


def empty_key(table: Table) -> str:
    return outcome(lambda: table.get(""))


def empty_text(table: Table) -> str:
    return outcome(lambda: table.put(text=""))


def empty_set(table: Table) -> str:
    return outcome(lambda: table.put(some={"SS": []}))


def long_number(table: Table) -> str:
    return outcome(lambda: table.put(n={"N": "1" * 39}))


def large_number(table: Table) -> str:
    return outcome(lambda: table.put(n={"N": "1E+126"}))


def nested_deeply(table: Table) -> str:
    value: Item = {"S": "x"}
    for _ in range(33):
        value = {"L": [value]}
    return outcome(lambda: table.put(deep=value))


def page_of_a_query(table: Table) -> str:
    for n in range(4):
        table.put(f"{n}", text="x" * 390 * KB)
    return f"{table.query()['Count']} of 4 items of 390 KB"


def filtered_page(table: Table) -> str:
    for n in range(4):
        table.put(f"{n}", text="x" * 390 * KB)
    absent = {"FilterExpression": "attribute_exists(absent)"}
    page = table.query(**absent)
    return "an empty page with a key" if "LastEvaluatedKey" in page else "the end"


def page_at_its_limit(table: Table) -> str:
    table.put("a")
    table.put("b")
    return "a key" if "LastEvaluatedKey" in table.query(Limit=2) else "no key"


def keys_of_a_batch(table: Table) -> str:
    keys = [item(f"{n}") for n in range(101)]
    return outcome(lambda: table.client.batch_get_item(RequestItems={TABLE: {"Keys": keys}}))


def repeated_key_of_a_batch(table: Table) -> str:
    keys = [item("a"), item("a")]
    return outcome(lambda: table.client.batch_get_item(RequestItems={TABLE: {"Keys": keys}}))


def bytes_of_a_batch(table: Table) -> str:
    keys = [item(f"{n}") for n in range(44)]
    for n in range(44):
        table.put(f"{n}", text="x" * 390 * KB)
    answer = table.client.batch_get_item(RequestItems={TABLE: {"Keys": keys}})
    return "unprocessed keys" if answer["UnprocessedKeys"] else "all 17 MB"


def writes_of_a_batch(table: Table) -> str:
    writes = [{"PutRequest": {"Item": item(f"{n}")}} for n in range(26)]
    return outcome(lambda: table.client.batch_write_item(RequestItems={TABLE: writes}))


def repeated_write_of_a_batch(table: Table) -> str:
    writes = [{"PutRequest": {"Item": item("a")}}] * 2
    return outcome(lambda: table.client.batch_write_item(RequestItems={TABLE: writes}))


def reserved_word(table: Table) -> str:
    return outcome(lambda: table.update("SET status = :v", {":v": {"S": "x"}}))


def long_expression(table: Table) -> str:
    return outcome(lambda: table.update(f"SET {'a' * 4 * KB} = :v", {":v": {"S": "x"}}))


def unused_value(table: Table) -> str:
    return outcome(lambda: table.update("SET a = :v", {":v": {"S": "x"}, ":w": {"S": "y"}}))


def changed_key(table: Table) -> str:
    return outcome(lambda: table.update("SET sk = :v", {":v": {"S": "x"}}))


def range_of_no_keys(table: Table) -> str:
    bounds = {":x": {"S": "b"}, ":y": {"S": "a"}}
    return outcome(lambda: table.query("pk = :p AND sk BETWEEN :x AND :y", bounds))


def number_compared_with_text(table: Table) -> str:
    table.put(n="text")
    values = {":v": {"S": "x"}, ":n": {"N": "1"}}
    return outcome(lambda: table.update("SET a = :v", values, ConditionExpression="n < :n"))


def order_of_sort_keys(table: Table) -> str:
    for sk in ("\U00010000", "\uffff", "é", "z"):
        table.put(sk)
    sort_keys = [row["sk"]["S"] for row in table.query()["Items"]]
    return "bytes of UTF-8" if sort_keys == ["z", "é", "\uffff", "\U00010000"] else "another order"


def order_of_a_scan(table: Table) -> str:
    keys = [f"{n}" for n in range(8)]
    for pk in keys:
        table.put(pk=pk)
    scanned_keys = [row["pk"]["S"] for row in table.client.scan(TableName=TABLE)["Items"]]
    return "as written" if scanned_keys == keys else "another order"


def parallel_scan(table: Table) -> str:
    for n in range(20):
        table.put(pk=f"{n}")
    parts = [
        table.client.scan(TableName=TABLE, Segment=n, TotalSegments=4)["Count"] for n in range(4)
    ]
    return "divided" if sum(parts) == 20 and max(parts) < 20 else f"{sum(parts)} items"


def consistent_index(table: Table) -> str:
    table.put("a", o1="x")
    values = {":x": {"S": "x"}}
    options: Item = {"IndexName": "by_o1", "ConsistentRead": True}
    return f"{table.query('pk = :p AND o1 = :x', values, **options)['Count']} item"


def units_of_a_transaction(table: Table) -> str:
    answer = table.transact(put("a"), ReturnConsumedCapacity="TOTAL")
    capacities = answer.get("ConsumedCapacity") or [{}]
    return f"{capacities[0].get('CapacityUnits', 'no')} units"


def units_of_reads(table: Table) -> str:
    table.put(text="x" * 5 * KB)
    capacities = [
        table.client.get_item(
            TableName=TABLE, Key=item(), ConsistentRead=consistent, ReturnConsumedCapacity="TOTAL"
        )["ConsumedCapacity"]["CapacityUnits"]
        for consistent in (True, False)
    ]
    return " and ".join(map(str, capacities))


def partition_sizes(table: Table) -> str:
    answer = table.transact(put("a"), ReturnItemCollectionMetrics="SIZE")
    return "returned" if answer.get("ItemCollectionMetrics") else "missing"


def expired_item(table: Table) -> str:
    ttl = {"Enabled": True, "AttributeName": "expires"}
    table.client.update_time_to_live(TableName=TABLE, TimeToLiveSpecification=ttl)
    table.put(expires={"N": "1"})
    return "read" if table.get() else "hidden"


def read_after_write(table: Table) -> str:
    stale = 0
    for n in range(20):
        table.put(n={"N": f"{n}"})
        stale += (table.get(ConsistentRead=False) or {}).get("n") != {"N": f"{n}"}
    return f"{stale} stale of 20"


PROBES: dict[str, Probe] = {
    name: probe
    for name, probe in list(globals().items())
    if getattr(probe, "__annotations__", {}) == {"table": Table, "return": str}
}
