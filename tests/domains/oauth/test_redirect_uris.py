"""Redirect URIs that a client may register, and that a request may use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.oauth.rules import redirect_uris
from chalicelib.domains.oauth.rules.client_metadata import Client

CLAUDE = "https://claude.ai/api/mcp/auth_callback"
REFUSED = [
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "blob:https://claude.ai/1",
    "about:blank",
    "vbscript:x",
    "ms-msdt:/id%20PCWDiagnostic",
    "MS-MSDT:/id",
    "search-ms:query=x",
    "ms-officecmd:x",
    "x-apple.systempreferences:com.apple.preference",
    "intent://scan/",
    "shortcuts://run-shortcut",
    "tel:112",
    "cursorx://oauth",
    "localhost:3000/callback",
    ".example:/oauth",
    "com.:/oauth",
    "com..example:/oauth",
    "1com.example:/oauth",
    "http://claude.ai/callback",
    "http://127.0.0.1.evil.example/callback",
    "http://localhost.evil.example/callback",
    "http://127.0.0.2/callback",
    "http://[::2]/callback",
    "https://user@claude.ai/callback",
    "https://claude.ai@evil.example/callback",
    "https://claude.ai\\@evil.example/callback",
    "https:claude.ai/callback",
    "https:///callback",
    "https://",
    "https://claude.ai/callback#fragment",
    "https://claude.ai/callback#",
    "https://claude.ai/a b",
    "https://claude.ai/a\r\nSet-Cookie: x=1",
    "https://клод.рф/callback",
    "//claude.ai/callback",
    "/callback",
    "claude.ai/callback",
    "cursor:",
    "",
    "https://claude.ai/" + "x" * 1_000,
]


@pytest.mark.parametrize("uri", REFUSED)
def test_unsafe_redirect_uri_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match=r"^expected .*received"):
        redirect_uris.parse(uri)


@pytest.mark.parametrize(
    ("uri", "display_name"),
    [
        (CLAUDE, "claude.ai"),
        ("https://claude.ai:8443/callback?x=1", "claude.ai"),
        ("http://127.0.0.1:33418/", "127.0.0.1"),
        ("http://localhost/callback", "localhost"),
        ("http://[::1]:1/callback", "[::1]"),
        ("cursor://anysphere.cursor-mcp/oauth/callback", "cursor:"),
        ("com.example.app:/oauth", "com.example.app:"),
        ("Com.Example.App:/oauth", "com.example.app:"),
        ("io.github.user-1.app://oauth", "io.github.user-1.app:"),
        ("vscode://vscode.github-authentication/did-authenticate", "vscode:"),
        ("VSCode-Insiders://a/b", "vscode-insiders:"),
    ],
)
def test_redirect_uri_is_shown_by_its_host(uri: str, display_name: str) -> None:
    assert redirect_uris.parse(uri).display_name == display_name


def test_the_longest_redirect_uri_is_accepted() -> None:
    uri = CLAUDE + "?" * (redirect_uris.MAX_LENGTH - len(CLAUDE))
    assert redirect_uris.parse(uri).host == "claude.ai"
    with pytest.raises(ValueError, match="expected at most 1,000 characters, received 1,001"):
        redirect_uris.parse(uri + "?")


def test_app_scheme_has_no_host() -> None:
    assert redirect_uris.parse("cursor://localhost/oauth").host == ""


def test_only_a_clients_single_uri_may_be_left_out() -> None:
    assert Client("dcr_x", "Claude", (CLAUDE,)).only_redirect_uri == CLAUDE
    assert Client("dcr_x", "Claude", (CLAUDE, f"{CLAUDE}/2")).only_redirect_uri is None


@pytest.mark.parametrize(
    "requested",
    [
        "https://claude.ai/api/mcp/auth_callback/",
        "https://claude.ai/api/mcp/auth_callback?x=1",
        "https://claude.ai:443/api/mcp/auth_callback",
        "https://CLAUDE.ai/api/mcp/auth_callback",
        "https://claude.ai/api/mcp/../mcp/auth_callback",
        "https://claude.ai/api/mcp/auth%5Fcallback",
        "https://claude.ai.evil.example/api/mcp/auth_callback",
        "http://claude.ai/api/mcp/auth_callback",
    ],
)
def test_an_https_uri_is_compared_character_by_character(requested: str) -> None:
    assert redirect_uris.matches(CLAUDE, requested=CLAUDE)
    assert not redirect_uris.matches(CLAUDE, requested=requested)


@given(st.integers(1, 65_535), st.integers(1, 65_535), st.sampled_from(["127.0.0.1", "[::1]"]))
def test_loopback_uri_may_have_any_port(ours: int, theirs: int, host: str) -> None:
    registered = f"http://{host}:{ours}/callback"
    assert redirect_uris.matches(registered, requested=f"http://{host}:{theirs}/callback")
    assert redirect_uris.matches(registered, requested=f"http://{host}/callback")
    assert not redirect_uris.matches(registered, requested=f"http://{host}:{theirs}/other")
    assert not redirect_uris.matches(registered, requested=f"http://{host}:{theirs}/callback?x")
    assert not redirect_uris.matches(registered, requested=f"http://localhost:{theirs}/callback")
    secure = f"https://{host}:{ours}/callback"
    assert redirect_uris.matches(secure, requested=f"https://{host}:{theirs}/callback") is (
        ours == theirs
    )
    assert not redirect_uris.matches(registered, requested=secure)


@given(st.text(max_size=40), st.text(max_size=40))
def test_only_equal_or_loopback_uris_match(registered: str, requested: str) -> None:
    if redirect_uris.matches(registered, requested=requested) and registered != requested:
        assert redirect_uris.parse(requested).is_loopback


@given(st.sampled_from([CLAUDE, "cursor://a/b"]), st.integers(0, 60), st.characters())
def test_a_changed_character_ends_the_match(uri: str, place: int, character: str) -> None:
    changed_uri = uri[:place] + character + uri[place + 1 :]
    assert redirect_uris.matches(uri, requested=changed_uri) is (uri == changed_uri)


def test_a_client_allows_each_of_its_uris() -> None:
    client = Client("dcr_x", "Claude", (CLAUDE, "http://localhost/callback"))
    assert client.allows(CLAUDE)
    assert client.allows("http://localhost:5000/callback")
    assert not client.allows("http://localhost:5000/")
