"""What a capture form says to its visitors, in the language of the form."""

_TEXTS = {
    "ru": {
        "required": "Заполните это поле.",
        "unticked": "Поставьте здесь отметку.",
        "unchosen": "Выберите один из вариантов: {options}.",
        "too_long": "Слишком длинно: не больше {limit} знаков, а здесь {length}.",
        "text": "Введите текст.",
        "email": "Введите адрес почты, например anna@example.com.",
        "phone": "Введите номер телефона, например +7 999 123 45 67.",
        "number": "Введите число, например 10 или 2,5.",
        "date": "Введите дату, например 31.01.2030.",
        "tick": "Поставьте отметку или снимите её.",
        "check": "Форма не отправлена. Проверьте: {labels}.",
        "send": "Отправить",
        "again": "Отправить ещё раз",
        "choose": "Выберите…",
        "offline": "Нет связи. Попробуйте ещё раз.",
        "back": "Вернуться на сайт",
        "thanks": "Спасибо!",
        "not_sent": "Не отправлено",
        "malformed": "Форму не удалось прочитать. Вернитесь назад и отправьте её ещё раз.",
        "too_fast": "Слишком быстро. Подождите пару секунд и отправьте ещё раз.",
        "not_found": "Эта форма больше не принимает ответы.",
        "payload_too_large": "Слишком много текста. Сократите его и отправьте ещё раз.",
        "rate_limited": "Сейчас форма не может принять больше ответов. Попробуйте позже.",
        "failed": "Не получилось отправить. Попробуйте ещё раз чуть позже.",
    },
    "en": {
        "required": "Please fill in this field.",
        "unticked": "Please tick this box.",
        "unchosen": "Please choose one of: {options}.",
        "too_long": "That is too long: {limit} characters at most, and these are {length}.",
        "text": "Please enter a text.",
        "email": "Please enter an e-mail address, such as ada@example.com.",
        "phone": "Please enter a phone number, such as +44 20 7946 0123.",
        "number": "Please enter a number, such as 10 or 2.5.",
        "date": "Please enter a date, such as 2030-01-31.",
        "tick": "Please tick or untick this box.",
        "check": "The form was not sent. Please check: {labels}.",
        "send": "Send",
        "again": "Send again",
        "choose": "Choose…",
        "offline": "No connection. Please try again.",
        "back": "Back to the site",
        "thanks": "Thank you!",
        "not_sent": "Not sent",
        "malformed": "The form could not be read. Go back and send it again.",
        "too_fast": "That was quick. Please wait two seconds and send it again.",
        "not_found": "This form does not take answers any more.",
        "payload_too_large": "That is too much text. Please shorten it and send it again.",
        "rate_limited": "The form cannot take more answers just now. Please try again later.",
        "failed": "It could not be sent. Please try again a little later.",
    },
}


def text(language: str, key: str, **values: object) -> str:
    """Return a text; a language that is not spoken here is answered in English."""
    return _TEXTS.get(language, _TEXTS["en"])[key].format(**values)


def for_failure(language: str, code: str) -> str:
    """Return what a visitor is told of a failure by its code; programs read the code itself."""
    return text(language, _FAILURES.get(code, "failed"))


_FAILURES = {
    "not_found": "not_found",
    "payload_too_large": "payload_too_large",
    "rate_limited": "rate_limited",
    "too_fast": "too_fast",
    "unsupported_media_type": "malformed",
    "validation_error": "malformed",
}
