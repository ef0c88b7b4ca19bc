"""Messages of forms exist in each language, and the code uses every one."""

import re
from pathlib import Path

import pytest

from chalicelib.domains import leads
from chalicelib.domains.leads.rules import form_texts


def test_every_text_of_forms_is_used_and_every_used_text_exists() -> None:
    folder = Path(leads.__file__).parent
    files = [file for file in folder.rglob("*") if file.suffix in {".py", ".html"}]
    sources = "\n".join(file.read_text() for file in files)
    keys_by_call = re.findall(
        r'\btext\([\w.]+, "(\w+)"|translate\("(\w+)"\)|_InvalidValueError\("(\w+)"', sources
    )
    form_texts.catalogue.cache_clear()  # The files are read again here.
    keys = set(form_texts.catalogue("en").texts)
    assert keys == set(form_texts.catalogue("ru").texts)
    assert {key for keys_of_call in keys_by_call for key in keys_of_call if key} <= keys
    assert set(form_texts._FAILURES.values()) <= keys
    quoted = set(re.findall(r'"(\w+)"', sources))
    assert {re.sub("^(cart|label|template)_", "", key) for key in keys} <= quoted


@pytest.mark.parametrize(
    ("code", "key"),
    [("rate_limited", "rate_limited"), ("validation_error", "malformed"), ("other", "failed")],
)
def test_a_failure_has_the_text_of_its_code(code: str, key: str) -> None:
    assert form_texts.for_failure("en", code=code) == form_texts.form_text("en", key)
