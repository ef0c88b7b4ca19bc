"""Spellings of one mailbox have the same key."""

from chalicelib.lib.mailboxes import mailbox_key


def test_mailbox_key_is_equal_only_for_one_mailbox() -> None:
    assert (
        mailbox_key("a.b+c@googlemail.com")
        == mailbox_key("ab@gmail.com")
        == mailbox_key("AB@GMAIL.com")
    )
    assert mailbox_key("a.b@example.com") != mailbox_key("ab@example.com")
    assert mailbox_key("+a@example.com") != mailbox_key("+b@example.com")
    assert mailbox_key("ada+x@example.com") == mailbox_key("ada@EXAMPLE.com")
    assert (
        mailbox_key("a.b@yandex.ru") == mailbox_key("A-B@ya.ru") == mailbox_key("a.b+c@yandex.com")
    )
    assert mailbox_key("ab@yandex.ru") != mailbox_key("a.b@yandex.ru")
    assert mailbox_key("a.b_c@proton.me") == mailbox_key("abc@pm.me")
    assert mailbox_key("ada@me.com") == mailbox_key("ada@icloud.com")
    assert mailbox_key("АДА@пример.рф") == mailbox_key("ада@xn--e1afmkfd.xn--p1ai")
