"""docs/runbook.md has every alarm, with what to do."""

from infra.local import alarms_page


def test_each_alarm_has_an_advice_and_is_in_the_table() -> None:
    declared = alarms_page.declared().keys()
    assert declared == alarms_page.TO_DO.keys(), "Correct TO_DO in infra/local/alarms_page.py."
    text = alarms_page.DOCUMENT.read_text()
    assert alarms_page.markdown(text) == text, "Run make update, and look at what has changed."
