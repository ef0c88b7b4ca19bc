"""Names of browsers in the list of sessions."""

import pytest

from chalicelib.transports.console import browser_names


@pytest.mark.parametrize(
    ("mark", "name"),
    [
        ("CriOS/131.0 Mobile/15E148 Safari/604.1", "Chrome, iPhone"),
        ("FxiOS/131.0 Mobile/15E148 Safari/604.1", "Firefox, iPhone"),
        ("EdgiOS/131.0 Version/17.0 Mobile/15E148 Safari/604.1", "Edge, iPhone"),
        ("Version/17.0 Mobile/15E148 Safari/604.1", "Safari, iPhone"),
    ],
)
def test_a_session_is_named_after_its_browser(mark: str, name: str) -> None:
    system = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 "
    assert browser_names.browser_name(system + mark) == name
