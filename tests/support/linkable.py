"""Finds the URLs that clients turn into links."""

import re

S = r"\s\ufeff"
LINK = re.compile(
    rf"!?\[[^[\]\n]{{1,500}}\]\([{S}]*<?([^{S}<>()]+(?:\([^{S}<>()]*\)[^{S}<>()]*)*)>?"
    rf"(?:[{S}]+[\"'][^\"'\n]*[\"'])?[{S}]*\)"
)
ANGLE = re.compile(rf"<((?:https?:\/\/|mailto:)[^{S}<>]+)>")
BARE = re.compile(rf"(?<!\w)https?://[^{S}<>\"'`\]*]+")
GENEROUS = re.compile(rf"https?://[^{S}<>\"'`\]*]+", re.IGNORECASE)
AUTOMATIC = re.compile(rf"(?<![\w@.:/?#&=+$%~-])(www\.[\w-]+\.[^{S}<>\]]+)", re.IGNORECASE)


def linked(text: str) -> list[str]:
    """Return every address that the widget, or a common linkifier, finds anywhere in a string."""
    links = [match for pattern in (LINK, ANGLE) for match in pattern.findall(text)]
    for match in [*BARE.finditer(text), *GENEROUS.finditer(text)]:
        address = re.sub(r"[.,;:!?]+$", "", match[0])
        links.append(address if "(" in address else address.split(")")[0])
    return [*links, *("http://" + address for address in AUTOMATIC.findall(text))]


def host_of(address: str) -> str | None:
    """Return the host that a browser opens, or None if it opens none."""
    address = address.strip("".join(map(chr, range(33))))
    scheme = re.match(r"(https?):[\\/]*", address, re.IGNORECASE)
    if scheme is None:
        return None
    authority = re.split(r"[/?#\\]", address[scheme.end() :], maxsplit=1)[0].rpartition("@")[2]
    if authority.startswith("["):
        return authority.partition("]")[0] + "]"
    host = re.sub(r"[\u3002\uff0e\uff61]", ".", authority).lower().rstrip(".,;!?)\"'`*_:~-")
    name, colon, port = host.partition(":")
    if not re.search(r"\w", host) or re.search(r"[\x00-\x20<>^|%\[\]]", host):
        return None
    return name if not colon or port.isdigit() else None


def linked_hosts(text: str) -> set[str]:
    """Return the hosts that a string links to."""
    return {host for host in map(host_of, linked(text)) if host}
