"""Attempts of a unit of work, what it demands of rows, its outside effects and its batches."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from chalicelib.core import deadline
from chalicelib.core.errors import (
    ConcurrentUpdateError,
    ConflictError,
    IdempotencyMismatchError,
    UnavailableError,
)
from chalicelib.core.jobs import Queue
from chalicelib.core.unit import AuditEvent, IdempotencyRecord
from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.domains.files.store.files import ImageMap
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.engine import audit, indexing, jobs, transactions
from chalicelib.engine.claims import ClaimRow, claim
from chalicelib.engine.connection import connection
from chalicelib.engine.locks import LockRow, lock_key, lock_row
from chalicelib.engine.transactions import OutcomeUnknownError
from chalicelib.engine.unit import UnitOfWork, run_unit, split_batches
from tests.conftest import all_rows
from tests.fakes.dynamodb_faults import ALWAYS, TRANSACTION, closed, failing, faulty, throttled

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database", "pauses")]

EVENT = AuditEvent("test", "actor", ("title",), resources=("key:given",), request_id="r")
RECORD = IdempotencyRecord("scope", "key", "fingerprint")
TAKEN = ConflictError("It is taken.")


def row(name: str, target: str = "first") -> ClaimRow:
    return claim("TEST", name=name, target=target)


def raise_lock() -> None:
    run_unit("w", None, lambda unit: unit.save(lock_row("w", what="slugs")))


def there(*names: str) -> list[str]:
    """Return the names that have a row."""
    return [name for name in names if ClaimRow.find_claim("TEST", name=name)]


def conflicting_once(stage: Callable[[UnitOfWork, int], Any]) -> Callable[[UnitOfWork], Any]:
    """Return a stage whose first attempt ends in a conflict after everything else."""
    attempts = count(1)

    def staged(unit: UnitOfWork) -> Any:
        number = next(attempts)
        result = stage(unit, number)
        if number == 1:
            raise ConcurrentUpdateError
        return result

    return staged


class TestAttempts:
    def test_nothing_of_an_abandoned_attempt_is_committed_or_recorded(self) -> None:
        ran = []

        def stage(unit: UnitOfWork, number: int) -> int:
            unit.create(row(str(number)))
            unit.mention(f"key:{number}")
            unit.after_commit(lambda: ran.append(number))
            return number

        assert run_unit("w", EVENT, conflicting_once(stage)) == 2
        assert there("1", "2") == ["2"]
        assert ran == [2]
        (record,) = audit.latest("w")
        assert record.resources == ["key:given", "key:2"]
        assert (record.operation, record.actor, record.fields) == ("test", "actor", ["title"])

    def test_an_outside_effect_happens_once_and_every_attempt_gets_its_result(self) -> None:
        effects = count(1)

        def stage(unit: UnitOfWork, _: int) -> tuple[int, int]:
            first = unit.run_side_effect_once("one", lambda: next(effects))
            return first, unit.run_side_effect_once("two", lambda: next(effects))

        assert run_unit("w", None, conflicting_once(stage)) == (1, 2)

    def test_what_an_attempt_has_read_is_read_again_in_the_next_one(self) -> None:
        key, results = lock_key("w", what="slugs"), count(1)

        def stage(unit: UnitOfWork, number: int) -> tuple[Any, int]:
            result = unit.rows.read_beside([key], "query", lambda: next(results))
            lock = unit.rows.find(LockRow, key)
            if number == 1:
                raise_lock()
            return lock and lock.version, result

        assert run_unit("w", None, conflicting_once(stage)) == (1, 2)

    def test_a_trial_returns_the_result_and_commits_nothing(self) -> None:
        ran = []

        def stage(unit: UnitOfWork) -> str:
            unit.create(row("a"))
            unit.after_commit(lambda: ran.append("a"))
            return "result"

        assert run_unit("w", EVENT, stage, dry_run=True) == "result"
        assert there("a") == []
        assert ran == []
        assert audit.latest("w") == []

    def test_a_unit_without_writes_is_not_recorded(self) -> None:
        assert run_unit("w", EVENT, lambda unit: unit.tenant) == "w"
        assert audit.latest("w") == []

    def test_an_event_of_another_workspace_is_in_its_log(self) -> None:
        event = AuditEvent("test", "actor", workspace_id="other")
        run_unit("w", event, lambda unit: unit.create(row("a")))
        assert audit.latest("w") == []
        assert [event.operation for event in audit.latest("other")] == ["test"]

    def test_every_kind_of_write_is_recorded_with_its_record(self) -> None:
        site = SITES.new("w", title="x", slug="x", status="active")

        def read() -> Any:
            return SITES.find("w", record_id=site.id)

        def change(unit: UnitOfWork) -> None:
            row = read()
            row.title = "y"
            unit.save(row)

        stages: list[Callable[[UnitOfWork], None]] = [
            lambda unit: unit.create(site),
            lambda unit: unit.update(read(), [type(site).title.set("z")]),
            change,
            lambda unit: unit.delete(read()),
        ]
        for stage in stages:
            run_unit("w", EVENT, stage)
        assert read() is None
        records = audit.latest("w")
        assert [event.resources for event in records] == [["key:given", f"site:{site.id}"]] * 4

    def test_a_row_whose_commit_was_confirmed_late_has_its_stored_version(self) -> None:
        row = lock_row("w", what="slugs")
        with faulty(TRANSACTION, closed, "after", 1):
            run_unit("w", EVENT, lambda unit: unit.save(row))
        stored_row = lock_row("w", what="slugs")
        assert row.version == stored_row.version == 1
        run_unit("w", EVENT, lambda unit: unit.save(row))
        assert lock_row("w", what="slugs").version == 2

    def test_a_transaction_keeps_its_request_token_and_pauses_before_it_is_sent_again(
        self, pauses: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tokens: list[str] = []

        def note(params: dict[str, Any], **_: Any) -> None:
            tokens.append(json.loads(params["body"])["ClientRequestToken"])

        events = connection().client.meta.events
        events.register_first(f"before-call.dynamodb.{TRANSACTION}", note)
        try:
            with failing(TRANSACTION, 2, throttled):
                run_unit("w", EVENT, lambda unit: unit.create(row("a")))
            assert len(pauses) == 2
            run_unit("w", EVENT, lambda unit: unit.create(row("b")))
        finally:
            events.unregister(f"before-call.dynamodb.{TRANSACTION}", note)
        first, repeated, last, another = tokens
        assert first == repeated == last != another

    def test_a_transaction_without_a_marker_is_sent_once(self, pauses: list[float]) -> None:
        with failing(TRANSACTION, 1, throttled) as requests, pytest.raises(UnavailableError):
            run_unit("w", None, lambda unit: unit.create(row("a")))
        assert (len(requests), pauses, there("a")) == (1, [], [])

    def test_rows_that_do_not_fit_into_the_transaction_are_written_right_after_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def rows_of_new_product() -> int:
            values = {"sort_order": 1, "status": "active", "category_id": "c"}
            product = PRODUCTS.new("w", name="x", price=1, **values)
            run_unit("w", EVENT, lambda unit: unit.create(product))
            return sum(product.id in place for place in all_rows())

        usual = rows_of_new_product()
        monkeypatch.setattr(indexing, "MAX_ITEMS", 1)
        assert rows_of_new_product() == usual > 1
        assert jobs.oldest_due(Queue.MAIN) is None

    def test_a_record_in_the_trash_is_restored_as_it_was(self) -> None:
        site = SITES.new("w", title="x", slug="x", status="active")
        run_unit("w", EVENT, lambda unit: unit.create(site))
        until = datetime(2100, 1, 1, tzinfo=UTC)
        run_unit(
            "w",
            EVENT,
            lambda unit: unit.soft_delete(SITES.find("w", record_id=site.id), until=until),
        )
        assert SITES.find("w", record_id=site.id) is None
        trash = SITES.trash("w")
        deleted = SITES.row.find(trash, site.id)
        assert (deleted.title, deleted.expires) == ("x", until)
        run_unit(
            "w", EVENT, lambda unit: unit.restore(SITES.revived("w", deleted), deleted=deleted)
        )
        assert SITES.find("w", record_id=site.id).title == "x"
        assert SITES.row.find(trash, site.id) is None


class TestUndoing:
    """Actions that undo outside effects: they run if nothing can have been committed."""

    @pytest.fixture
    def undone_effects(self) -> list[str]:
        return []

    @pytest.fixture
    def stage(self, undone_effects: list[str]) -> Callable[[UnitOfWork], None]:
        """Have two outside effects and write a row. The first effect cannot be undone."""

        def broken() -> None:
            undone_effects.append("one")
            raise OSError("disk full")

        def stage(unit: UnitOfWork) -> None:
            unit.run_side_effect_once("one", lambda: unit.on_failure(broken))
            unit.run_side_effect_once(
                "two", lambda: unit.on_failure(lambda: undone_effects.append("two"))
            )
            unit.create(row("a"), on_conflict=TAKEN)

        return stage

    def test_a_failed_unit_undoes_each_effect_once(
        self, stage: Callable[[UnitOfWork], None], undone_effects: list[str]
    ) -> None:
        run_unit("w", EVENT, lambda unit: unit.create(row("a")))
        with pytest.raises(ConflictError):
            run_unit("w", EVENT, conflicting_once(lambda unit, _: stage(unit)))
        assert undone_effects == ["one", "two"]

    def test_a_unit_that_succeeds_undoes_nothing_even_later(
        self, stage: Callable[[UnitOfWork], None], undone_effects: list[str]
    ) -> None:
        units = []
        run_unit("w", EVENT, lambda unit: (units.append(unit), stage(unit)))
        units[0].undo()
        assert undone_effects == []

    def test_a_unit_that_may_have_been_committed_undoes_nothing(
        self, stage: Callable[[UnitOfWork], None], undone_effects: list[str]
    ) -> None:
        with (
            faulty(TRANSACTION, closed, "after", ALWAYS),
            pytest.raises(OutcomeUnknownError) as unknown,
        ):
            run_unit("w", None, stage)
        assert unknown.value.key == "outcome_unknown"
        assert there("a") == ["a"]
        assert undone_effects == []

    def test_a_unit_that_was_refused_undoes_its_effects(
        self, stage: Callable[[UnitOfWork], None], undone_effects: list[str]
    ) -> None:
        with failing(TRANSACTION, ALWAYS, throttled), pytest.raises(UnavailableError):
            run_unit("w", EVENT, stage)
        assert there("a") == []
        assert undone_effects == ["one", "two"]

    @pytest.fixture
    def short_deadline(
        self, pauses: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> AbstractContextManager[object]:
        """A deadline that passes in the pause after the first attempt."""
        monkeypatch.setattr(deadline, "monotonic", lambda: 60.0 * len(pauses))
        return deadline.within(20)

    def test_a_unit_whose_time_is_up_may_have_been_committed(
        self,
        stage: Callable[[UnitOfWork], None],
        undone_effects: list[str],
        short_deadline: AbstractContextManager[object],
    ) -> None:
        lost = faulty(TRANSACTION, closed, "after", 1)
        with short_deadline, lost, pytest.raises(OutcomeUnknownError):
            run_unit("w", EVENT, stage)
        assert there("a") == ["a"]
        assert undone_effects == []

    def test_a_unit_that_was_refused_before_its_time_was_up_undoes_its_effects(
        self,
        stage: Callable[[UnitOfWork], None],
        undone_effects: list[str],
        short_deadline: AbstractContextManager[object],
    ) -> None:
        busy = failing(TRANSACTION, 1, throttled)
        with short_deadline, busy, pytest.raises(UnavailableError) as caught:
            run_unit("w", EVENT, stage)
        assert type(caught.value) is UnavailableError
        assert there("a") == []
        assert undone_effects == ["one", "two"]


class TestDemands:
    """Conditions of writes. A failed one without an error of its own starts the unit again."""

    def assert_refused(self, stage: Callable[[UnitOfWork], None]) -> None:
        unit = UnitOfWork("w")
        stage(unit)
        with pytest.raises(ConcurrentUpdateError):
            unit.commit()

    def test_a_new_row_must_not_exist(self) -> None:
        run_unit("w", None, lambda unit: unit.create(row("a")))
        self.assert_refused(lambda unit: unit.create(row("a", "second")))
        with pytest.raises(ConflictError, match="It is taken"):
            run_unit("w", None, lambda unit: unit.create(row("a", "second"), on_conflict=TAKEN))
        assert ClaimRow.find_claim("TEST", name="a").target == "first"

    def test_an_updated_row_must_exist_or_meet_the_condition(self) -> None:
        actions = [ClaimRow.target.set("second")]
        self.assert_refused(lambda unit: unit.update(row("a"), actions))
        with pytest.raises(ConflictError):
            run_unit("w", None, lambda unit: unit.update(row("a"), actions, on_conflict=TAKEN))
        run_unit("w", None, lambda unit: unit.create(row("a")))
        condition = ClaimRow.target == "other"
        self.assert_refused(lambda unit: unit.update(row("a"), actions, condition))
        run_unit("w", None, lambda unit: unit.update(row("a"), actions))
        assert ClaimRow.find_claim("TEST", name="a").target == "second"
        absent = ClaimRow.pk.does_not_exist()
        run_unit("w", None, lambda unit: unit.update(row("b"), actions, absent))
        assert there("b") == ["b"]

    def test_a_deleted_row_must_exist_only_if_that_is_demanded(self) -> None:
        run_unit("w", None, lambda unit: unit.delete(row("a")))
        self.assert_refused(lambda unit: unit.delete(row("a"), if_there=True))
        with pytest.raises(ConflictError):
            run_unit("w", None, lambda u: u.delete(row("a"), if_there=True, on_conflict=TAKEN))
        run_unit("w", None, lambda unit: unit.create(row("a")))
        run_unit("w", None, lambda unit: unit.delete(row("a"), if_there=True))
        assert there("a") == []

    def test_a_required_row_must_exist_or_meet_the_condition(self) -> None:
        def requiring(unit: UnitOfWork, **more: Any) -> None:
            unit.require(row("a"), **more)
            unit.create(row("b"))

        self.assert_refused(requiring)
        with pytest.raises(ConflictError):
            run_unit("w", None, lambda unit: requiring(unit, on_conflict=TAKEN))
        run_unit("w", None, lambda unit: unit.create(row("a")))
        self.assert_refused(lambda unit: requiring(unit, condition=ClaimRow.target == "other"))
        assert there("b") == []
        run_unit("w", None, lambda unit: requiring(unit, condition=ClaimRow.target == "first"))
        assert there("b") == ["b"]

    def test_a_failed_condition_is_found_among_other_writes(self) -> None:
        run_unit("w", None, lambda unit: unit.create(row("a")))

        def stage(unit: UnitOfWork) -> None:
            unit.delete(row("b"))
            unit.create(row("a", "second"), on_conflict=TAKEN)

        with pytest.raises(ConflictError, match="It is taken"):
            run_unit("w", EVENT, stage)

    def test_of_several_failed_conditions_one_with_precedence_is_reported(self) -> None:
        class FirstError(ConflictError):
            precedence = 0

        def stage(unit: UnitOfWork) -> None:
            unit.create(row("a"), on_conflict=TAKEN)
            unit.create(row("b"), on_conflict=FirstError("It comes first."))
            unit.create(row("c"), on_conflict=TAKEN)

        run_unit("w", None, stage)
        with pytest.raises(FirstError):
            run_unit("w", None, stage)

    def test_a_record_begins_to_show_no_file_that_is_gone(self) -> None:
        images = [ImageMap(file_id="gone", url="/gone.png", width=1, height=1)]
        values = {"sort_order": 1, "status": "active", "images": images}
        product = PRODUCTS.new("w", name="x", price=1, **values)
        self.assert_refused(lambda unit: unit.create(product))
        assert [place for place in all_rows() if "gone" in place] == []

    @pytest.mark.parametrize("held_row", [None, {}])
    def test_a_taken_row_that_is_gone_already_starts_the_unit_again(self, held_row: Any) -> None:
        error = transactions._conflict_error(lambda _: TAKEN, held_row)
        assert isinstance(error, ConcurrentUpdateError)
        known = {"target": {"S": "first"}}
        assert transactions._conflict_error(lambda _: TAKEN, known) is TAKEN


class TestBatches:
    def part(self, unit: UnitOfWork) -> bytes:
        """Stage a row, which can be done only once."""
        unit.create(row("part"), on_conflict=TAKEN)
        return b"outcome"

    def test_a_batch_is_committed_once_although_its_operation_starts_again(self) -> None:
        def stage(unit: UnitOfWork, _: int) -> bytes:
            outcome = unit.commit_batch("part", self.part)
            assert there("part") == ["part"]
            return outcome

        assert run_unit("w", EVENT, conflicting_once(stage)) == b"outcome"
        (record,) = audit.latest("w")
        assert (record.operation, record.actor) == ("test", "actor")

    def test_what_was_read_before_a_batch_is_read_again_after_it(self) -> None:
        key = lock_key("w", what="slugs")

        def change(_: UnitOfWork) -> bytes:
            raise_lock()
            return b"outcome"

        def change_and_fail(_: UnitOfWork) -> bytes:
            raise_lock()
            raise TAKEN

        def stage(unit: UnitOfWork) -> list[int]:
            versions = [unit.rows.fetch([key])]
            unit.commit_batch("one", change)
            versions.append(unit.rows.fetch([key]))
            with suppress(ConflictError):
                unit.commit_batch("two", change_and_fail)
            versions.append(unit.rows.fetch([key]))
            return [row.version for rows in versions for row in rows]

        assert run_unit("w", None, stage) == [1, 2]

    def test_a_batch_without_an_event_is_recorded_under_its_name(self) -> None:
        run_unit("w", None, lambda unit: unit.commit_batch("part", self.part, audited_in="other"))
        assert audit.latest("w") == []
        assert [(event.operation, event.actor) for event in audit.latest("other")] == [
            ("part", "job")
        ]

    def test_a_batch_of_an_event_in_another_workspace_is_recorded_there(self) -> None:
        event = AuditEvent("test", "actor", workspace_id="other")
        run_unit("w", event, lambda unit: unit.commit_batch("part", self.part))
        assert audit.latest("w") == []
        assert [event.operation for event in audit.latest("other")] == ["test"]

    def test_a_repeated_call_with_a_key_gets_the_outcome_of_its_batch(self) -> None:
        seen = []

        def stage(unit: UnitOfWork) -> bytes:
            seen.append((unit.is_repeatable, unit.recalls_batch("part")))
            return unit.commit_batch("part", self.part)

        for _ in range(2):
            assert run_unit("w", EVENT, stage, record=RECORD) == b"outcome"
        assert seen == [(True, False), (True, True)]

    def test_a_batch_is_recalled_by_its_commit_too(self) -> None:
        def stage(unit: UnitOfWork) -> bytes:
            return unit.commit_batch("part", lambda part: (part.create(row("x")), b"outcome")[1])

        assert run_unit("w", EVENT, stage, record=RECORD) == b"outcome"
        run_unit("w", None, lambda unit: unit.delete(row("x")))
        assert run_unit("w", EVENT, stage, record=RECORD) == b"outcome"
        assert there("x") == []

    def test_a_call_without_a_key_recalls_no_batch(self) -> None:
        seen = []

        def stage(unit: UnitOfWork) -> None:
            seen.append((unit.is_repeatable, unit.recalls_batch("part")))
            unit.commit_batch("part", self.part)

        run_unit("w", EVENT, stage)
        with pytest.raises(ConflictError):
            run_unit("w", EVENT, stage)
        assert seen == [(False, False), (False, False)]

    def test_a_key_recalls_no_batch_of_another_name_or_of_other_arguments(self) -> None:
        run_unit("w", EVENT, lambda unit: unit.commit_batch("part", self.part), record=RECORD)

        def recalls(name: str, fingerprint: str = "fingerprint") -> bool:
            record = IdempotencyRecord("scope", "key", fingerprint)
            return run_unit("w", EVENT, lambda unit: unit.recalls_batch(name), record=record)

        assert recalls("part")
        assert not recalls("other")
        with pytest.raises(IdempotencyMismatchError):
            recalls("part", "other")


@pytest.mark.parametrize(
    ("items", "expected"), [("", []), ("ab", ["ab"]), ("abc", ["ab", "c"]), ("abcd", ["ab", "cd"])]
)
def test_items_are_split_into_batches_in_order(items: str, expected: list[str]) -> None:
    assert ["".join(batch) for batch in split_batches(items, 2)] == expected
