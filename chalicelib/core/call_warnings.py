"""Warnings of successful calls. Codes and names of facts are stable, sentences are not."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Self


class WarningCode(StrEnum):
    """The codes of all warnings, each with its meaning and the names of its facts.

    >>> WarningCode.FIELD_IGNORED, WarningCode.FIELD_IGNORED.facts
    (<WarningCode.FIELD_IGNORED: 'field_ignored'>, ('field',))
    """

    meaning: str
    facts: tuple[str, ...]

    def __new__(cls, code: str, meaning: str, *facts: str) -> Self:
        """Add the meaning and the facts. The value is the code alone."""
        member = str.__new__(cls, code)
        member._value_, member.meaning, member.facts = code, meaning, facts
        return member

    # Input
    UNKNOWN_FIELD = (
        "unknown_field",
        (
            "The call has no such field, so it was ignored. `suggestion` is the most similar known "
            "name, or null."
        ),
        "field",
        "suggestion",
    )
    MORE_UNKNOWN_FIELDS = "more_unknown_fields", "More unknown fields were ignored."
    REPEATED_PARAMETER = (
        "repeated_parameter",
        "A query parameter for one value was sent `count` times. The last value was used.",
        "field",
        "count",
    )
    FIELD_IGNORED = "field_ignored", "The field has no effect together with the others.", "field"
    INVALID_CONTACT = (
        "invalid_contact",
        "The searched e-mail address or phone is not valid, so nothing matches it.",
        "field",
    )
    INVALID_PHONE = (
        "invalid_phone",
        "The phone is no valid number. It is stored as it was entered.",
        "field",
    )
    SLUG_CHANGED = (
        "slug_changed",
        "The requested slug is taken or reserved, so the record has another one.",
        "requested",
        "slug",
    )
    EXTERNAL_ID_REMOVED = (
        "external_id_removed",
        (
            "While the record with `id` was deleted, the record with `recordId` got its "
            "`externalId`, so the restored record has none."
        ),
        "id",
        "externalId",
        "recordId",
    )
    FORCE_REQUIRED = (
        "force_required",
        (
            "Without `force`, this call would be refused with the code `error`, because of `count` "
            "records."
        ),
        "error",
        "count",
    )
    # Shortened responses
    DESCRIPTIONS_SHORTENED = (
        "descriptions_shortened",
        "The descriptions of `count` records are shortened.",
        "count",
    )
    LEADS_SHORTENED = "leads_shortened", "`count` leads are shortened.", "count"
    LIST_TRUNCATED = "list_truncated", "Only the first `maximum` records are listed.", "maximum"
    DESIGN_SYSTEM_OMITTED = (
        "design_system_omitted",
        "The `designSystem` of `count` pages is null, because it is too long for a list.",
        "count",
    )
    HTML_OMITTED = (
        "html_omitted",
        "The page was saved. The response does not contain its HTML of `bytes` bytes.",
        "bytes",
    )
    LARGE_RESPONSE = "large_response", "The response contains `bytes` bytes of HTML.", "bytes"
    # Images and files
    IMAGE_NOT_IMPORTED = (
        "image_not_imported",
        "The image was not imported. `reason` is a sentence.",
        "url",
        "reason",
    )
    IMAGES_NOT_IMPORTED = (
        "images_not_imported",
        "`count` images of the page keep their old URLs.",
        "count",
    )
    IMAGES_KEPT = "images_kept", "No new image could be imported, so the old images are kept."
    IMAGES_NOT_IN_TIME = (
        "images_not_in_time",
        (
            "Some images could not be imported in time, so the images are unchanged. Send the item "
            "again."
        ),
    )
    COVER_LINKED = "cover_linked", "The cover was not copied, so the post links to `url`.", "url"
    COVER_KEPT = "cover_kept", "The new cover was not copied, so the post keeps its cover.", "url"
    FOLDER_DELETED = (
        "folder_deleted",
        "The folder of the upload was deleted, so the file is in the root folder.",
    )
    SERVED_AS_TEXT = (
        "served_as_text",
        "The file is served as text, so pages cannot use it as a style sheet or script.",
        "name",
    )
    # Products
    STOCK_CHANGED = (
        "stock_changed",
        "Other calls changed the stock at the same time. Read the product.",
        "id",
    )
    BARCODE_TAKEN = (
        "barcode_taken",
        "The product `id` has this barcode, so the draft starts from its data.",
        "id",
        "name",
    )
    BARCODE_INTERNAL = (
        "barcode_internal",
        "The barcode is for use inside a store, so only the workspace's products were searched.",
    )
    BARCODE_LOOKUP_FAILED = (
        "barcode_lookup_failed",
        "The barcode could not be looked up. `reason` is a sentence.",
        "reason",
    )
    PHOTO_SEARCH_FAILED = (
        "photo_search_failed",
        "No photos could be searched. `error` is the code of the failure.",
        "error",
    )
    # Services and resources
    TIMEZONE_CHANGED = (
        "timezone_changed",
        "The time zone of the opening hours has changed. Bookings are not moved.",
        "previous",
        "timezone",
    )
    RESOURCES_KEEP_TIMEZONE = (
        "resources_keep_timezone",
        "The time zone of the workspace has changed, but not that of its resources.",
        "timezone",
    )
    MIXED_RESOURCE_TYPES = (
        "mixed_resource_types",
        "The service has resources of several types, but a booking takes only one resource.",
        "types",
    )
    PAYMENTS_NOT_SET_UP = (
        "payments_not_set_up",
        "No payment provider is set up, so visitors cannot book the service online.",
        "field",
    )
    BOOKINGS_OUTSIDE_HOURS = (
        "bookings_outside_hours",
        "`count` upcoming bookings are outside the new opening hours. `ids` has the first ones.",
        "count",
        "ids",
    )
    # Bots
    UNKNOWN_MODEL = (
        "unknown_model",
        "The model is not in the catalogue, so answers are charged at the highest price.",
        "model",
        "suggestions",
    )
    MODEL_WITHOUT_TOOLS = (
        "model_without_tools",
        "The model cannot call tools, so these capabilities do not work with it.",
        "model",
        "capabilities",
    )
    # Sites and pages
    SITE_SUSPENDED = (
        "site_suspended",
        "The operator has suspended the site. The new status takes effect afterwards.",
        "status",
    )
    PARTS_NEED_DOMAIN = (
        "parts_need_domain",
        (
            "Frames or counters of `count` hosts need a domain of the site's own. `hosts` has the "
            "first ones."
        ),
        "count",
        "hosts",
        "url",
    )
    RELATIVE_URLS = (
        "relative_urls",
        "`count` relative URLs were not changed, because no base URL is known.",
        "count",
    )
    FORMS_SEND_ELSEWHERE = (
        "forms_send_elsewhere",
        (
            "Forms of the page send to `count` other hosts, so the workspace gets no leads from "
            "them. `hosts` has the first ones; an empty one is the page itself."
        ),
        "count",
        "hosts",
    )
    NOT_INDEXED = "not_indexed", "The HTML has `noindex`, so search engines do not list the page."
    CANONICAL_ELSEWHERE = (
        "canonical_elsewhere",
        "The HTML names `url` as its canonical URL, so search engines do not list the page.",
        "url",
    )
    DNS_NOT_ANSWERED = (
        "dns_not_answered",
        "The DNS servers did not answer for the host, so the status is unchanged.",
        "host",
    )
    NO_CUSTOM_DOMAINS = (
        "no_custom_domains",
        "The installation has no custom domains, so the URL of the site is unchanged.",
    )
    # Forms
    CONSENT_NOT_STORED = (
        "consent_not_stored",
        "No consent is stored, because the value does not mean yes.",
        "field",
    )
    VALUES_NOT_STORED = (
        "values_not_stored",
        "`count` values that only programs need are not stored. `fields` has the first names.",
        "count",
        "fields",
    )


class CallWarning(NamedTuple):
    """How a successful call differs from what its caller may expect."""

    message: str
    code: WarningCode
    facts: Mapping[str, Any]

    def detail(self) -> dict[str, Any]:
        """Return the element of ``warningDetails``."""
        return {"code": self.code, "message": self.message, **self.facts}
