(() => {
  // The chat widget of a bot, for any web page (docs/widget.md lists the options):
  // <script src="https://…/widget.js" data-agent="BOT ID" async></script>
  "use strict";

  const WORDS = {
    en: {
      title: "Chat", open: "Open chat", close: "Close chat", news: "new answer",
      hello: "Hello! How can I help?", ai: "Answers are written by AI and can be wrong.",
      log: "Messages", you: "You", bot: "Answer", writing: "Writing an answer…",
      message: "Your message", send: "Send", stop: "Stop answer", stopped: "Stopped.",
      retry: "Try again", cut: "The answer was interrupted.", failed: "No answer arrived.",
      short: "The answer is incomplete: it reached the maximum length.",
      filtered: "A filter has hidden the answer or part of it.", empty: "There is no answer to this. Try asking in other words.",
      slow: "The answer took too long.",
      offline: "No internet connection.", gone: "This chat is not available.",
      busy: "The previous answer is not finished yet.", many: "Too many messages at once.",
      limit: "The chat is not available right now.", later: (when) => `Try again ${when}.`,
      down: "The chat is not responding right now.", long: "The message is too long.",
      fresh: "The previous conversation has ended. This is a new one.",
      leave: "Leave contact details", name: "Name (optional)", reach: "Phone or e-mail",
      wrong: "Enter a phone number with the country code, or an e-mail address.", back: "Back",
      consent: "I agree to the processing of my contact details.",
      privacy: "Privacy policy", taken: "Your contact details have been sent.",
      contact: (name, reach) => `${name ? `My name is ${name}. ` : ""}You can reach me at ${reach}`,
      sources: "Sources:", card: "Please confirm", sending: "Sending…", need: "Fill in this field.", check: "Check this field.",
      unable: "This is not possible right now.", sold: "This time is no longer free.",
      free: (when) => `Is ${when} free?`, changed: "The details have changed. Ask for a new card.",
      ended: "This card is no longer valid. Ask for a new one.", older: "A newer card has replaced this one.",
      expired: "The time to confirm is over. Ask for a new card.", calendar: "Add to calendar", pay: "Pay", next: "Continue",
      undo: "Cancel booking", sure: "Press again to cancel the booking", undone: "The booking is cancelled.",
      times: "Which times are free?", ask: "Leave your contact details, and we will reply.", questions: "First questions", test: "Test: nothing here is real.",
    },
    ru: {
      title: "Чат", open: "Открыть чат", close: "Закрыть чат", news: "есть новый ответ",
      hello: "Здравствуйте! Чем могу помочь?", ai: "Отвечает ИИ, он может ошибаться.",
      log: "Сообщения", you: "Вы", bot: "Ответ", writing: "Пишу ответ…",
      message: "Ваше сообщение", send: "Отправить", stop: "Остановить ответ",
      stopped: "Остановлено.", retry: "Повторить", cut: "Ответ прервался.",
      short: "Ответ неполный: достигнута наибольшая длина.", filtered: "Ответ или его часть скрыты фильтром.",
      empty: "На это нет ответа. Спросите другими словами.", slow: "Ответ занял слишком много времени.",
      failed: "Ответ не пришёл.", offline: "Нет связи с интернетом.",
      gone: "Этот чат недоступен.", busy: "Прошлый ответ ещё не закончен.",
      many: "Слишком много сообщений подряд.", limit: "Сейчас чат недоступен.",
      later: (when) => `Попробуйте ${when}.`, down: "Сейчас чат не отвечает.",
      long: "Сообщение слишком длинное.", fresh: "Прошлый разговор закончился. Это новый.",
      leave: "Оставить контакты", name: "Имя (необязательно)", reach: "Телефон или эл. почта",
      wrong: "Введите номер телефона с кодом страны или адрес эл. почты.", back: "Назад",
      consent: "Даю согласие на обработку контактов.",
      privacy: "Политика конфиденциальности", taken: "Ваши контакты отправлены.",
      contact: (name, reach) => `${name ? `Меня зовут ${name}. ` : ""}Мой контакт: ${reach}`,
      sources: "Источники:", card: "Подтвердите", sending: "Отправляю…", need: "Заполните это поле.",
      check: "Проверьте это поле.", unable: "Сейчас это не получается.", sold: "Это время уже занято.",
      free: (when) => `Свободно ли время: ${when}?`, changed: "Условия изменились. Попросите новую карточку.",
      ended: "Эта карточка больше не действует. Попросите новую.", older: "Её заменила новая карточка.",
      expired: "Время на подтверждение вышло. Попросите новую карточку.", calendar: "Добавить в календарь", pay: "Оплатить",
      next: "Продолжить", undo: "Отменить запись", sure: "Нажмите ещё раз, чтобы отменить запись", undone: "Запись отменена.",
      times: "Когда есть свободное время?", ask: "Оставьте контакты, и мы ответим.", questions: "Первые вопросы", test: "Тест: всё не по-настоящему.",
    },
  };

  const top = document.documentElement;
  const MAX_MESSAGE = 10000;
  // Messages on the page. Half of them are kept when the visitor opens another page.
  const MAX_TURNS = 60;
  // A working stream sends at least ": ping" every 15 s.
  const SILENCE_MS = 45000;
  const BUSY_TRIES = 4;
  const MAX_SOURCES = 5;
  const MAX_TIMES = 3;
  const MAX_QUESTIONS = 4;

  const CSS = `
:host{all:initial!important;position:static!important;font-size:medium!important}
*{box-sizing:border-box;margin:0}
[hidden]{display:none!important}
.w{--bg:#fff;--ink:#1b1d22;--soft:#eff1f5;--line:#d9dde4;--edge:#868d9a;--mute:#565d6b;--bad:#b3261e;
font:1em/1.5 system-ui,sans-serif;
color:var(--ink);color-scheme:light;text-align:start}
.w.dark{--bg:#181a1f;--ink:#eceef2;--soft:#282c34;--line:#383d47;--edge:#7b8494;--mute:#a9b0bd;--bad:#ffa198;color-scheme:dark}
button,input,textarea,select{font:inherit;color:inherit;letter-spacing:inherit}
button{border:0;background:none;padding:0;cursor:pointer;touch-action:manipulation}
svg{display:block;width:1.5em;height:1.5em;fill:none;stroke:currentColor;stroke-width:2;stroke-linecap:round;stroke-linejoin:round}
:focus{outline:none}
:focus-visible{outline:3px solid var(--ink);outline-offset:2px;box-shadow:0 0 0 2px var(--bg)}
.launcher,.panel{position:fixed;z-index:2147483000}
.launcher{bottom:calc(20px + var(--up) + env(safe-area-inset-bottom));right:calc(20px + env(safe-area-inset-right));
width:60px;height:60px;border-radius:50%;display:grid;place-items:center;background:var(--accent);color:var(--on);
border:1px solid transparent;box-shadow:0 4px 20px #0004}
.launcher svg{width:28px;height:28px}
.launcher.news::after{content:"";position:absolute;top:2px;right:2px;width:14px;height:14px;border-radius:50%;background:var(--bad);border:2px solid #fff}
.panel{z-index:2147483001;bottom:calc(20px + var(--over) + env(safe-area-inset-bottom));right:calc(20px + env(safe-area-inset-right));
width:400px;max-width:calc(100vw - 40px);height:min(640px,100vh - 40px - var(--over));display:flex;flex-direction:column;overflow:hidden;
background:var(--bg);border:1px solid var(--line);border-radius:18px;box-shadow:0 12px 48px #0000003d}
.left .launcher,.left .panel{right:auto;left:calc(20px + env(safe-area-inset-left))}
header{display:flex;align-items:center;gap:12px;padding-block:14px;padding-inline:18px 12px;background:var(--accent);color:var(--on)}
[dir=rtl] :is(h2,h3,label,dt,dd,.tell){unicode-bidi:plaintext;text-align:right}
[dir=rtl] textarea:placeholder-shown{direction:rtl}
header div{flex:1;min-width:0}
header img{height:40px;max-width:96px;border-radius:8px}
.band{padding:6px 18px;background:#fdf0dc;color:#000}
h2{font-size:1.0625em;line-height:1.3;font-weight:650;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
header p{font-size:.8125em;line-height:1.35}
.icon{flex:none;width:44px;height:44px;border-radius:12px;display:grid;place-items:center}
header .icon:focus-visible{outline-color:var(--on);outline-offset:-4px;box-shadow:none}
.log{flex:1;overflow-y:auto;overscroll-behavior:contain;padding:18px 16px 8px;display:flex;flex-direction:column;gap:10px}
.log>:first-child{margin-top:auto}
.log:focus-visible{outline-offset:-3px;box-shadow:none}
.turn{max-width:86%;align-self:flex-start}
.me{align-self:flex-end}
.bubble{padding:9px 14px;border:1px solid transparent;border-radius:16px;background:var(--soft);overflow-wrap:anywhere;border-end-start-radius:5px}
.me .bubble{background:var(--accent);color:var(--on);white-space:pre-wrap;border-end-start-radius:16px;border-end-end-radius:5px}
.bubble>*+*{margin-top:.6em}
.bubble ul,.bubble ol{padding-inline-start:1.4em}
.bubble li+li{margin-top:.2em}
.bubble a{color:inherit;text-underline-offset:2px}
.bubble hr{border:0;border-top:1px solid var(--edge)}
code,pre{font:.9375em/1.5 ui-monospace,Menlo,Consolas,monospace}
p>code,li>code{background:var(--bg);border-radius:5px;padding:1px 4px}
pre{white-space:pre;overflow-x:auto;background:var(--bg);border-radius:8px;padding:8px 10px;direction:ltr;text-align:left}
.note{display:flex;flex-wrap:wrap;align-items:center;gap:0 10px;font-size:.9375em;color:var(--mute);padding:4px 2px 0}
.note.bad{color:var(--bad)}
.between{align-self:center;text-align:center}
.chip{min-height:40px;padding:0 14px;margin-bottom:8px;border:1px solid var(--edge);border-radius:20px;font-size:.9375em;font-weight:550}
.link{min-height:44px;text-decoration:underline;text-underline-offset:3px;color:var(--ink);font-weight:550}
.dots{display:flex;gap:5px;padding:7px 0}
.dots i{width:8px;height:8px;border-radius:50%;background:var(--mute);animation:w 1.2s infinite}
.dots i+i{animation-delay:.15s}
.dots i+i+i{animation-delay:.3s}
@keyframes w{0%,60%,to{opacity:.3}30%{opacity:1}}
@keyframes up{from{opacity:0;transform:translateY(12px)}}
.panel{animation:up .16s ease-out}
.foot{padding:6px 12px calc(12px + env(safe-area-inset-bottom))}
.box{display:flex;align-items:flex-end;gap:4px;border:1px solid var(--edge);border-radius:16px;padding:4px;background:var(--bg)}
.box:focus-within,input:focus-visible{border-color:var(--mute);box-shadow:0 0 0 1px var(--mute);outline:none}
textarea{font-size:max(16px,1em);flex:1;min-width:0;min-height:44px;max-height:9.5em;padding:10px 10px;border:0;background:none;resize:none;overflow-y:auto}
textarea:focus-visible{outline:none;box-shadow:none}
::placeholder{color:var(--mute);opacity:1}
.go{background:var(--accent);color:var(--on)}
.go:disabled{background:var(--soft);color:var(--mute)}
form.contact{display:grid;gap:10px;padding:4px 4px 0}
label{display:grid;gap:4px;font-size:.9375em;font-weight:550}
input,select,.card textarea{min-height:46px;padding:8px 12px;border:1px solid var(--edge);border-radius:12px;background:var(--bg);font-size:max(16px,1.0667em);font-weight:400}
[aria-invalid]{border-color:var(--bad);box-shadow:0 0 0 1px var(--bad)}
.small{font-size:.875em;color:var(--mute)}
.small a{color:inherit}
.bad{color:var(--bad)}
.row{display:flex;gap:16px;align-items:center}
.first{flex-wrap:wrap;gap:0 8px}
.button{min-height:46px;padding:0 20px;border-radius:12px;background:var(--accent);color:var(--on);font-weight:600}
.card{display:grid;gap:10px;padding:14px;border:1px solid var(--edge);border-radius:16px;overflow-wrap:anywhere}
.card:focus-visible{outline-offset:-3px;box-shadow:none}
.card>*,.card label>*{min-width:0;max-width:100%}
.card form,dl{display:grid;gap:8px}
h3{font-size:1em;font-weight:650}
dl div{display:grid;grid-template-columns:minmax(0,3fr) minmax(0,4fr);gap:10px}
dt{color:var(--mute)}
.card .note:not(.bad){color:var(--ink)}
.card .row{flex-wrap:wrap;gap:8px 16px}
.card .chip{min-height:44px;margin:0;padding:8px 14px;text-align:start}
.card :is(select,textarea){width:100%}
.check{display:flex;align-items:center;gap:10px;min-height:44px}
.check input{flex:none;width:24px;min-height:24px;accent-color:var(--accent)}
[aria-disabled]{background:var(--soft);color:var(--mute)}
.row a{display:inline-flex;align-items:center;min-height:44px;color:inherit;font-weight:550}
.sources{overflow-wrap:anywhere;padding:4px 2px 0}
.sr{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
@media(max-width:480px),(max-height:480px){
.panel,.left .panel{inset:var(--top,0) 0 auto;width:100%;max-width:none;height:var(--tall,100vh);border:0;border-radius:0}
header{padding-top:calc(10px + env(safe-area-inset-top));padding-bottom:10px}
.w.opened .launcher{display:none}
.sources a{display:inline-block;padding:12px 0}
}
@media(prefers-reduced-motion:reduce){*{animation:none!important}}
@media(forced-colors:active){.bubble,.panel,.launcher,.button,.icon{border:1px solid}}
@media print{.w{display:none}}`;

  /** Create an element. Attributes that are functions become event listeners. Text is never parsed as HTML. */
  const el = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (typeof value === "function") node.addEventListener(name, value);
      else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
    }
    node.append(...children.filter(Boolean));
    return node;
  };

  const button = (kind, click, ...inside) => el("button", { class: kind, type: "button", click }, ...inside);

  /** Return a button that looks like a link. */
  const act = (text, click) => button("link", click, text);

  /** Return a paragraph in the direction of the panel. */
  const para = (kind, ...inside) => el("p", { class: `tell ${kind}` }, ...inside);

  const icon = (path) => {
    const [svg, line] = ["svg", "path"].map((each) => document.createElementNS("http://www.w3.org/2000/svg", each));
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.ariaHidden = "true";
    line.setAttribute("d", path);
    svg.append(line);
    return svg;
  };
  const ICONS = {
    chat: "M4 11.5a8 7.5 0 1 1 3.6 6.3L4 19l1-3.4a7 7 0 0 1-1-4.1zM8.5 11.5h.01M12 11.5h.01M15.5 11.5h.01",
    close: "M6 6l12 12M18 6L6 18",
    send: "M12 19V5M6 11l6-6 6 6",
    stop: "M7 7h10v10H7z",
  };

  /** Return a random id. crypto.randomUUID does not exist on pages without TLS. */
  const randomId = () =>
    Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

  // ---- Server-sent events ----

  /** Return a function that reads a stream's text piece by piece and calls onEvent with the data of each complete event. */
  const eventReader = (onEvent) => {
    let rest = "", data = [], afterReturn = false;
    return (text) => {
      // A CRLF may be split between two pieces.
      if (afterReturn && text[0] === "\n") text = text.slice(1);
      if (!text) return;
      afterReturn = text.endsWith("\r");
      const lines = (rest + text).split(/\r\n|\n|\r/);
      rest = lines.pop();
      for (const line of lines) {
        const field = /^data(?:: ?([^]*))?$/.exec(line);
        if (field) data.push(field[1] || "");
        else if (!line && data.length) {
          onEvent(data.join("\n"));
          data = [];
        }
      }
    };
  };

  // ---- Markdown: a small subset, converted to elements directly ----

  const SAFE = /^(https?|mailto|tel):$/;
  const ITEM = /^(\s*)([-*+]|(\d{1,9})[.)])\s+([^]*)$/;
  const PLAIN = /[^\\\n`*_[!<h]+/y;
  const LINK = /!?\[([^[\]\n]{1,500})\]\(\s*<?([^\s<>()]+(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s+["'][^"'\n]*["'])?\s*\)/y;
  const HALF_LINK = /!?\[([^[\]\n]*)(?:\](?:\([^\s()]*)?)?$/y;
  const ANGLE = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/y;
  const BARE = /https?:\/\/[^\s<>"'`\]*]+/y;
  const MARK = /\*\*|__|[*_]/y;
  const TICKS = /`+/y;
  const WORD = /[\p{L}\p{N}_]/u;

  const link = (href, children) => {
    let url;
    try {
      url = new URL(href);
    } catch {
      // A relative URL, or not a URL.
      return null;
    }
    if (!SAFE.test(url.protocol) || url.username) return null;
    const external = url.protocol[0] === "h";
    const attributes = { href: url.href, rel: "noopener nofollow", target: external ? "_blank" : null };
    return el("a", attributes, ...children);
  };

  /** Return a text as nodes. If `open`, the text may continue, so markup that is not closed yet is applied. */
  const inline = (text, open, depth = 0) => {
    if (open) text = text.replace(/[*_`\\]+$/, "");
    const nodes = [];
    let plain = "", i = 0;
    const add = (node, length) => {
      if (plain) nodes.push(plain);
      plain = "";
      nodes.push(node);
      i += length;
    };
    const at = (pattern) => {
      pattern.lastIndex = i;
      return pattern.exec(text);
    };
    /** Return the position where the emphasis that begins here ends, or -1 if it does not end. */
    const endOf = (mark) => {
      let end = i + mark.length;
      for (let tries = 0; tries < 20; tries++) {
        end = text.indexOf(mark, end + 1);
        if (end < 0) return -1;
        // In ***both***, the inner emphasis ends first.
        if (mark[1] && text[end + 2] === mark[0]) end++;
        const twice = !mark[1] && (text[end + 1] === mark || text[end - 1] === mark);
        const inWord = mark[0] === "_" && WORD.test(text[end + mark.length] || "");
        if (!twice && !inWord && !/\s/.test(text[end - 1])) return end;
      }
      return -1;
    };
    while (i < text.length) {
      const begun = i, sign = text[i];
      let found = at(PLAIN);
      if (found) {
        plain += found[0];
        i += found[0].length;
      } else if (sign === "\n") add(el("br"), 1);
      else if (sign === "\\" && /[!-/:-@[-`{-~]/.test(text[i + 1] || "")) {
        plain += text[i + 1];
        i += 2;
      } else if ((found = at(TICKS))) {
        const ticks = found[0], from = i + ticks.length, end = text.indexOf(ticks, from);
        const code = end < 0 ? text.slice(from) : text.slice(from, end);
        if (end > from || (end < 0 && open)) add(el("code", null, code), code.length + (end < 0 ? 1 : 2) * ticks.length);
      } else if ((found = at(LINK)) || (found = at(ANGLE))) {
        const label = found[2] ? inline(found[1], false, depth + 1) : [found[1].replace("mailto:", "")];
        const node = depth < 5 && link(found[2] || found[1], label);
        if (node) add(node, found[0].length);
        else {
          plain += found[0];
          i += found[0].length;
        }
      } else if (sign === "h" && !WORD.test(text[i - 1] || "") && (found = at(BARE))) {
        let href = found[0].replace(/[.,;:!?]+$/, "");
        if (!href.includes("(")) href = href.replace(/\).*$/, "");
        const node = link(href, [href]);
        if (node) add(node, href.length);
      } else if ((found = at(MARK)) && depth < 5) {
        const mark = found[0], from = i + mark.length;
        const opens = /\S/.test(text[from] || "") && !(mark[0] === "_" && WORD.test(text[i - 1] || ""));
        const end = opens ? endOf(mark) : -1;
        const continues = end < 0 && opens && open && mark[1];
        if (end > 0 || continues) {
          const inside = text.slice(from, continues ? undefined : end);
          const node = el(mark[1] ? "strong" : "em", null, ...inline(inside, continues, depth + 1));
          add(node, inside.length + (continues ? 1 : 2) * mark.length);
        } else {
          plain += mark;
          i += mark.length;
        }
      } else if (open && (found = at(HALF_LINK))) {
        plain += found[1];
        i = text.length;
      }
      if (i === begun) plain += text[i++];
    }
    if (plain) nodes.push(plain);
    return nodes;
  };

  /** Split a text into blocks: {kind, lines}. */
  const splitBlocks = (text) => {
    const blocks = [];
    let block = null;
    const begin = (kind, ...lines) => blocks.push((block = { kind, lines }));
    for (const line of text.split(/\r\n|\n|\r/)) {
      const fence = /^\s*(```+|~~~+)/.exec(line);
      const heading = /^ {0,3}#{1,6}\s+(.+?)[\s#]*$/.exec(line);
      const item = ITEM.exec(line);
      const list = block && (block.kind === "ul" || block.kind === "ol");
      if (block && block.fence) {
        if (fence && fence[1].startsWith(block.fence) && line.trim() === fence[1]) block = null;
        else block.lines.push(line);
      } else if (fence) {
        begin("pre");
        block.fence = fence[1];
      } else if (!line.trim()) {
        if (list) block.loose = true;
        else block = null;
      } else if (/^ {0,3}([-*_])( *\1){2,} *$/.test(line)) {
        begin("hr");
        block = null;
      } else if (heading) {
        begin("h", heading[1]);
        block = null;
      } else if (item) {
        const kind = item[3] ? "ol" : "ul";
        if (!list || (kind !== block.kind && item[1].length < 2)) begin(kind);
        block.lines.push(line);
      } else if (list && (/^\s/.test(line) || !block.loose)) {
        block.lines[block.lines.length - 1] += `\n${line.trim()}`;
      } else {
        if (!block || list) begin("p");
        block.lines.push(line.trim());
      }
    }
    return blocks;
  };

  const listOf = (lines, open) => {
    const levels = [];
    lines.forEach((line, index) => {
      const [, space, , number, text] = ITEM.exec(line);
      while (levels.length > 1 && space.length < levels[levels.length - 1].indent) levels.pop();
      let level = levels[levels.length - 1];
      if (!level || (space.length > level.indent + 1 && levels.length < 6)) {
        const node = el(number ? "ol" : "ul", number > 1 ? { start: number } : null);
        if (level) level.node.lastChild.append(node);
        levels.push((level = { indent: space.length, node }));
      }
      level.node.append(el("li", null, ...inline(text, open && index === lines.length - 1)));
    });
    return levels[0].node;
  };

  const elementOf = ({ kind, lines }, open) => {
    const text = lines.join("\n");
    if (kind === "pre") return el("pre", { tabindex: 0 }, el("code", null, text));
    if (kind === "hr") return el("hr");
    if (kind === "h") return el("p", null, el("strong", null, ...inline(text, open)));
    return kind === "p" ? el("p", null, ...inline(text, open)) : listOf(lines, open);
  };

  /** Return a function that renders a growing text into an element. It replaces only blocks that have changed. */
  const renderer = (parent) => {
    const shown = [];
    return (text, open) => {
      const blocks = splitBlocks(text);
      blocks.forEach((block, index) => {
        const last = open && index === blocks.length - 1;
        const source = `${block.kind} ${last} ${block.lines.join("\n")}`;
        const old = shown[index];
        if (old && old.source === source) return;
        const node = elementOf(block, last);
        if (old) old.node.replaceWith(node);
        else parent.append(node);
        shown[index] = { source, node };
      });
      for (const old of shown.splice(blocks.length)) old.node.remove();
      return shown.map((each) => each.node);
    };
  };

  // ---- State that is stored for the tab ----

  const loadMemory = (key) => {
    const memory = { session: null, visit: randomId(), turns: [], stages: [], open: false, left: false, reply: "" };
    try {
      const kept = JSON.parse(sessionStorage.getItem(key)) || {};
      for (const name of Object.keys(memory)) {
        const same = typeof kept[name] === typeof memory[name] && Array.isArray(kept[name]) === Array.isArray(memory[name]);
        if (same || (name === "session" && typeof kept[name] === "string")) memory[name] = kept[name];
      }
      memory.turns = memory.turns.filter((each) => each && typeof each.text === "string");
    } catch {
      // A sandboxed page has no storage, so the state lasts as long as the page.
    }
    const save = () => {
      try {
        sessionStorage.setItem(key, JSON.stringify({ ...memory, turns: memory.turns.slice(-MAX_TURNS / 2) }));
      } catch {
        // There is no storage, or it is full.
      }
    };
    return [memory, save];
  };

  // ---- The page ----

  /** Return the URL of the page. For a frame with srcdoc, that is the parent's URL. */
  const page = () => new URL(/^https?:/.test(location.href) ? location.href : document.baseURI);
  const pageUrl = () => {
    const { protocol, origin, pathname } = page();
    return /^http/.test(protocol) ? (origin + pathname).slice(0, 2000) : undefined;
  };

  const luminance = (r, g, b) => 0.2126 * r + 0.7152 * g + 0.0722 * b;

  /** Whether black text has more contrast than white on a colour, #rgb or #rrggbb (WCAG, relative luminance). */
  const needsBlack = (colour) => {
    const digits = colour.length < 5 ? colour.replace(/[^#]/g, "$&$&") : colour;
    const [r, g, b] = [1, 3, 5].map((from) => {
      const part = parseInt(digits.slice(from, from + 2), 16) / 255;
      return part > 0.04045 ? ((part + 0.055) / 1.055) ** 2.4 : part / 12.92;
    });
    return luminance(r, g, b) > 0.179;
  };

  /** Whether the page is dark: by the background that it paints, or else by its colour scheme. */
  const isDark = (prefersDark) => {
    const scheme = getComputedStyle(top).colorScheme;
    for (const each of [document.body, top]) {
      const [r, g, b, a = 1] = ((each && getComputedStyle(each).backgroundColor.match(/[\d.]+/g)) || [0, 0, 0, 0]).map(Number);
      if (a > 0.5) return luminance(r, g, b) < 96;
    }
    return /dark/.test(scheme) && (prefersDark || !/light/.test(scheme));
  };

  const PHONE = /^\+?[\d\s().-]{7,25}$/;
  const EMAIL = /^[^\s@]+@[^\s@]+\.[^\s@.]{2,}$/;

  const start = async (options, base, widgets) => {
    const agentId = options.agent;
    const warn = (text) => console.warn(`widget.js, bot ${agentId}: ${text}`);
    if (document.prerendering) await new Promise((go) => document.addEventListener("prerenderingchange", go, { once: true }));

    let agent = {};
    try {
      const answer = await fetch(`${base}api/public/agents/${encodeURIComponent(agentId)}`, { credentials: "omit" });
      if (answer.status === 404) return warn("there is no such bot, or it is switched off.");
      if (answer.ok) agent = (await answer.json()).data.agent || {};
    } catch {
      // The chat reports the failure when the visitor sends a message.
    }
    if (agent.isPrivate) return warn("it is private, and a page cannot keep its key. Nothing is shown.");
    const origins = agent.allowedOrigins || [], here = page().origin;
    if (origins.length && !origins.includes(here) && here !== new URL(base).origin)
      return warn(`its owner does not allow it on ${here} (allowedOrigins).`);
    if (!document.body) await new Promise((go) => document.addEventListener("DOMContentLoaded", go, { once: true }));
    if (document.modelContext) {
      const tools = document.createElement("script");
      tools.src = `${base}assets/webmcp.js`;
      tools.dataset.tools = `${base}book/${encodeURIComponent(agentId)}/mcp`;
      document.body.append(tools);
    }

    const language = options.language || top.lang || navigator.language || "";
    const words = WORDS[/^ru\b/i.test(language) ? "ru" : "en"];
    const [memory, save] = loadMemory(`chat:${agentId}`);
    const title = options.title || agent.name || words.title;
    const greeting = agent.welcomeMessage || words.hello;
    const small = matchMedia("(max-width:480px),(max-height:480px)");
    // The controller of the current answer.
    let abort = null;

    const report = (stage) => {
      if (memory.stages.includes(stage) || options.preview !== undefined) return;
      memory.stages.push(stage);
      save();
      const event = { agentId, visitId: memory.visit, stage, pageUrl: pageUrl(), projectId: options.project };
      const url = `${base}api/public/widget-event`, body = JSON.stringify(event);
      // Beacons are sent as text/plain.
      const sent = navigator.sendBeacon && navigator.sendBeacon(url, body);
      if (!sent) fetch(url, { method: "POST", body, keepalive: true, mode: "no-cors", credentials: "omit" }).catch(() => {});
    };

    // -- Elements --

    const host = el("chat-widget");
    const root = host.attachShadow({ mode: "open" });
    try {
      // The page's Content-Security-Policy for inline styles does not apply to it.
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(CSS);
      root.adoptedStyleSheets = [sheet];
    } catch {
      root.append(el("style", { nonce: script.nonce }, CSS));
    }
    const titleId = "title";
    const launcher = button("launcher", () => toggle());
    const log = el("div", { class: "log", role: "log", "aria-live": "off", "aria-label": words.log, tabindex: 0 });
    const live = el("div", { class: "sr", "aria-live": "polite" });
    const field = el("textarea", {
      rows: 1, maxlength: MAX_MESSAGE, placeholder: words.message, "aria-label": words.message,
      enterkeyhint: "send", dir: "auto", input: () => fit(),
      keydown: (event) => {
        // In Safari, 229 is the Enter that ends a composition.
        if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
        event.preventDefault();
        if (!abort) submit();
      },
    });
    const go = button("icon go", () => (abort ? stop() : submit()));
    const leave = button("chip", () => showContact(true), words.leave);
    // Chips with first questions, until the visitor has written something.
    const asked = [...(agent.offersTimes ? [words.times] : []), ...(options.questions || "").split("|")];
    const questions = el("div", { class: "row first", role: "group", "aria-label": words.questions }, ...asked
      .map((each) => each.trim().slice(0, 80)).filter(Boolean).slice(0, MAX_QUESTIONS)
      .map((each) => button("chip", () => abort || (field.focus(), post(each)), el("bdi", null, each))));
    const composer = el("div", null, questions, leave, el("div", { class: "box" }, field, go));
    const nameField = el("input", { name: "name", autocomplete: "name", maxlength: 200 });
    const reachField = el("input", { name: "contact", maxlength: 320, required: "", "aria-describedby": "wrong", inputmode: "email" });
    const wrong = el("p", { id: "wrong", class: "tell bad small", role: "alert" });
    const policyUrl = options.privacy || agent.privacyUrl;
    const agreed = el("input", { type: "checkbox", required: "" });
    const policy = link(policyUrl, [words.privacy]);
    const contact = el(
      "form", { class: "contact", hidden: "", novalidate: "", "aria-label": words.leave,
        submit: (event) => { event.preventDefault(); sendContact(); } },
      el("label", null, words.name, nameField), el("label", null, words.reach, reachField), el("label", { class: "check" }, agreed, el("span", null, words.consent, " ", policy)), wrong,
      el("div", { class: "row" }, el("button", { class: "button" }, words.send),
        act(words.back, () => showContact(false))),
    );
    const brand = agent.brand || {};
    const shut = button("icon", () => toggle(false), icon(ICONS.close));
    shut.ariaLabel = words.close;
    const panel = el(
      "div", { class: "panel", role: "dialog", "aria-labelledby": titleId, tabindex: -1, hidden: "" },
      el("header", null, brand.logoUrl && el("img", { src: brand.logoUrl, alt: "", loading: "lazy", error: ({ target }) => target.remove() }),
        el("div", null, el("h2", { id: titleId, dir: "auto" }, title), para("", brand.name ? `${brand.name} · ${words.ai}` : words.ai)),
        shut),
      agent.isTest && para("band", words.test), log, live, el("div", { class: "foot" }, composer, contact),
    );
    const box = el("div", { class: "w" }, launcher, panel);
    root.append(box);

    const style = getComputedStyle(top);
    const rtl = (document.body && getComputedStyle(document.body).direction === "rtl") || style.direction === "rtl";
    box.dir = rtl ? "rtl" : "ltr";
    box.lang = words === WORDS.ru ? "ru" : "en";
    const left = options.position ? options.position === "left" : rtl;
    box.classList.toggle("left", left);
    const set = (name, value) => box.style.setProperty(`--${name}`, value);
    // Launchers on the same side are stacked, and a panel opens above all of them.
    const beside = () => [...widgets.values()].filter((each) => each && each.left === left);
    const stack = (place, count) => {
      set("up", `${place * 72}px`);
      set("over", `${count * 72}px`);
    };
    const dark = matchMedia("(prefers-color-scheme:dark)");
    const paint = () => {
      const on = options.theme ? options.theme === "dark" : isDark(dark.matches);
      const accent = /^#([\da-f]{3}){1,2}$/i.test(options.color || "") ? options.color : (brand.colors || [])[+on] || "#3257d6";
      box.classList.toggle("dark", on);
      set("accent", accent);
      set("on", needsBlack(accent) ? "#000" : "#fff");
    };
    dark.addEventListener("change", paint);
    paint();

    // -- The conversation --

    const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 60;
    const toEnd = () => { log.scrollTop = log.scrollHeight; };
    const fit = () => {
      field.style.height = "auto";
      field.style.height = `${field.scrollHeight}px`;
      go.disabled = !abort && !field.value.trim();
    };
    const face = () => {
      const label = abort ? words.stop : words.send;
      go.replaceChildren(icon(abort ? ICONS.stop : ICONS.send));
      go.setAttribute("aria-label", label);
      go.title = label;
      const answered = memory.turns.some((each) => !each.me);
      questions.hidden = !questions.children.length || memory.turns.some((each) => each.me);
      leave.hidden = memory.left || !answered || Boolean(abort) || options.contacts === "off";
      fit();
    };
    /** Let screen readers read a text once. */
    const announce = (text) => {
      const line = el("p", null, text);
      live.append(line);
      setTimeout(() => line.remove(), 10000);
    };
    const show = (me, text) => {
      const bubble = el("div", { class: "bubble", dir: "auto" });
      const turn = el("div", { class: me ? "turn me" : "turn" }, el("span", { class: "sr" }, `${me ? words.you : words.bot}: `), bubble);
      if (me) bubble.textContent = text;
      else if (text) renderer(bubble)(text, false);
      const follow = me || atEnd();
      log.append(turn);
      while (log.children.length > MAX_TURNS) log.firstChild.remove();
      if (follow) toEnd();
      return { turn, bubble };
    };
    /** Show links to the pages that an answer is based on. */
    const showSources = ({ turn }, sources = []) => {
      const links = sources.slice(0, MAX_SOURCES).map((each) => link(each.url, [each.title || each.url])).filter(Boolean);
      if (links.length) turn.append(para("small sources", words.sources, ...links.flatMap((each, place) => [place ? ", " : " ", each])));
    };
    const remember = (turn) => {
      memory.turns.push(turn);
      memory.turns.splice(0, memory.turns.length - MAX_TURNS);
      save();
    };

    const submit = () => {
      const text = field.value.trim();
      if (!text || abort) return;
      field.value = "";
      post(text);
    };
    const post = (message, contact) => {
      show(true, message);
      remember({ me: true, text: message });
      report("started");
      if (memory.turns.filter((each) => each.me).length > 1) report("engaged");
      answer({ message, contact });
    };
    /** Show the replies of the business that are not on the page yet. They are read when the chat is opened, and after a message if there are new ones. */
    const readReplies = async () => {
      if (!memory.session) return;
      const [code, data] = await send("api/agents/public/replies", { agentId, sessionId: memory.session });
      for (const each of (code === 200 && data.replies) || []) {
        if (each.id <= memory.reply) continue;
        memory.reply = each.id;
        const text = `**${each.author}:** ${each.text}`;
        show(false, text);
        remember({ text });
        announce(`${each.author}: ${each.text}`);
        if (panel.hidden) unread(true);
      }
    };
    const stop = () => {
      abort.stopped = true;
      abort.abort();
    };
    const pause = (seconds, signal) => new Promise((go) => {
      const timer = setTimeout(go, seconds * 1000);
      signal.addEventListener("abort", () => { clearTimeout(timer); go(); });
    });

    /** Return when to retry, as a text. It is empty if the server has not sent a time. */
    const later = (seconds) => {
      if (!(seconds > 0)) return "";
      const [size, unit] = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]].find(([each]) => seconds >= each);
      const when = new Intl.RelativeTimeFormat(box.lang).format(Math.ceil(seconds / size), unit);
      return ` ${words.later(when)}`;
    };

    /** Return how to present a refusal: its text, whether to offer a retry (`again`), and whether that needs a new idempotency key. */
    const refusal = (status, code, wait) => {
      if (status === 429) {
        const many = code === "rate_limited";
        return { text: (many ? words.many : words.limit) + later(wait), again: many, down: !many };
      }
      if (status === 409) return { text: words.busy, again: true, newKey: !/^(session_busy|in_progress)$/.test(code) };
      if (status === 400 || status === 413) return { text: code === "message_too_long" || status === 413 ? words.long : words.failed };
      if (status < 500) return { text: words.gone };
      return { text: words.down + later(wait), again: true, down: true };
    };

    /** Request an answer and show it while it arrives. Failures are shown as texts. */
    const answer = async (call, turn = show(false)) => {
      const control = (abort = new AbortController());
      const dots = el("div", { class: "dots" }, el("i"), el("i"), el("i"));
      const write = (turn.bubble.replaceChildren(dots), renderer(turn.bubble));
      turn.turn.querySelectorAll(".note,.sources").forEach((each) => each.remove());
      turn.bubble.hidden = false;
      let text = "", sources, frame = 0, finished = false, failure = null, watch = 0, announced = 0, proposes = false, lastReply = "";
      const draw = () => {
        frame = 0;
        const follow = atEnd();
        dots.remove();
        const nodes = write(text, Boolean(abort === control));
        const whole = abort === control ? nodes.length - 1 : nodes.length;
        for (; announced < whole; announced++) announce(nodes[announced].textContent);
        if (follow) toEnd();
      };
      const keepText = () => {
        if (!text && !proposes) return;
        if (!call.kept) remember((call.kept = {}));
        Object.assign(call.kept, { text, sources });
        save();
      };
      const restartWatch = () => {
        clearTimeout(watch);
        watch = setTimeout(() => control.abort(), SILENCE_MS);
      };
      const handle = (data) => {
        let event = {};
        try {
          event = JSON.parse(data) || {};
        } catch {
          // Not an event of this service.
          return;
        }
        if (event.type === "start" && event.sessionId) {
          // A retry returns another session, but its dialog is that of the first call.
          memory.session = call.session = call.session || event.sessionId;
          save();
          lastReply = event.lastReplyId || "";
        } else if (event.type === "chunk") {
          text += event.content || "";
          frame = frame || requestAnimationFrame(draw);
        } else if (event.type === "action") {
          proposes = true;
          keepText();
          if (memory.turns.some(({ card }) => card && card.id === event.id)) return;
          const kept = { text: "", card: event, session: memory.session };
          remember(kept);
          showCard(kept, true);
        } else if (event.type === "done") {
          finished = true;
          sources = Array.isArray(event.sources) ? event.sources : undefined;
          if (event.truncated) failure = { text: words.short, isNote: true };
        } else if (event.type === "error") {
          finished = true;
          const known = { empty_answer: words.empty, filtered: words.filtered, timed_out: words.slow }[event.code];
          failure = { text: known || (text ? words.cut : words.failed), again: true, newKey: true };
        }
      };
      const request = async () => {
        // A key must be sent with the same body each time, so the body is built once.
        call.key = call.key || randomId();
        call.body = call.body || JSON.stringify({
          agentId, message: call.message, sessionId: memory.session, channel: "widget",
          pageUrl: pageUrl(), visitId: memory.visit, contact: call.contact, features: ["actions", "sources"],
        });
        return fetch(`${base}api/agents/public/chat-stream`, {
          method: "POST", body: call.body, signal: control.signal, credentials: "omit", cache: "no-store",
          headers: { "Content-Type": "application/json", "Idempotency-Key": call.key },
        });
      };
      const failureOf = async (response) => {
        const { code = "" } = await response.json().then((body) => body.data, () => null) || {};
        return [response.status, code, Number(response.headers.get("Retry-After")) || 0];
      };

      addEventListener("pagehide", keepText);
      face();
      announce(words.writing);
      restartWatch();
      try {
        let response = await request();
        for (let tries = 1; !response.ok; tries++) {
          const [status, code, wait] = await failureOf(response);
          const session = JSON.parse(call.body).sessionId;
          if (status === 404 && session) {
            // The conversation has ended. If the bot still exists, a new conversation begins.
            if (memory.session === session) memory.session = null;
            call.key = call.body = call.session = null;
          } else if (status === 409 && /^(session_busy|in_progress)$/.test(code) && tries < BUSY_TRIES) {
            await pause(Math.min(wait || 2, 10), control.signal);
          } else {
            failure = refusal(status, code, wait);
            break;
          }
          restartWatch();
          response = await request();
          if (response.ok && status === 404) turn.turn.before(para("note between", words.fresh));
        }
        if (!failure) {
          if (!/^text\/event-stream/.test(response.headers.get("Content-Type"))) throw new Error("no stream");
          const reader = response.body.getReader(), decoder = new TextDecoder(), read = eventReader(handle);
          while (!finished) {
            const { done, value } = await reader.read();
            if (done) break;
            restartWatch();
            read(decoder.decode(value, { stream: true }));
          }
          reader.cancel().catch(() => {});
          if (!finished) failure = { text: words.cut, again: true };
          else if (!text && !proposes && !failure) failure = { text: words.failed, again: true, newKey: true };
        }
      } catch {
        const offline = navigator.onLine === false && !text;
        failure = { text: offline ? words.offline : text ? words.cut : words.failed, again: true };
      }
      clearTimeout(watch);
      cancelAnimationFrame(frame);
      abort = null;
      const follow = atEnd();
      if (control.stopped) failure = { text: words.stopped };
      draw();
      turn.bubble.hidden = !text;
      showSources(turn, sources);
      keepText();
      removeEventListener("pagehide", keepText);
      if (failure) {
        if (failure.newKey) call.key = call.body = call.session = null;
        const note = para(control.stopped || failure.isNote ? "note" : "note bad", failure.text);
        if (failure.again) note.append(act(words.retry, () => abort || (field.focus(), answer(call, turn))));
        turn.turn.append(note);
        announce(failure.text);
        // The question would be lost, so the visitor is asked for a contact.
        refused = failure.down && !memory.left && canLeave ? call.message : null;
        if (refused && !panel.hidden) {
          showContact(true);
          note.append(` ${words.ask}`);
        }
      }
      if (call.contact && (!failure || failure.isNote)) {
        memory.left = true;
        save();
        turn.turn.append(para("note", words.taken));
        announce(words.taken);
      }
      if (panel.hidden) unread(true);
      face();
      if (follow) toEnd();
      if (lastReply > memory.reply) readReplies();
    };

    // -- Contacts: they are sent as a message, so the dialog shows them to the bot and the owner --

    const showContact = (shown) => {
      contact.hidden = !shown;
      composer.hidden = shown;
      wrong.textContent = "";
      reachField.removeAttribute("aria-invalid");
      (shown ? nameField : field).focus();
      toEnd();
    };
    // The question that the service has refused. Contacts are then stored without an answer.
    let refused = null;
    const canLeave = options.contacts !== "off" && options.preview === undefined;
    const sendContact = async () => {
      const name = nameField.value.trim(), reach = reachField.value.trim();
      const email = EMAIL.test(reach), phone = PHONE.test(reach) && reach.replace(/\D/g, "").length > 6;
      if (abort) return;
      if (!email && !phone) {
        wrong.textContent = words.wrong;
        reachField.setAttribute("aria-invalid", "true");
        reachField.focus();
        return;
      }
      if (!agreed.checked) {
        wrong.textContent = words.need;
        return agreed.focus();
      }
      const details = { name: name || undefined, [email ? "email" : "phone"]: reach, consent: words.consent };
      if (refused) {
        const body = { agentId, message: refused, contact: details, pageUrl: pageUrl() };
        const [code] = await send("api/agents/public/contact", body);
        if (code !== 200) return (wrong.textContent = words.failed);
        refused = null;
        memory.left = true;
        save();
        showContact(false);
        log.append(para("note", words.taken));
        face();
        return toEnd();
      }
      showContact(false);
      post(words.contact(name, reach), details);
    };

    // -- Cards: what the bot proposes. Nothing is done until the visitor confirms it --

    // Ends the open card, and the number of cards so far.
    let replaceCard = null, cards = 0;

    /** Send JSON to the service. Return the status, the data, and the seconds to wait. Status 0 means that no answer came. */
    const send = async (path, body) => {
      const control = new AbortController(), watch = setTimeout(() => control.abort(), SILENCE_MS);
      try {
        const response = await fetch(base + path, {
          method: "POST", body: JSON.stringify(body), signal: control.signal, credentials: "omit", cache: "no-store",
          headers: { "Content-Type": "application/json" },
        });
        return [response.status, (await response.json()).data || {}, Number(response.headers.get("Retry-After")) || 0];
      } catch {
        return [0, {}, 0];
      } finally {
        clearTimeout(watch);
      }
    };

    /** Return a labelled control for a field of a card. `fail` shows an error below it. */
    const cardField = ({ name, label, type, required, options }, id, say) => {
      const hint = { name: "name", phone: "tel", tel: "tel", email: "email" };
      const attributes = {
        name, required: required && "", "aria-describedby": id, dir: type === "checkbox" ? null : "auto", maxlength: MAX_MESSAGE,
        autocomplete: hint[name] || hint[type], inputmode: type === "number" ? "decimal" : null,
      };
      const option = (value) => el("option", { value }, value);
      const kind = type === "phone" ? "tel" : /^(checkbox|date|email|tel)$/.test(type) ? type : "text";
      const input =
        type === "select" ? el("select", attributes, ...["", ...(options || [])].map(option))
        : type === "textarea" ? el("textarea", { ...attributes, rows: 2 })
        : el("input", { ...attributes, type: kind });
      const error = el("p", { id, class: "tell bad small", hidden: "" });
      const ticks = type === "checkbox";
      const named = el("span", null, label);
      const labelled = el("label", ticks && { class: "check" }, ...(ticks ? [input, named] : [named, input]));
      const value = () => (ticks ? (input.checked ? "on" : "") : input.value.trim());
      const fail = (text) => {
        error.textContent = text;
        error.hidden = !text;
        if (text) input.setAttribute("aria-invalid", "true");
        else input.removeAttribute("aria-invalid");
        return Boolean(text);
      };
      return { name, input, value, fail, isMissing: () => fail(required && !value() ? say.need : ""), nodes: [labelled, error] };
    };

    /** Show a card. `kept` is its entry in the memory: the card, its session, and how it ended (`said`, `made`). */
    const showCard = (kept, live) => {
      const { card } = kept, say = WORDS[card.language] || words, id = `card${++cards}`;
      const fields = (card.fields || []).map((each, place) => cardField(each, `${id}-${place}`, say));
      const status = el("p", { class: "note tell", hidden: "" });
      const agreed = para("small", card.consent ? card.consent.text : "");
      const terms = link((card.consent && card.consent.url) || policyUrl, [say.privacy]);
      if (terms) agreed.append(" ", terms);
      const yes = el("button", { class: "button" }, card.confirm);
      const no = act(card.cancel, () => decide("cancel"));
      const form = el(
        "form", { novalidate: "", submit: (event) => { event.preventDefault(); decide("confirm"); } },
        ...fields.flatMap((each) => each.nodes), para("small", card.note || ""), agreed, el("div", { class: "row" }, yes, no),
      );
      const lines = (card.details || []).map(({ label, value }) => el("div", null, el("dt", null, label), el("dd", null, value)));
      const node = el(
        "div", { class: "card", role: "group", "aria-labelledby": id, tabindex: -1, lang: card.language },
        el("h3", { id }, card.title), el("dl", null, ...lines), form, status,
      );
      let timer = 0, busy = false;
      const tell = (text, bad, ...more) => {
        const follow = atEnd();
        status.replaceChildren(text, ...more);
        status.classList.toggle("bad", Boolean(bad));
        status.hidden = !text;
        if (text) announce(text);
        if (follow) toEnd();
      };

      /** Show the links and buttons of a card that has ended. */
      const showMade = ({ ics, token, pay, next, times = [] }) => {
        const cancel = act(say.undo, async (event) => {
          if (busy || event.detail > 1) return;
          if (cancel.textContent !== say.sure) return announce((cancel.textContent = say.sure));
          busy = true;
          const [code] = await send("api/public/bookings/cancel", { token });
          busy = false;
          cancel.textContent = say.undo;
          if (code === 200) end(say.undone, {});
          else announce((cancel.textContent = `${say.unable} ${say.retry}`));
        });
        const hours = { weekday: "long", day: "numeric", month: "long", hour: "2-digit", minute: "2-digit", timeZone: "UTC" };
        const dates = new Intl.DateTimeFormat(say === WORDS.ru ? "ru" : "en-GB", hours);
        const chip = (local) => {
          const when = dates.format(new Date(`${local.slice(0, 16)}Z`));
          const ask = () => {
            if (!abort) return post(say.free(when));
            // An answer is still arriving, so the visitor sends the question later.
            field.value = say.free(when);
            fit();
            field.focus();
          };
          return button("chip", ask, when);
        };
        const parts = [pay && link(pay, [say.pay]), ics && link(ics, [say.calendar]), next && link(next, [say.next]), token && cancel, ...times.map(chip)].filter(Boolean);
        if (parts.length) node.append(el("div", { class: "row" }, ...parts));
      };
      const end = (text, made) => {
        const follow = atEnd(), focused = node.contains(root.activeElement);
        clearTimeout(timer);
        if (replaceCard === replace) replaceCard = null;
        Object.assign(kept, { said: text, made });
        save();
        node.querySelectorAll("form,.row").forEach((each) => each.remove());
        tell(text);
        if (made) showMade(made);
        if (focused) {
          node.focus({ preventScroll: true });
          node.lastChild.scrollIntoView({ block: "nearest" });
        }
        if (follow) toEnd();
      };
      // The service may have carried out a decision whose answer is lost, so its card stays open.
      const close = (text) => kept.sent || end(text);
      const replace = () => close(say.older);

      const decide = async (decision) => {
        if (busy) return;
        const confirms = decision === "confirm";
        const missing = confirms && fields.filter((each) => each.isMissing())[0];
        if (missing) return missing.input.focus();
        const values = Object.fromEntries(fields.map((each) => [each.name, each.value()]).filter(([, value]) => confirms && value));
        busy = kept.sent = true;
        save();
        for (const each of [yes, no]) each.setAttribute("aria-disabled", "true");
        tell(say.sending);
        const [code, data, wait] = await send(`api/agents/public/actions/${card.id}`, { sessionId: kept.session, decision, values });
        busy = false;
        for (const each of [yes, no]) each.removeAttribute("aria-disabled");
        kept.sent = !code || code >= 500;
        save();
        if (code === 200 || code === 202) {
          end(data.message, { ics: data.icsUrl, token: data.cancelToken, pay: data.paymentUrl, next: data.redirectUrl });
        } else if (code === 400) {
          tell("");
          const errors = data.errors || [];
          const wrong = fields.filter((each) => {
            // A booking's contact has one field on the card, but two in the API.
            const found = errors.find(({ field: path }) => path.split(".").pop() === each.name)
              || (each.name === "contact" && errors.find(({ field: path }) => /phone|email|client$/.test(path)));
            // Messages of forms are for visitors. Those of bookings are for programs.
            return found && each.fail(card.kind === "order" ? found.message : say.check);
          });
          if (wrong[0]) wrong[0].input.focus();
          else tell(card.kind === "order" && data.message ? data.message : say.unable, true);
        } else if (data.code === "slot_unavailable") {
          end(say.sold, { times: (data.alternatives || []).slice(0, MAX_TIMES).map((each) => each.startLocal) });
        } else if (data.phone) end(`${say.unable} ${data.phone}`);
        else if (code === 404 || /^(changed|action_ended)$/.test(data.code)) {
          end(data.code === "changed" ? say.changed : say.ended);
        } else if (data.reason) {
          // An e-mail's link may book, or the visitor leaves contacts with what was to be booked.
          const leave = act(say.leave, () => {
            refused = `${card.title}, ${lines[0].lastChild.textContent}`;
            showContact(true);
          });
          tell(data.message, true, ...(canLeave ? [leave] : []));
          fields.forEach((each) => each.name === data.field && each.input.focus());
        } else tell(code ? say.unable + later(wait) : say.failed, true, act(say.retry, () => { node.focus(); decide(decision); }));
      };

      const follow = live || atEnd();
      log.append(node);
      if (kept.said) {
        form.remove();
        status.replaceChildren(kept.said);
        status.hidden = false;
        if (kept.made) showMade(kept.made);
        return;
      }
      if (replaceCard) replaceCard();
      replaceCard = replace;
      if (live) announce(`${say.card}: ${card.title}`);
      // A card that has just arrived is open, although the clock of the browser may be wrong.
      const left = Date.parse(card.expiresAt) - Date.now();
      if (left > 0) timer = setTimeout(() => busy || close(say.expired), left);
      else if (!live) close(say.expired);
      if (follow) toEnd();
    };

    // -- Open and closed --

    const unread = (there) => {
      launcher.classList.toggle("news", there);
      const label = panel.hidden ? words.open : words.close;
      launcher.setAttribute("aria-label", there ? `${label}: ${words.news}` : label);
    };
    let inertBefore = false;
    /** On a phone, the panel covers the page, so the page must not get the focus. */
    const cover = (covers) => {
      if (covers === panel.hasAttribute("aria-modal")) return;
      if (covers) {
        inertBefore = document.body.inert;
        panel.setAttribute("aria-modal", "true");
      } else panel.removeAttribute("aria-modal");
      document.body.inert = covers || inertBefore;
    };
    const measure = () => {
      const view = window.visualViewport;
      cover(!panel.hidden && small.matches);
      if (!view || panel.hidden) return;
      set("top", `${view.offsetTop}px`);
      set("tall", `${view.height}px`);
    };
    const toggle = (open = panel.hidden, focus = true) => {
      if (open) for (const each of widgets.values()) if (each && each.host !== host) each.toggle(false, false);
      const changed = panel.hidden === open;
      panel.hidden = !open;
      memory.open = open;
      save();
      box.classList.toggle("opened", open);
      launcher.setAttribute("aria-expanded", String(open));
      launcher.replaceChildren(icon(open ? ICONS.close : ICONS.chat));
      unread(false);
      measure();
      if (open) {
        report("opened");
        toEnd();
        fit();
        readReplies();
      }
      // On touch screens, a focused field would open the keyboard over the panel, so the panel gets the focus.
      if (focus && changed) (open ? (matchMedia("(pointer:coarse)").matches ? panel : field) : launcher).focus();
    };

    panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !event.isComposing) {
        if (contact.hidden) toggle(false);
        else showContact(false);
      }
    });
    // The page's keyboard shortcuts must not react to text that is typed here.
    for (const name of ["keydown", "keyup", "keypress"]) box.addEventListener(name, (event) => event.stopPropagation());
    small.addEventListener("change", measure);
    if (window.visualViewport) for (const name of ["resize", "scroll"]) visualViewport.addEventListener(name, measure);

    show(false, greeting);
    for (const each of memory.turns) {
      if (each.card) showCard(each);
      else if (each.text) showSources(show(each.me, each.text), each.sources || []);
    }
    face();
    const opens = memory.stages.includes("opened") ? memory.open : "open" in options && options.open !== "false";
    top.append(host);
    widgets.set(base + agentId, { host, left, toggle, stack });
    beside().forEach((each, place, { length }) => each.stack(place, length));
    toggle(opens && !small.matches, false);
    report("loaded");
    // A script that replaces the body keeps the widget, but one that clears the page removes it: add it again.
    new MutationObserver(() => host.isConnected || top.append(host)).observe(top, { childList: true });
  };

  const script = document.currentScript || document.querySelector('script[src*="widget.js"]:is([data-agent],[src*="agent="])');
  const address = new URL(script ? script.src : location.href);
  // Tag managers drop data attributes, so each option may also stand in the query of the script's URL.
  const options = script ? { ...Object.fromEntries(address.searchParams), ...script.dataset } : {};
  if (!options.agent) return console.warn('widget.js: the script tag needs data-agent="BOT ID", or its URL ?agent=BOT_ID.');
  const base = new URL(".", address).href;
  const shared = Symbol.for("chat-widgets");
  const widgets = (window[shared] = window[shared] || new Map());
  const key = base + options.agent;
  if (widgets.has(key)) return;
  // The widget is being loaded.
  widgets.set(key, null);
  start(options, base, widgets);
})();
