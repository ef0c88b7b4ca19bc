"""Selection of the sentences in a system prompt that state facts about the business.

The demo model quotes the prompt to visitors, so it must never quote an instruction. A sentence is
kept only if it has the form of a statement and contains no mark of an instruction. In doubt it is
left out: a missing fact costs one answer, but a quoted instruction embarrasses the owner.
"""

# ruff: noqa: RUF001  Cyrillic letters are intended

import re
from collections.abc import Iterator

from chalicelib.lib import extracts

MAX_SENTENCE = 400
"""Characters of a sentence. Longer sentences are left out to bound the time for the patterns."""

_FLAGS = re.IGNORECASE | re.VERBOSE

_INSTRUCTIVE = re.compile(
    r"""
    \b(?:
    # First and second person singular, second person plural, and the words for the model itself.
    i | i'm | me | my | you | your | yours | yourself | you're | you'll
    | assistants? | chat-?bots? | bots? | ai | llm | persona | prompts? | instruct\w* | users?
    | helpers? | interlocutors? | conversations? | chats? | messages? | wants? | expects? | goals?
    | tasks? | forbidden | prohibited | allowed | system | respon[ds]\w* | repl(?:y|ies|ying)
    | answer\w* | question\w* | asks? | asked | asking | tone | style | role | rules?
    | guidelines? | language | must | should | shall | ought | need(?:s|ed)?\ to
    | (?:is|are)\ to\ be | ensure | please | polite\w* | friendly | concise\w* | brief\w*
    | sentences? | emojis? | markdown | json | html | topics? | secrets? | confidential
    | internal | password\w* | reveal\w* | disclos\w* | mention\w*
    | я | мне | меня | мной | мо[йяеюё] | мои | моего | моей | моих
    | ты | тебя | тебе | тобой | тво\w+ | вы | вас | вам | вами | ваш\w*
    | помощни\w+ | ассистент\w* | (?:чат-?)?бот(?:а|у|ом|е|ы|ов)? | нейросет\w* | персонаж\w* | роль
    | роли | тон | тоне | тоном | стиль | стиле | стиля | правил\w* | инструкци\w+ | промпт\w*
    | пользовател\w+ | собеседник\w* | посетител\w+ | вопрос\w* | ответ(?:а|у|ом|е|ы|ов|ам|ами|ах)?
    | отвеча\w+ | спрашива\w+ | спрос(?:и|ит|ят|ил|или|ила)\w* | долж(?:ен|на|но|ны) | нужно | надо
    | следует | нельзя | обяза[нт]\w* | необходимо | старай\w* | никогда | пожалуйста
    | вежлив\w* | дружелюб\w* | приветлив\w* | кратко | коротко | лаконичн\w* | чат\w{0,3}
    | сообщени\w+ | задач\w+ | цел(?:ь|и|ью) | запре[тщ]\w+ | хотим | ожидаем | счита[ею]\w*
    | обраща\w+ | обща\w+ | говор\w+ | пишем | секрет\w* | парол\w+ | конфиденц\w+ | внутренн\w+
    | раскрыва\w+ | эмодзи | символ\w* | слов(?:а|ами)?
    # Russian imperatives by their endings.
    | (?!(?:чай|май|край|рай|случай|урожай|каравай|трамвай|сарай|николай|алтай|китай|буй)\b)
      [а-яё]+[аяую]й
    | [а-яё]+(?:[аяуюео]йся|[^\Wт]ься|[ьй]тесь|итесь|ьте|(?<!\bса)йте) | (?!на\b)[а-яё]{2,}дите
    # Short Russian imperatives, and those in -и. Nouns end in -и as well, so the stems are listed.
    | (?:с|по|под|рас|пере|на|за|вы|при|до|о|об|от|у|из|про|раз|в|пред|воз|вз|не)?
      (?:кажи|скажи|говори|пиши|проси|ложи|ясни|точни|зови|веди|веряй|неси|бери|держи|помни|ищи|смотри
      |учи|шли|моги|звони|плати|купи|чни|кончи|верши|реши|общи|благодари|вини|мяни|прими|йми|йди|жди
      |ступи|води|следи|вторяй|втори|крати|прети|ступай|чти|хвали|груби|шути|лги|ври|молчи|храни
      |блюди|редели|дели|полни|черкни|мени|цени|равни|яви|рази|бавь|ставь|будь|меть|верь|веть
      |знакомь|готовь|дай|давай|сылай|бедись|ратись|несись|йдись|тупи|вызови|торопи|веселись)
    )\b
    """,
    _FLAGS,
)
"""Words about the model's behaviour, and imperatives, at any position of a sentence."""

_CLAUSE = re.compile(r"^|[.!?;:,()–—]\s+|\s-\s+|\n")
_CONNECTIVE = (
    r"(?:(?:and|but|so|then|also|always|only|just|or|и|а|но|то|также|затем|потом|поэтому|всегда"
    r"|только|сразу|обязательно|сначала|лучше|не)\s+)*"
)
_COMMAND = re.compile(
    _CONNECTIVE
    + r"""
    (?:
    (?:if|when|whenever|unless|do|don't|don’t|not|always|never|only|no\ longer|let|let's
    |act|adapt|add|address|adjust|adopt|apologi[sz]e|argue|assist|assume|avoid|base|be|begin|behave
    |beware|book|calculate|call|check|choose|cite|clarify|collect|come|compare|comply|confirm|consider
    |consult|convert|convince|count|create|deal|decline|describe|discuss|draft|emphasi[sz]e|encourage
    |end|engage|escalate|exclude|explain|express|fabricate|feel|find|finish|flirt|focus|follow|forget
    |format|forward|gather|generate|get|give|go|greet|guess|guide|hand|handle|help|highlight|ignore
    |imagine|include|insult|introduce|invent|invite|joke|keep|lead|leave|lie|limit|list|listen|log
    |look|maintain|make|match|memori[sz]e|mind|mirror|name|note|obey|offer|output|pass|persuade|pick
    |play|praise|present|pretend|prefer|prioriti[sz]e|promise|promote|propose|protect|provide|push|put
    |quote|read|recommend|record|redirect|refer|refuse|rely|remain|remember|remind|remove|repeat
    |report|resolve|respect|return|run|save|say|schedule|search|sell|send|set|share|show|sign|skip
    |solve|speak|specify|start|state|stay|stick|stop|stress|suggest|summari[sz]e|switch|take|talk|tell
    |thank|think|transfer|translate|treat|try|turn|upsell|use|wait|welcome|work|write)\b
    |(?:если|когда|в\ случае)\b
    |(?:имей|умей|стой|открой|закрой|пей)\b
    |(?!(?:при|эти|или|почти|дети|гости|двери|три|пельмени|хинкали|наши)\b)[а-яё]+[ндтрлпмсзвжшщ]и\b
    |(?!(?:есть|пять|шесть|восемь|запись)\b|[а-яё]+ость\b|[а-яё]*(?:девять|десять)\b)[а-яё]+(?:ь|чься|ться)\b
    |(?:не|никогда|всегда|только|обязательно|сначала)\b
    )
    """,
    _FLAGS,
)
"""The beginning of a clause that instructs: a condition, an imperative or an infinitive."""

_CONCEALS = re.compile(
    r"""
    \b(?: (?:not|don't|don’t|never)\ (?:mention|reveal|tell|say|share|disclose|show|discuss|give)
    | keep\b.*\b(?:secret|private|confidential|internal) | (?:secret|confidential|internal)\w*
    | (?:не|никому|никогда)\ [\w ]*
      (?:говори|сообща|упомина|раскрыва|разглаша|показыва|называ|обсужда|рассказыва)\w*
    | секрет\w* | конфиденциальн\w* | внутренн\w* )
    """,
    _FLAGS,
)
"""Instructions to keep the fact in the previous sentence secret."""

_FINITE_EN = (
    r"is|are|was|were|has|have|can|cannot|can't|will|won't|isn't|aren't|costs?|opens?|closes?"
    r"|takes|lasts?|includes?|contains?|accepts|delivers|starts|begins|ends|works|weighs?|offers"
    r"|serves|sells|bakes|makes|stands|lies|belongs|comes|runs|operates|employs|ships|provides"
)
_STATEMENT = re.compile(
    rf"""
    # A subject, then a verb, without another clause between them.
    ^(?:our|there|these|this|it|they)\b .*
      \b(?:{_FINITE_EN}|we|bake|make|sell|serve|deliver|offer)\b
    | ^(?:(?!\b(?:that|what|which|who|whom|whose|how|why|whether|where|whoever|whatever
      |everything)\b).)*? \b(?:we | (?<=\s)(?:{_FINITE_EN}))\b
    | \b(?:мы|нас|нам|нами|наш\w*|есть|нет|бесплатн\w*|открыт\w*|закрыт\w*|можно|располож\w+)\b
    | \b[а-яё]{{2,}}(?:ем|ём|им|ет|ёт|ит|ют|ут|ят|ат)(?:ся)?\b
    | \b[а-яё]{{3,}}[аеё]н(?:а|о|ы)?\b
    # A label with a value, or the subject of a Russian sentence without a verb.
    | ^(?:e-?mail|phone|tel|telephone|address|website|hours|opening\ hours|working\ hours
      |business\ hours|delivery|payment|parking|prices?|sizes?|menu|ingredients|weight|metro
      |discounts?|warranty|returns?)\s*[:–—-]\s*\S
    | ^(?:адрес|телефон|почта|сайт|доставк|самовывоз|оплат|скидк|парков|метро|график|режим|часы
      |цен[аы]|гаранти|возврат|меню|вход|wi-?fi|состав|срок|вес|размер|ассортимент|стоимост
      |аллерген)
    # Amounts, times and contacts.
    | (?<!\d)\d[\d\s.,]{{0,12}}(?:₽|\$|€|%|руб|rub|коп|кг|kg|г\b|g\b|мл|ml|л\b|мин|min|час|hour
      |шт|pcs|am\b|pm\b)
    | \d:\d\d | [₽$€]\s*\d | \+\d[\d\s()-]{{6}} | \w@\w
    | ^[^.!?]{{2,60}}[,:–—-]\s*(?:от\s|from\s)?\d[\d\s.,]{{0,12}}\W{{0,3}}$
    """,
    _FLAGS,
)
"""The marks of a statement. A sentence with none of them is left out."""

_ITEM = re.compile(r"^\s*(?:[-*•–—]|\d{1,2}[.)])\s+")
_TITLE = re.compile(r"\s*#{1,6}\s")
_BEHAVIOUR = re.compile(
    r"\b(?:task|goal|mission|guideline|restriction|constraint|limit|format|behavio|personality"
    r"|примеры? диалог|example|задач|цел[ьи]|ограничен|формат|поведени|запре[тщ]|характер)\w*",
    re.IGNORECASE,
)
"""Words of headings above instructions, in addition to those of ``_INSTRUCTIVE``."""


def factual_sentences(prompt: str) -> list[str]:
    """Return the sentences and list items of a prompt that state facts, in their order.

    List items below a line that ends with a colon are kept or left out together with it. A section
    whose heading is about the model's behaviour is left out. A sentence is also left out if the
    next one requires to keep it secret.
    """
    reader = _Reader()
    for line in extracts.plain_text(prompt).splitlines():
        reader.read(line)
    return reader.kept


class _Reader:
    """Reads a prompt line by line and collects the factual sentences in ``kept``."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self._skips_section = False
        self._list_is_factual: bool | None = None
        """Whether the line that introduces the current list states facts.

        False if it instructs. None if it does neither, or if there is no such line.
        """
        self._kept_last = False

    def read(self, line: str) -> None:
        """Read the next line."""
        item = _ITEM.match(line)
        if line.strip() and not item:
            self._list_is_factual = None
        if _TITLE.match(line):
            self._skips_section = _is_behaviour(line)
            self._kept_last = False
        elif not self._skips_section and self._list_is_factual is not False:
            for sentence in extracts.sentences(line[item.end() :] if item else line):
                self._read_sentence(sentence)

    def _read_sentence(self, sentence: str) -> None:
        is_instruction = len(sentence) > MAX_SENTENCE or _instructs(sentence)
        is_statement = not is_instruction and bool(_STATEMENT.search(sentence))
        introduces_list = sentence.endswith(":")
        if is_instruction and self._kept_last and _CONCEALS.search(sentence[:MAX_SENTENCE]):
            self.kept.pop()
        if introduces_list:
            is_about_behaviour = is_instruction or _is_behaviour(sentence)
            self._list_is_factual = False if is_about_behaviour else is_statement or None
            is_statement = bool(self._list_is_factual)
        is_factual_item = self._list_is_factual is True and not is_instruction
        self._kept_last = is_statement or (is_factual_item and not introduces_list)
        if self._kept_last:
            self.kept.append(sentence)


def _is_behaviour(text: str) -> bool:
    return bool(_BEHAVIOUR.search(text) or _INSTRUCTIVE.search(text))


def _instructs(sentence: str) -> bool:
    return bool(_INSTRUCTIVE.search(sentence)) or any(
        _COMMAND.match(clause) for clause in _clauses(sentence)
    )


def _clauses(sentence: str) -> Iterator[str]:
    for mark in _CLAUSE.finditer(sentence):
        yield sentence[mark.end() :].lstrip("\"'«“„*_ ")
