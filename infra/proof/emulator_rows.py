"""Differences of moto and DynamoDB Local from AWS's documents that matter to the service.

A row with a ``probe`` names an experiment of ``tests/proof/emulators/probes.py``, and what both
emulators were observed to do. The tests repeat it, so a row that becomes false fails.
"""

from dataclasses import dataclass

UNVERIFIED = "unverified"


@dataclass(frozen=True)
class Row:
    """A behaviour: where the service relies on it, what AWS documents, and both emulators.

    ``moto`` is as the suite runs it (``infra/local/quick_moto``). ``agrees`` names the
    emulators that do what AWS documents. Without a probe, nothing was tried: ``instead`` says what
    stands in for it in the tests.
    """

    topic: str
    relied_on: str
    aws: str
    probe: str = ""
    moto: str = UNVERIFIED
    local: str = UNVERIFIED
    agrees: str = ""
    instead: str = ""


REFUSED = "ValidationException"
ACCEPTED = "accepted"
BOTH, LOCAL, MOTO, NEITHER = "both", "DynamoDB Local", "moto", "neither"

EACH_REASON = "ConditionalCheckFailed, None, ConditionalCheckFailed"

TRANSACTIONS = (
    Row(
        "A request token sent twice",
        "engine/transactions.py, which adds a marker row",
        "carried out once within 10 minutes",
        *("token_repeated", "carried out 2 times", "carried out 1 times", LOCAL),
    ),
    Row(
        "A token with another request",
        "each commit has a new token",
        "IdempotentParameterMismatchException",
        *("token_reused", ACCEPTED, "IdempotentParameterMismatchException", LOCAL),
    ),
    Row(
        "One item in two actions",
        "engine/indexing.py merges writes of one row",
        "refused",
        *("one_item_twice", REFUSED, REFUSED, BOTH),
    ),
    Row(
        "101 actions",
        "MAX_ITEMS in engine/transactions.py",
        "100 at most",
        *("items_in_transaction", REFUSED, REFUSED, BOTH),
    ),
    Row(
        "Items of more than 4 MB",
        "MAX_BYTES in engine/transactions.py",
        "4 MB at most",
        *("bytes_in_transaction", ACCEPTED, REFUSED, LOCAL),
    ),
    Row(
        "Reasons of a cancelled transaction",
        "on_conflict of each write",
        "a reason for each action, in their order",
        "cancellation_reasons",
        *(EACH_REASON, EACH_REASON, BOTH),
    ),
    Row(
        "ReturnValuesOnConditionCheckFailure",
        "names that are taken: engine/listing/lookups.py",
        "the stored item in the reason",
        *("item_of_failed_condition", "returned", "returned", BOTH),
    ),
    Row(
        "Atomicity after a failed condition",
        "every unit of work",
        "all or nothing",
        *("rolled_back", "nothing written", "nothing written", BOTH),
    ),
    Row(
        "Concurrent transactions on one item",
        "core/retry.py, engine/transactions.py",
        "TransactionConflict for all but one",
        *("concurrent_transactions", ACCEPTED, ACCEPTED, NEITHER),
        "conflicts that tests/fakes/dynamodb_faults.py injects",
    ),
    Row(
        "A transaction that still runs",
        "IN_PROGRESS in engine/connection.py",
        "TransactionInProgressException",
        instead="answers that tests/engine/faults injects",
    ),
    Row(
        "Consumed capacity of a transaction",
        "docs/benchmarks.md, as an upper bound",
        "2 units for an item of 1 KB",
        *("units_of_a_transaction", "no units", "4.0 units", NEITHER),
    ),
    Row(
        "Item collection metrics",
        "measuring partitions that fill (ADR 53)",
        "an estimated range of sizes",
        *("partition_sizes", "missing", "missing", NEITHER),
        "answers with sizes in tests/engine",
    ),
)
SIZES = (
    Row(
        "An item of 400 KB",
        "MAX_ITEM_BYTES in engine/tables.py is below",
        "accepted",
        *("largest_item", REFUSED, ACCEPTED, LOCAL),
    ),
    Row(
        "An item above 400 KB",
        "MAX_ITEM_BYTES",
        "refused",
        *("too_large_item", REFUSED, REFUSED, BOTH),
    ),
    Row(
        "A partition key of 2,049 bytes",
        "is_key in engine/item_sizes.py",
        "refused",
        *("long_partition_key", REFUSED, REFUSED, BOTH),
    ),
    Row(
        "Reading a sort key of 1,025 bytes",
        "is_key",
        "refused",
        *("long_sort_key", REFUSED, REFUSED, BOTH),
        "moto refuses it only with an addition of the suite",
    ),
    Row(
        "An empty key",
        "is_key",
        "refused",
        *("empty_key", REFUSED, REFUSED, BOTH),
        "moto refuses it only with an addition of the suite",
    ),
    Row(
        "An empty text that is no key",
        "descriptions of records",
        "accepted",
        *("empty_text", ACCEPTED, ACCEPTED, BOTH),
    ),
    Row(
        "An empty set",
        "no row has sets",
        "refused",
        *("empty_set", REFUSED, REFUSED, BOTH),
    ),
    Row(
        "A number of 39 digits",
        "prices and counters are far smaller",
        "38 digits at most",
        *("long_number", ACCEPTED, REFUSED, LOCAL),
    ),
    Row(
        "A number of 1E+126",
        "input is bounded: core/wire",
        "below 1E+126",
        *("large_number", ACCEPTED, REFUSED, LOCAL),
    ),
    Row(
        "33 levels of nesting",
        "JSON is stored as one text",
        "32 at most",
        *("nested_deeply", ACCEPTED, REFUSED, LOCAL),
    ),
    Row(
        "An expression above 4 KB",
        "PynamoDB names attributes by placeholders",
        "refused",
        *("long_expression", ACCEPTED, REFUSED, LOCAL),
    ),
    Row(
        "A partition of 10 GB with local indexes",
        "StorageLimitError, a second partition (ADR 53)",
        "ItemCollectionSizeLimitExceeded",
        instead="errors in tests/engine/faults",
    ),
)
READS = (
    Row(
        "A page of a query",
        "engine/reading.py continues until the end",
        "ends after 1 MB",
        *("page_of_a_query", "2 of 4 items of 390 KB", "3 of 4 items of 390 KB", BOTH),
    ),
    Row(
        "A filter that matches nothing on a page",
        "engine/reading.py, engine/jobs.py",
        "an empty page with a key to continue",
        *("filtered_page", "an empty page with a key", "the end", MOTO),
    ),
    Row(
        "A page that ends at its limit with the partition",
        "lists show no next page that is empty",
        "a key to continue, and nothing after it",
        *("page_at_its_limit", "no key", "a key", LOCAL),
    ),
    Row(
        "101 keys of a BatchGetItem",
        "BATCH_GET_KEYS in engine/reading.py",
        "100 at most",
        *("keys_of_a_batch", REFUSED, REFUSED, BOTH),
    ),
    Row(
        "A key twice in a BatchGetItem",
        "fetch in engine/reading.py reads each once",
        "refused",
        *("repeated_key_of_a_batch", REFUSED, REFUSED, BOTH),
    ),
    Row(
        "17 MB of a BatchGetItem",
        "_batch_get reads unprocessed keys again",
        "16 MB, and unprocessed keys",
        *("bytes_of_a_batch", "unprocessed keys", "unprocessed keys", BOTH),
    ),
    Row(
        "Order of sort keys",
        "prefixes and ranges of engine/listing",
        "bytes of UTF-8",
        *("order_of_sort_keys", "bytes of UTF-8", "bytes of UTF-8", BOTH),
    ),
    Row(
        "BETWEEN with bounds that are reversed",
        "engine/listing/index_ranges.py",
        "refused",
        *("range_of_no_keys", ACCEPTED, REFUSED, LOCAL),
    ),
    Row(
        "Consistent reads of a local index",
        "every list (ADR 4)",
        "the item just written",
        *("consistent_index", "1 item", "1 item", BOTH),
    ),
    Row(
        "Reads that are eventually consistent",
        "key usage, calendars of the console, jobs",
        "may miss writes of the last second",
        *("read_after_write", "0 stale of 20", "0 stale of 20", NEITHER),
        "stale answers that the simulation of schedules returns",
    ),
    Row(
        "Order of a scan",
        "nothing may rely on it",
        "no order",
        *("order_of_a_scan", "as written", "another order", LOCAL),
    ),
    Row(
        "Parallel scan",
        "not used: ranges of keys are read side by side (ADR 52)",
        "divided into segments",
        *("parallel_scan", "divided", "divided", BOTH),
    ),
    Row(
        "Units of a read of 5 KB, consistent or not",
        "docs/benchmarks.md, from DynamoDB Local",
        "2 and 1",
        *("units_of_reads", "0.5 and 0.5", "2.0 and 1.0", LOCAL),
    ),
)
WRITES = (
    Row(
        "26 items of a BatchWriteItem",
        "PynamoDB, infra/operator/transfer",
        "25 at most",
        *("writes_of_a_batch", ACCEPTED, REFUSED, LOCAL),
    ),
    Row(
        "An item twice in a BatchWriteItem",
        "infra/operator/transfer",
        "refused",
        *("repeated_write_of_a_batch", REFUSED, REFUSED, BOTH),
    ),
    Row(
        "A reserved word in an expression",
        "PynamoDB names attributes by placeholders",
        "refused",
        *("reserved_word", REFUSED, REFUSED, BOTH),
    ),
    Row(
        "A value that no expression uses",
        "expressions that PynamoDB writes",
        "refused",
        *("unused_value", REFUSED, REFUSED, BOTH),
    ),
    Row(
        "An update of a key",
        "a record never moves by an update",
        "refused",
        *("changed_key", REFUSED, REFUSED, BOTH),
    ),
    Row(
        "A number compared with a text",
        "malformed jobs in engine/jobs.py",
        "the condition is false",
        "number_compared_with_text",
        *("crash: TypeError", "ConditionalCheckFailedException", LOCAL),
    ),
    Row(
        "An item whose time to live is over",
        "every reader checks the clock",
        "read until it is deleted, within days",
        *("expired_item", "read", "read", BOTH),
        "DynamoDB Local deletes it soon, moto never",
    ),
    Row(
        "Durability of an answered transaction",
        "make dev",
        "durable",
        instead="infra/local/workarounds.py waits for DynamoDB Local's disk",
    ),
    Row(
        "Throttling: 1,000 writes and 3,000 reads a second for each partition",
        "shards of counters, jobs and stored answers",
        "ThrottlingException, unprocessed keys",
        instead="throttling in tests/engine/faults and in the simulation of schedules",
    ),
    Row(
        "A request that is carried out although its answer is lost",
        "engine/transactions.py, lease of engine/jobs.py",
        "possible",
        instead="lost answers in tests/engine/faults",
    ),
    Row(
        "Streams and global indexes",
        "not used (ADR 60, ADR 4)",
        "eventually consistent",
        instead="nothing",
    ),
)
GROUPS = {
    "Transactions": TRANSACTIONS,
    "Sizes": SIZES,
    "Reads": READS,
    "Writes": WRITES,
}
ROWS = tuple(row for rows in GROUPS.values() for row in rows)
