"""Check which redirect URIs a client may register, and which URIs a request may use.

Sources: RFC 6749, 3.1.2; RFC 8252, 7 and 8; RFC 9700, 2.1 and 4.1.
"""

import re
from typing import NamedTuple

from chalicelib.lib.origins import LOOPBACK

MAX_LENGTH = 1_000
# Schemes of known editors and AI clients. Other apps must use a scheme with a dot.
APP_SCHEMES = frozenset(
    {
        *("antigravity", "cherrystudio", "claude", "code-oss", "codex", "cursor", "goose"),
        *("jetbrains", "kiro", "lmstudio", "positron", "qoder", "raycast", "trae", "trae-cn"),
        *("void", "vscode", "vscode-exploration", "vscode-insiders", "vscodium", "warp"),
        *("windsurf", "windsurf-next", "zed"),
    }
)

# A scheme of an app's vendor: a domain name in reverse, such as com.example.app (RFC 8252, 7.1).
# Schemes without a dot belong to browsers and operating systems, too, such as javascript: and
# ms-msdt:, whose handlers do more than receive a code.
_OWN_SCHEME = re.compile(r"[a-z]+(\.[a-z0-9-]+)+", re.ASCII)
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):([!-~]+)", re.ASCII)
_WEB = re.compile(
    r"//(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?(?P<rest>[/?].*)?",
    re.ASCII,
)
# Characters that no URI contains (RFC 3986, 2), and the fragment, which RFC 6749 excludes.
_FORBIDDEN = frozenset('#\\"<>^`{|}')


class RedirectUri(NamedTuple):
    """The parts of a redirect URI."""

    scheme: str
    host: str  # empty for a scheme of an app
    path: str

    @property
    def is_loopback(self) -> bool:
        """Whether the code goes to a program on the user's own machine."""
        return self.host in LOOPBACK

    @property
    def is_app(self) -> bool:
        """Whether the code goes to the app that has registered the scheme on the device."""
        return self.scheme not in {"http", "https"}

    @property
    def is_hosted(self) -> bool:
        """Whether the code goes to a server of the app."""
        return not self.is_loopback and not self.is_app

    @property
    def display_name(self) -> str:
        """Host, or scheme of an app, that the consent page shows."""
        return f"{self.scheme}:" if self.is_app else self.host


def parse(uri: str) -> RedirectUri:
    """Return the parts of a redirect URI, or raise ValueError, which says why not."""
    if len(uri) > MAX_LENGTH:
        msg = f"expected at most {MAX_LENGTH:,} characters, received {len(uri):,}"
        raise ValueError(msg)
    match = _URI.fullmatch(uri)
    if match is None or not _FORBIDDEN.isdisjoint(uri):
        msg = f"expected an absolute URI without a fragment, received {uri[:100]!r}"
        raise ValueError(msg)
    scheme = match[1].lower()
    if scheme in APP_SCHEMES or _OWN_SCHEME.fullmatch(scheme):
        return RedirectUri(scheme, "", match[2])
    if scheme not in {"http", "https"}:
        msg = (
            "expected https, http to localhost, a scheme with a dot such as com.example.app:, "
            f"or the scheme of a known editor, received {scheme}:"
        )
        raise ValueError(msg)
    web = _WEB.fullmatch(match[2])
    if web is None:
        msg = f"expected {scheme}://host/path without a user name, received {uri[:100]!r}"
        raise ValueError(msg)
    host = web["host"].lower()
    if scheme == "http" and host not in LOOPBACK:
        msg = (
            f"expected https, or http with {', '.join(sorted(LOOPBACK))}, received http with {host}"
        )
        raise ValueError(msg)
    return RedirectUri(scheme, host, web["rest"] or "")


def matches(registered: str, *, requested: str) -> bool:
    """Return whether a request may use a URI that its client has registered."""
    # URIs are compared character by character. Only the port of http on the user's own machine may
    # differ, since programs there use any free port (RFC 8252, 7.3).
    if registered == requested:
        return True
    try:
        ours, theirs = parse(registered), parse(requested)
    except ValueError:
        return False
    return ours.scheme == "http" and ours == theirs  # parse accepts http for this machine only
