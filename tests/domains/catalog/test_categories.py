"""Tests of the trees of categories, one for products and one for services."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.domains.catalog.operations import categories as domain
from chalicelib.domains.catalog.store import categories
from chalicelib.domains.catalog.store.categories import CATEGORIES
from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.engine import jobs
from chalicelib.engine.listing import counters
from chalicelib.engine.unit import UnitOfWork, split_batches
from chalicelib.lib import trees
from tests.conftest import Answer, Api, Owner, all_rows, run_concurrently
from tests.support.effort import examples
from tests.support.warned import warned

LIST, CREATE, UPDATE, DELETE = (
    f"/api/categories/{call}" for call in ("list", "create", "update", "delete")
)


def create(api: Api, name: str = "Bread", **fields: Any) -> Any:
    return api.post(CREATE, {"name": name, **fields})["category"]


def chain(api: Api, length: int) -> list[str]:
    """Create categories, each one a child of the one before. Return their ids."""
    ids: list[str] = []
    for level in range(length):
        ids.append(create(api, f"Level {level}", parentId=ids[-1] if ids else None)["id"])
    return ids


def update(api: Api, category_id: str, **fields: Any) -> Any:
    return api.post(UPDATE, {"id": category_id, **fields})["category"]


def find(api: Api, query: str = "") -> list[Any]:
    categories: list[Any] = api.get(f"{LIST}?{query}")["categories"]
    return categories


def parents(api: Api) -> dict[str, str | None]:
    return {category["id"]: category["parentId"] for category in find(api)}


def product(api: Api, category_id: str | None, name: str = "Loaf") -> str:
    body = {"name": name, "price": 1, "categoryId": category_id}
    product_id: str = api.post("/api/products/create", body)["product"]["id"]
    return product_id


def products_of(api: Api, category_id: str) -> int:
    total: int = api.get(f"/api/products/list?categoryId={category_id}")["total"]
    return total


def refusal(api: Api, path: str, body: Any) -> tuple[int, str]:
    answer = api.call_refused("POST", path, body)
    return answer.status, answer.data["code"]


class TestCreateCategory:
    def test_create_returns_all_fields(self, api: Api) -> None:
        bread = create(api, " Хлеб ")
        assert bread == {
            "id": bread["id"],
            "name": "Хлеб",
            "slug": "khleb",
            "parentId": None,
            "kind": "product",
            "sortOrder": bread["sortOrder"],
            "itemsCount": 0,
            "externalId": None,
            "metadata": {},
            "updatedAt": bread["updatedAt"],
        }
        rolls = create(api, "Rolls", parentId=bread["id"], slug="small", sortOrder=-7)
        assert (rolls["parentId"], rolls["slug"], rolls["sortOrder"]) == (bread["id"], "small", -7)

    def test_a_new_category_comes_last(self, api: Api) -> None:
        for name in "BAC":
            create(api, name)
        assert [category["name"] for category in find(api)] == ["B", "A", "C"]

    def test_generated_slugs_do_not_clash(self, api: Api) -> None:
        assert [create(api)["slug"] for _ in range(3)] == ["bread", "bread-2", "bread-3"]
        facts = {"requested": "bread", "slug": "bread-4"}
        assert warned(api.post(CREATE, {"name": "Bread"})) == [{"code": "slug_changed", **facts}]

    def test_words_reserved_for_the_platform_are_allowed_as_slugs(self, api: Api) -> None:
        assert create(api, "Blog")["slug"] == "blog"

    def test_a_given_slug_is_unique_among_categories_of_its_kind(
        self, api: Api, new_owner: Any
    ) -> None:
        create(api, slug="bread")
        assert refusal(api, CREATE, {"name": "x", "slug": "bread"}) == (409, "slug_taken")
        create(api, slug="bread", kind="service")
        create(new_owner().api(), slug="bread")

    def test_categories_nest_at_most_five_levels_deep(self, api: Api) -> None:
        ids = chain(api, 5)
        answer = api.call_refused("POST", CREATE, {"name": "x", "parentId": ids[-1]})
        assert (answer.status, answer.data["code"]) == (400, "validation_error")
        (error,) = answer.data["errors"]
        assert (error["field"], error["key"]) == ("parentId", "too_deep")

    def test_a_parent_of_the_other_kind_is_404(self, api: Api) -> None:
        bread, cuts = create(api)["id"], {"parentId": create(api, kind="service")["id"]}
        assert refusal(api, CREATE, {"name": "x", **cuts}) == (404, "not_found")
        assert refusal(api, UPDATE, {"id": bread, **cuts}) == (404, "not_found")

    def test_the_number_of_categories_is_limited(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(domain, "MAX_CATEGORIES", 2)
        create(api), create(api)
        answer = api.call_refused("POST", CREATE, {"name": "x"})
        assert (answer.status, answer.data["code"]) == (409, "conflict")
        assert "has 2 product categories" in answer.data["message"]
        create(api, kind="service")


class TestListCategories:
    def test_the_list_separates_both_kinds_and_counts_their_items(self, api: Api) -> None:
        bread, cut = create(api), create(api, "Haircuts", kind="service")
        rolls = create(api, "Rolls", parentId=bread["id"])
        product(api, bread["id"]), product(api, bread["id"]), product(api, rolls["id"])
        assert {c["name"]: c["itemsCount"] for c in find(api)} == {
            "Bread": 2,
            "Rolls": 1,
            "Haircuts": 0,
        }
        assert [c["id"] for c in find(api, "kind=service")] == [cut["id"]]
        assert [c["id"] for c in find(api, "kind=product")] == [bread["id"], rolls["id"]]

    def test_the_list_shows_the_children_of_one_category(self, api: Api) -> None:
        ids = chain(api, 3)
        assert [c["id"] for c in find(api, f"parentId={ids[0]}")] == [ids[1]]
        assert find(api, f"parentId={ids[2]}") == []


class TestUpdateCategory:
    def test_an_update_changes_only_the_given_fields(self, api: Api) -> None:
        bread = create(api)
        product(api, bread["id"])
        updated_category = update(api, bread["id"], name="Loaves", sortOrder=5)
        changes = {"name": "Loaves", "sortOrder": 5, "itemsCount": 1}
        assert updated_category == bread | changes | {"updatedAt": updated_category["updatedAt"]}
        assert find(api) == [updated_category]

    def test_an_update_changes_the_slug(self, api: Api) -> None:
        bread, cakes = create(api), create(api, "Cakes")
        assert refusal(api, UPDATE, {"id": cakes["id"], "slug": "bread"}) == (409, "slug_taken")
        assert update(api, bread["id"], slug="bread")["slug"] == "bread"
        update(api, bread["id"], slug="loaves")
        assert update(api, cakes["id"], slug="bread")["slug"] == "bread"

    def test_moving_a_category_moves_its_subtree(self, api: Api) -> None:
        ids, other = chain(api, 3), create(api, "Other")["id"]
        update(api, ids[1], parentId=other)
        assert parents(api) == {ids[0]: None, other: None, ids[1]: other, ids[2]: ids[1]}
        update(api, ids[1], parentId=None)
        assert parents(api)[ids[1]] is None

    def test_moving_a_category_below_itself_is_400_cycle(self, api: Api) -> None:
        ids = chain(api, 3)
        for parent in ids:
            answer = api.call_refused("POST", UPDATE, {"id": ids[0], "parentId": parent})
            assert (answer.status, answer.data["code"]) == (400, "cycle")
            assert answer.data["errors"][0]["field"] == "parentId"

    def test_a_move_counts_the_levels_of_the_subtree(self, api: Api) -> None:
        ids, deep = chain(api, 3), chain(api, 3)
        answer = api.call_refused("POST", UPDATE, {"id": ids[0], "parentId": deep[2]})
        assert (answer.status, answer.data["code"]) == (400, "validation_error")
        update(api, ids[0], parentId=deep[1])


class TestDeleteCategory:
    def test_delete_moves_the_items_and_raises_the_children(self, api: Api) -> None:
        top, middle, low = chain(api, 3)
        cakes = create(api, "Cakes")["id"]
        loaf = product(api, middle)
        answer = api.post(DELETE, {"id": middle, "moveTo": cakes})
        assert answer == {"status": True, "id": middle, "deleted": True, "movedItems": 1}
        assert parents(api) == {top: None, low: top, cakes: None}
        assert api.get(f"/api/products/{loaf}")["product"]["categoryId"] == cakes
        assert {c["id"]: c["itemsCount"] for c in find(api)} == {top: 0, low: 0, cakes: 1}
        assert refusal(api, DELETE, {"id": middle}) == (404, "not_found")

    def test_delete_moves_services_as_well(self, api: Api) -> None:
        hair, nails = (create(api, name, kind="service")["id"] for name in ("Hair", "Nails"))
        body = {"name": "Cut", "durationMin": 60, "categoryId": hair}
        service = api.post("/api/services/create", body)["service"]["id"]
        assert api.post(DELETE, {"id": hair, "moveTo": nails})["movedItems"] == 1
        assert api.get(f"/api/services/{service}")["service"]["categoryId"] == nails
        assert {c["id"]: c["itemsCount"] for c in find(api)} == {nails: 1}

    def test_delete_leaves_items_without_a_category_by_default(
        self, api: Api, owner: Owner
    ) -> None:
        bread = create(api)["id"]
        loaf = product(api, bread)
        api.post(DELETE, {"id": bread})
        assert api.get(f"/api/products/{loaf}")["product"]["categoryId"] is None
        assert counters.read_facet(owner.workspace.id, noun="PRODUCT", facet="category_id") == {}
        assert create(api)["slug"] == "bread"

    def test_a_dry_run_reports_and_changes_nothing(self, api: Api) -> None:
        bread = create(api)["id"]
        product(api, bread)
        rows_before = all_rows()
        answer = api.post(DELETE, {"id": bread, "dryRun": True})
        assert (answer["deleted"], answer["movedItems"]) == (False, 1)
        assert all_rows() == rows_before

    def test_a_target_that_cannot_take_the_items_is_refused(self, api: Api) -> None:
        bread = create(api)["id"]
        assert refusal(api, DELETE, {"id": bread, "moveTo": bread}) == (400, "validation_error")
        cuts = create(api, kind="service")["id"]
        assert refusal(api, DELETE, {"id": bread, "moveTo": cuts}) == (404, "not_found")
        assert bread in parents(api)

    def test_delete_may_move_the_items_to_a_child(self, api: Api) -> None:
        top, low = chain(api, 2)
        product(api, top)
        api.post(DELETE, {"id": top, "moveTo": low})
        assert products_of(api, low) == 1
        assert parents(api) == {low: None}

    @pytest.mark.slow
    def test_delete_moves_more_items_and_children_than_fit_a_transaction(
        self, api: Api, owner: Owner
    ) -> None:
        bread, cakes = create(api)["id"], create(api, "Cakes")["id"]
        fill(owner, bread, 130)
        for batch in split_batches(range(90), 40):
            unit = UnitOfWork(owner.workspace.id, "test")
            for number in batch:
                unit.create(row(owner, f"{number}", bread))
            unit.commit()
        assert api.post(DELETE, {"id": bread, "moveTo": cakes})["movedItems"] == 130
        assert products_of(api, cakes) == 130
        assert set(parents(api).values()) == {None}
        expected = {f"category_id:{cakes}": 130}
        assert (
            counters.read_facet(owner.workspace.id, noun="PRODUCT", facet="category_id") == expected
        )
        assert run_cascades() == 0

    def test_the_runner_finishes_what_a_killed_process_left(
        self, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bread, cakes = create(api)["id"], create(api, "Cakes")["id"]
        fill(owner, bread, 50)
        with monkeypatch.context() as killed:
            killed.setattr(jobs, "attempt", lambda *_: None)
            api.post(DELETE, {"id": bread, "moveTo": cakes})
        assert products_of(api, cakes) == 0
        assert run_cascades() == 1
        assert products_of(api, cakes) == 50

    def test_very_large_deletions_are_left_to_the_runner(
        self, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(domain, "MAX_MOVES_IN_CALL", 45)
        bread = create(api)["id"]
        fill(owner, bread, 50)
        assert api.post(DELETE, {"id": bread})["movedItems"] == 50
        assert products_of(api, bread) == 50
        assert run_cascades() == 1
        assert products_of(api, bread) == 0

    def test_no_item_can_be_put_into_a_category_that_is_being_emptied(
        self, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bread = create(api)["id"]
        fill(owner, bread, 50)
        late = product(api, None)
        monkeypatch.setattr(jobs, "attempt", lambda *_: None)
        api.post(DELETE, {"id": bread})
        for path, body in (
            ("/api/products/create", {"name": "x", "price": 1, "categoryId": bread}),
            ("/api/products/update", {"id": late, "categoryId": bread}),
            ("/api/products/bulk", {"ids": [late], "action": "setCategory", "value": bread}),
            (CREATE, {"name": "x", "parentId": bread}),
        ):
            assert refusal(api, path, body) == (404, "not_found")
        product_id = api.get(f"/api/products/list?categoryId={bread}")["products"][0]["id"]
        copy = api.post("/api/products/duplicate", {"id": product_id})["product"]
        assert copy["categoryId"] is None

    def test_items_have_no_category_if_their_target_is_deleted_concurrently(
        self, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bread, cakes = create(api)["id"], create(api, "Cakes")["id"]
        fill(owner, bread, 50)
        with monkeypatch.context() as killed:
            killed.setattr(jobs, "attempt", lambda *_: None)
            api.post(DELETE, {"id": bread, "moveTo": cakes})
        api.post(DELETE, {"id": cakes})
        run_cascades()
        assert counters.read_facet(owner.workspace.id, noun="PRODUCT", facet="category_id") == {}
        assert products_of(api, bread) == products_of(api, cakes) == 0

    def test_children_moved_by_the_runner_and_a_moved_parent_make_no_cycle(
        self, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        top, middle = chain(api, 2)
        for batch in split_batches(range(60), 40):
            unit = UnitOfWork(owner.workspace.id, "test")
            for number in batch:
                unit.create(row(owner, f"{number}", middle))
            unit.commit()
        with monkeypatch.context() as killed:
            killed.setattr(jobs, "attempt", lambda *_: None)
            api.post(DELETE, {"id": middle})
        remaining_children = [child for child, parent in parents(api).items() if parent == middle]
        assert len(remaining_children) == 40
        update(api, top, parentId=remaining_children[0])
        run_cascades()
        tree = parents(api)
        assert middle not in tree.values()
        assert tree[remaining_children[0]] is None
        assert {tree[child] for child in remaining_children[1:]} == {top}


def run_cascades() -> int:
    """Run the jobs that deletions left to the runner, and return their number."""
    return jobs.run({domain.CASCADE: JOB_HANDLERS[domain.CASCADE]})[domain.CASCADE]


def row(owner: Owner, name: str, parent_id: str | None) -> Any:
    return CATEGORIES.new(
        owner.workspace.id, name=name, slug=name, kind="product", parent_id=parent_id, sort_order=0
    )


def fill(owner: Owner, category_id: str, count: int) -> None:
    """Put products into a category without using the API."""
    for start in range(0, count, 40):
        unit = UnitOfWork(owner.workspace.id, "test")
        for number in range(start, min(count, start + 40)):
            unit.create(
                PRODUCTS.new(
                    owner.workspace.id,
                    name=f"{number}",
                    price=1,
                    status="active",
                    sort_order=number,
                    category_id=category_id,
                )
            )
        unit.commit()


def check_tree(api: Api) -> None:
    """Check the tree's invariants: no cycle, no missing parent, at most five levels."""
    tree = parents(api)
    assert set(tree.values()) <= {None, *tree}
    for node in tree:
        line: list[str] = [node]
        while (above := tree[line[-1]]) is not None:
            assert above not in line
            line.append(above)
        assert len(line) <= 5


@examples(20)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["create", "move", "move", "delete"]),
            st.integers(0, 30),
            st.none() | st.integers(0, 30),
        ),
        min_size=4,
        max_size=14,
    )
)
def test_any_sequence_of_changes_leaves_a_valid_tree(steps: list[Any], new_owner: Any) -> None:
    api = new_owner().api()
    category_ids = chain(api, 4)
    for what, who, where in steps:
        category_id = category_ids[who % len(category_ids)]
        parent_id = None if where is None else category_ids[where % len(category_ids)]
        tree = parents(api)
        if what == "create":
            answer = api.call("POST", CREATE, {"name": "x", "parentId": parent_id})
            fits = parent_id in {None, *tree} and trees.depth(tree, parent_id) < 5
            assert (answer.status == 200) is fits
            category_ids += [answer.data["category"]["id"]] if fits else []
        elif what == "move":
            answer = api.call("POST", UPDATE, {"id": category_id, "parentId": parent_id})
            known = category_id in tree and parent_id in {None, *tree}
            if known and not trees.is_cycle(tree, category_id, parent_id):
                levels = trees.depth(tree, parent_id) + trees.height(tree, category_id)
                assert (answer.status == 200) is (levels <= 5)
            else:
                assert answer.status == (400 if known else 404)
        else:
            answer = api.call("POST", DELETE, {"id": category_id})
            assert answer.status == (200 if category_id in tree else 404)
        check_tree(api)


def outcomes(answers: list[Answer]) -> Counter[tuple[int, str | None]]:
    return Counter((a.status, a.data.get("code")) for a in answers)


@pytest.mark.store
class TestConcurrency:
    def test_concurrent_moves_below_each_other_make_no_cycle(self, api: Api) -> None:
        ids = [create(api, str(number))["id"] for number in range(6)]

        def move(number: int) -> Answer:
            body = {"id": ids[number], "parentId": ids[(number + 1) % 6]}
            return api.call("POST", UPDATE, body)

        answers = run_concurrently(6, move)
        assert {a.status for a in answers} <= {200, 400}
        assert outcomes(answers)[400, "cycle"] + outcomes(answers)[400, "validation_error"] >= 1
        check_tree(api)

    def test_concurrent_moves_and_creations_do_not_exceed_five_levels(self, api: Api) -> None:
        top, low = chain(api, 3), chain(api, 2)

        def act(number: int) -> Answer:
            if number == 0:
                return api.call("POST", UPDATE, {"id": low[0], "parentId": top[2]})
            return api.call("POST", CREATE, {"name": f"{number}", "parentId": low[1]})

        answers = run_concurrently(8, act)
        assert {a.status for a in answers} <= {200, 400}
        check_tree(api)

    def test_concurrent_deletions_of_parents_and_children_leave_a_valid_tree(
        self, api: Api
    ) -> None:
        ids = chain(api, 5)
        answers = run_concurrently(4, lambda n: api.call("POST", DELETE, {"id": ids[n]}))
        assert {a.status for a in answers} == {200}
        assert parents(api) == {ids[4]: None}

    def test_products_created_during_the_deletion_leave_the_category(
        self, api: Api, owner: Owner
    ) -> None:
        bread = create(api)["id"]

        def act(number: int) -> Answer:
            if number == 5:
                return api.call("POST", DELETE, {"id": bread})
            body = {"name": f"{number}", "price": 1, "categoryId": bread}
            return api.call("POST", "/api/products/create", body)

        answers = run_concurrently(12, act)
        assert answers[5].status == 200
        assert {a.status for a in answers} <= {200, 404}
        assert products_of(api, bread) == 0
        assert counters.read_facet(owner.workspace.id, noun="PRODUCT", facet="category_id") == {}


def test_every_kind_of_category_counts_its_items() -> None:
    for listing in map(categories.listing_of_items, categories.KINDS):
        assert "category_id" in listing.counted
