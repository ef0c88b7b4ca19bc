"""The demo's posts for the blog of the platform."""

from typing import NamedTuple


class Post(NamedTuple):
    """A post. ``image`` is its cover, a file in ``images``, or empty."""

    slug: str
    title: str
    description: str
    tags: tuple[str, ...]
    category: str
    author: str
    image: str
    content: str
    status: str = "published"


POSTS = (
    Post(
        slug="agent-in-five-minutes",
        title="Как подключить ИИ-агента к рабочему пространству за пять минут",
        description="Ключ, одна строка настройки и первый вопрос: агент видит сайты, заявки и "
        "товары ровно в тех пределах, которые вы ему дали.",
        tags=("агенты", "MCP", "с чего начать"),
        category="Руководства",
        author="Анна Лебедева",
        image="bun-cup-cookies",
        content="""\
Агенту не нужен отдельный «коннектор». Сервер инструментов уже работает по адресу `/api/mcp`, и \
любой клиент, который говорит на MCP, подключается к нему напрямую. Понадобятся **ключ** и \
**одна запись в настройках**.

## Ключ с узкими правами

Создайте ключ и отметьте только то, что нужно агенту. Если он отвечает на заявки, ему хватит двух \
областей:

| Область | Что разрешает | Нужна ли для заявок |
|---|---|:-:|
| `crm:read` | читать заявки, клиентов и формы | да |
| `crm:write` | менять статусы, заметки и метки | да |
| `products:read` | смотреть товары и остатки | по желанию |
| `files:write` | загружать и удалять файлы | нет |

Право на запись *не включает* права на чтение: если нужны оба, отметьте оба. Токен показывают один \
раз, поэтому сразу положите его в менеджер паролей.

## Запись в настройках клиента

```json
{
  "mcpServers": {
    "workspace": {
      "type": "http",
      "url": "https://workspace.example/api/mcp",
      "headers": { "Authorization": "Bearer svc_live_…" }
    }
  }
}
```

После перезапуска клиент спросит список инструментов и увидит только те, которые разрешает ключ. \
Лишние строки не отвлекают модель и не занимают её контекст.

## Первый вопрос

Спросите что-нибудь проверяемое:

> Сколько заявок пришло за неделю и какие из них ещё новые?

Агент вызовет `svc_crm_stats`, затем `svc_list_leads` со статусом `new`. Если он ошибётся в имени \
поля, ответ подскажет верное: в сообщениях об ошибках написано, чего ждали, что пришло и что с \
этим делать.

### Что он не сможет

1. Заглянуть в чужое рабочее пространство: оно определяется ключом.
2. Увидеть баланс, платежи и сами ключи: таких инструментов нет.
3. Удалить страницу без подтверждения: без `confirm: true` сервер вернёт вопрос.

Отозвать ключ можно в любой момент, и следующий же запрос с ним получит отказ.
""",
    ),
    Post(
        slug="no-double-bookings",
        title="Онлайн-запись, в которой место не продают дважды",
        description="Что происходит между «показать свободное время» и «записать клиента» и "
        "почему проверка должна быть одной и той же.",
        tags=("запись", "надёжность"),
        category="Как это устроено",
        author="Михаил Орлов",
        image="cake-pie-cookies",
        content="""\
Двое открыли расписание в одну и ту же секунду. Оба видят свободные 15:00, оба нажимают \
«Записаться». Кто-то один должен получить вежливый отказ, и сразу с ближайшими свободными окнами.

## Одна проверка на двоих

Список свободных окон и сама запись спрашивают **одно и то же правило**. Если бы правил было два, \
однажды они разошлись бы: календарь показывал бы время, на которое нельзя записаться.

## Запись и занятость меняются вместе

Занятые минуты мастера за день лежат одной строкой. Новая запись меняет её в той же транзакции, в \
которой появляется сама:

```text
прочитать день мастера, версия 17
найти место для записи
записать бронь и день, если версия всё ещё 17
```

Второй участник гонки увидит версию 18, перечитает день и честно ответит: занято.

---

Ночью, при переводе часов, двух часов ночи может не быть вовсе. Такое время не предлагают, а \
присланное вручную отклоняют с объяснением.
""",
    ),
    Post(
        slug="site-form-lead",
        title="A site, a form and a lead in five calls",
        description="From an empty workspace to the first customer request, with curl alone.",
        tags=("API", "с чего начать"),
        category="Guides",
        author="Ada Whitfield",
        image="loaf-baguette-bun",
        content="""\
Everything the console shows is also an API call. Here is the shortest way from nothing to a \
request that waits in your inbox.

```bash
export API=https://workspace.example KEY=svc_live_…

curl -s $API/api/projects/create -H "Authorization: Bearer $KEY" \\
  -H 'Content-Type: application/json' -d '{"title": "Corner Bakery"}'
```

The answer has the site's `id`. Give it a page, and the page its HTML:

```bash
curl -s $API/api/pages/create … -d '{"projectId": "…", "title": "Home"}'
curl -s $API/api/pages/save-html … -d '{"id": "…", "html": "<h1>Fresh at seven</h1>"}'
```

Then create a form. Its answer carries `embedHtml`, which you can paste into any page:

```bash
curl -s $API/api/forms/create … -d '{
  "title": "Order a cake",
  "fields": [
    {"name": "name", "label": "Name", "required": true},
    {"name": "phone", "label": "Phone", "type": "phone", "required": true}
  ]
}'
```

What a visitor sends becomes a **lead** of a *client*, matched by phone and e-mail. The fifth call \
lists it: `GET /api/forms/collection-list?status=new`.
""",
    ),
    Post(
        slug="money-in-kopecks",
        title="Почему цены целые",
        description="Копейка в копейку: почему в API нет дробных рублей.",
        tags=("API", "надёжность"),
        category="Как это устроено",
        author="Михаил Орлов",
        image="",
        content="""\
Цена булочки 45 рублей хранится как `4500`. Дроби в двоичном виде не бывают точными: `0.1 + 0.2` \
даёт `0.30000000000000004`, и через тысячу чеков касса не сойдётся.

Поэтому деньги в API всегда **целые копейки**. Если прислать `45.00`, сервер не станет гадать и \
ответит, сколько это в копейках.
""",
    ),
    Post(
        slug="roadmap",
        title="Что дальше",
        description="Черновик: планы на зиму.",
        tags=(),
        category="Новости",
        author="Анна Лебедева",
        image="",
        content="Черновик виден только тем, кто пишет блог.",
        status="draft",
    ),
)
"""The last post is published first, so that the first one is at the top of the blog."""
