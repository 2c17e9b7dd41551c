// The page of prompts/inspector.py. It walks the steps of admission once, and shows what any budget makes of them.
// Words of the data reach the document as text nodes only.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const PRESETS = [250, 500, 1000, 1500, 3000];
  const STRIDE = 50; // of [ and ]
  const MOST_ROWS = 200; // of the table; more are found by filtering
  const RULES = {
    always: "printed at any budget",
    counts: "says how many there are, so that a list that is cut says so",
    question: "answers questions a chat begins with",
    general: "by its score",
  };

  // Making elements. Strings become text, never markup.

  const byId = (id) => document.getElementById(id);
  const number = (value) => value.toLocaleString("en");
  const percent = (share) => `${Math.round(share * 100)} %`;
  const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("--")) element.style.setProperty(name, value);
      else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }
  const h = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const s = (tag, attributes = {}, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

  // Kinds: a colour each, in the order of the coverage.

  const singular = (name) => name.replace(/ies$/, "y").replace(/s$/, "");
  const many = (kind) => kind.replace(/y$/, "ie") + "s";
  const kinds = Object.keys(data.coverage).map(singular);
  const kindOf = (section) => (kinds.includes(singular(section)) ? singular(section) : "");
  const colour = (kind) => (kinds.includes(kind) ? `var(--k${kinds.indexOf(kind) % 12})` : "var(--k-none)");
  const dot = (kind) => h("i", { class: "dot", "--kind": colour(kind) });

  // The plan: what each step costs and from which budget on it is printed. Admission stops at the first step that
  // does not fit, so what is printed before a step never depends on the budget.

  const headings = new Map(data.steps.filter((step) => step.is_heading).map((step) => [step.place, step]));

  function planned(steps, always) {
    const printed = new Map();
    const entries = [];
    let total = 0;
    let need = 0;
    for (const [index, step] of steps.entries()) {
      if (step.is_heading) continue;
      const before = printed.get(step.place) ?? null;
      const opens =
        step.heading !== null && !printed.has(step.heading) ? (headings.get(step.heading) ?? null) : null;
      const cost = step.tokens - (before?.step.tokens ?? 0) + (opens?.tokens ?? 0);
      total += cost;
      if (index >= always) need = Math.max(need, total);
      const entry = { step, cost, total, need, opens, before, after: null, order: entries.length };
      if (before) before.after = entry;
      if (opens) printed.set(opens.place, { step: opens });
      printed.set(step.place, entry);
      entries.push(entry);
    }
    return entries;
  }

  const plan = planned(data.steps, data.always);
  const byEntity = new Map(
    plan
      .filter((entry) => entry.step.entity)
      .map((entry) => [entry.step.entity, entry])
      .reverse(),
  );
  const dearest = Math.max(1, ...data.steps.map((step) => step.tokens));

  const admittedAt = (budget) => {
    const first = plan.findIndex((entry) => entry.need > budget);
    return first < 0 ? plan.length : first;
  };
  const totalOf = (admitted) => (admitted ? plan[admitted - 1].total : 0);
  const most = admittedAt(data.largest); // there may be lines that need more

  function printedOf(admitted) {
    const printed = new Map();
    for (const entry of plan.slice(0, admitted)) {
      if (entry.opens) printed.set(entry.opens.place, { step: entry.opens, heads: entry });
      printed.set(entry.step.place, entry);
    }
    return [...printed.values()].sort((one, other) => one.step.place - other.step.place);
  }

  const presentIn = (question, total) => question.at.filter((from) => from <= total).length;
  const recallOf = (question, total) => (question.facts ? presentIn(question, total) / question.facts : 1);
  const mean = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : 0);
  const recallAt = (total) => mean(data.questions.map((question) => recallOf(question, total)));

  // The state: one budget. All else follows.

  let budget = 0;
  let admitted = 0;
  let reason = "";
  const clamped = (value) => Math.min(data.largest, Math.max(data.smallest, Math.round(value)));

  function setBudget(value) {
    if (!Number.isFinite(value)) return;
    budget = clamped(value);
    const before = admitted;
    admitted = admittedAt(budget);
    hideTip();
    showControls();
    showLines(before);
    showRecall();
    showInText();
    showLeftOut();
  }

  // Explanations: one card, beside what is pointed at or has the focus.

  const tip = byId("tip");
  let anchor = null;
  let anchorBeside = null; // what the card keeps clear of
  let pointing = false; // a mouse at rest, under which keys move the text, points at nothing
  let rest = "";

  function showTip(element, content, beside) {
    hideTip();
    anchor = element;
    anchorBeside = beside ?? element;
    tip.replaceChildren(...content.filter(Boolean));
    tip.hidden = false;
    element.setAttribute("aria-describedby", "tip");
    placeTip();
  }

  function placeTip() {
    const place = anchor.getBoundingClientRect();
    const size = tip.getBoundingClientRect();
    const room = { x: innerWidth - size.width - 12, y: innerHeight - size.height - 12 };
    const clear = anchorBeside.getBoundingClientRect();
    const sides = [clear.right + 10, clear.left - size.width - 10].filter((x) => x >= 12 && x <= room.x);
    const below = place.bottom + 8 <= room.y ? place.bottom + 8 : place.top - size.height - 8;
    tip.style.left = `${sides[0] ?? Math.max(12, Math.min(place.left + 24, room.x))}px`;
    tip.style.top = `${Math.max(12, sides.length ? Math.min(place.top - 6, room.y) : below)}px`;
  }

  function hideTip() {
    anchor?.removeAttribute("aria-describedby");
    anchor = null;
    tip.hidden = true;
  }

  function explains(element, content, beside, on = () => {}, off = () => {}) {
    const show = () => {
      on();
      showTip(element, content(), beside);
    };
    const hide = () => {
      if (anchor !== element) return;
      off();
      hideTip();
    };
    element.addEventListener("mousemove", () => pointing && anchor !== element && show());
    element.addEventListener("focus", show);
    element.addEventListener("mouseleave", hide);
    element.addEventListener("blur", hide);
  }

  function watchMouse() {
    document.addEventListener("keydown", () => (pointing = false), true);
    document.addEventListener(
      "mousemove",
      (event) => {
        const where = `${event.screenX} ${event.screenY}`;
        pointing ||= where !== rest;
        rest = where;
      },
      true,
    );
    document.addEventListener(
      "scroll",
      () => {
        if (anchor?.matches(":hover, :focus")) placeTip();
        else hideTip();
      },
      true,
    );
  }

  const row = (name, ...values) => h("div", { class: "row" }, h("dt", {}, name), h("dd", {}, ...values));
  const tipHead = (kind, ...words) => h("p", { class: "tip-head" }, dot(kind), ...words);
  const asksOf = (id) => data.questions.find((question) => question.id === id)?.asks ?? "";

  function serves(facts) {
    const named = Object.entries(facts ?? {});
    if (!named.length) return null;
    const item = ([id, count]) =>
      h("li", {}, h("b", {}, id), ` ${asksOf(id)} `, h("em", {}, `+${plural(count, "fact")}`));
    return row("Answers", h("ul", {}, named.map(item)));
  }

  function scored(score, terms) {
    const named = Object.entries(terms ?? {});
    if (score === null && !named.length) return null;
    const highest = Math.max(1, ...named.map(([, points]) => Math.abs(points)));
    const item = ([name, points]) =>
      h(
        "li",
        { class: "term", "--share": Math.abs(points) / highest },
        h("span", {}, name),
        h("b", {}, number(points)),
      );
    return row("Score", score === null ? null : h("b", {}, number(score)), h("ul", {}, named.map(item)));
  }

  const admission = (entry) => {
    if (entry.need === 0) return "at any budget";
    const when = `${ordinal(entry.order + 1)} of ${plan.length}, from a budget of ${number(entry.need)}`;
    return entry.order < admitted ? when : `${when}: ${number(entry.need - budget)} more than now`;
  };
  const ordinal = (n) =>
    `${n}${n % 100 > 10 && n % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th")}`;

  function costs(entry) {
    const parts = [];
    if (entry.opens) parts.push(`${number(entry.opens.tokens)} for its section's heading`);
    if (entry.before)
      parts.push(`${number(entry.before.step.tokens)} given back by the shorter line it replaces`);
    const own = plural(entry.step.tokens, "token");
    return parts.length ? `${own}; adds ${number(entry.cost)}: ${parts.join(", ")}` : own;
  }

  function whyLine(entry) {
    if (entry.heads) {
      const for_ = entry.heads.step.handle ?? entry.heads.step.text;
      return [
        tipHead(kindOf(entry.step.section), "Heading of ", entry.step.section),
        h(
          "dl",
          {},
          row("Why", `printed with the first line below it, ${for_}`),
          row("Costs", plural(entry.step.tokens, "token")),
          row("Admitted", admission(entry.heads)),
        ),
      ];
    }
    const { step } = entry;
    return [
      tipHead(kindOf(step.section), step.handle ?? step.section, h("span", { class: "rule" }, step.rule)),
      h(
        "dl",
        {},
        row("Why", RULES[step.rule] ?? step.rule),
        row("Costs", costs(entry)),
        row("Admitted", admission(entry)),
        serves(step.facts),
        scored(step.score, step.terms),
        entry.after ? row("Grows", `from ${number(entry.after.need)} a longer line takes its place`) : null,
      ),
    ];
  }

  // The text: printed lines by place, the waterline, then the others in the order in which they would come.

  const list = byId("lines");
  const pane = byId("pane");
  const elements = new Map();
  const waterline = h("li", { class: "waterline", id: "waterline", tabindex: -1 });
  let current = null;

  function lineOf(entry) {
    const known = elements.get(entry.step);
    if (known) return known;
    const { step } = entry;
    const kind = kindOf(step.section);
    const element = h(
      "li",
      {
        class: step.text.startsWith("## ") ? "line title" : "line",
        tabindex: -1,
        "--kind": colour(kind),
        "--heat": Math.sqrt(step.tokens / dearest),
      },
      h("span", { class: "cost" }, number(step.tokens), h("span", { class: "unseen" }, " tokens: ")),
      h("span", { class: "words" }, step.text),
      h("span", { class: "need" }),
    );
    element.dataset.place = step.place;
    if (step.entity) element.dataset.entity = step.entity;
    explains(
      element,
      () => whyLine(entry),
      pane,
      () => point(step.entity),
      () => point(null),
    );
    element.addEventListener("focus", () => walk(element));
    element.addEventListener("mousedown", () => element.focus({ preventScroll: true }));
    elements.set(step, element);
    return element;
  }

  function showLines(before) {
    const held = list.contains(document.activeElement);
    const printed = printedOf(admitted).map((entry) => {
      const element = lineOf(entry);
      const fresh = (entry.heads ?? entry).order >= before && before > 0;
      element.classList.remove("ghost");
      element.classList.toggle("fresh", fresh);
      element.lastChild.textContent = "";
      return element;
    });
    const waiting = plan.slice(admitted).map((entry) => {
      const element = lineOf(entry);
      element.classList.remove("fresh");
      element.classList.add("ghost");
      element.lastChild.textContent = (entry.before ? "grows at " : "at ") + number(entry.need);
      return element;
    });
    showWaterline();
    list.replaceChildren(...printed, waterline, ...waiting);
    walk(standing());
    if (held) current.focus({ preventScroll: true });
  }

  function showWaterline() {
    const next = plan[admitted];
    const total = totalOf(admitted);
    const left = next
      ? `${number(Math.max(0, budget - total))} left, the next line needs ${number(next.need - total)}`
      : "every line fits";
    waterline.replaceChildren(
      h("span", {}, h("b", {}, `${number(total)} of ${number(budget)} tokens`), ` ${left}`),
    );
  }

  // The line where the reader is; if another one has taken its place, that one.
  function standing() {
    if (!current || current.isConnected) return current ?? list.firstChild;
    return [...list.children].find((line) => line.dataset.place === current.dataset.place) ?? list.firstChild;
  }

  function walk(element) {
    if (current) current.tabIndex = -1;
    current = element;
    if (current) current.tabIndex = 0;
  }

  function moveLine(by) {
    const lines = [...list.children];
    const at = lines.indexOf(current);
    const next = list.contains(document.activeElement) ? at + by : Math.max(0, at);
    lines[Math.min(lines.length - 1, Math.max(0, next))]?.focus();
  }

  const bringToWaterline = () => {
    waterline.scrollIntoView({ block: "center" });
    waterline.focus({ preventScroll: true });
  };

  function mark(test) {
    for (const [step, element] of elements) element.classList.toggle("marked", test(step));
  }

  // The dial.

  const slider = byId("slider");
  const field = byId("budget");
  const acrossStrip = (tokens) => (1000 * (tokens - data.smallest)) / Math.max(1, data.largest - data.smallest);

  function drawControls() {
    for (const input of [slider, field]) {
      input.min = data.smallest;
      input.max = data.largest;
      input.step = 1;
    }
    byId("presets").append(
      ...PRESETS.filter((value) => value >= data.smallest && value <= data.largest).map((value) => {
        const button = h("button", { type: "button", "data-budget": value }, number(value));
        button.addEventListener("click", () => setBudget(value));
        return button;
      }),
    );
    slider.addEventListener("input", () => setBudget(slider.valueAsNumber));
    field.addEventListener("change", () => setBudget(field.valueAsNumber));
    field.addEventListener("input", () => field.checkValidity() && setBudget(field.valueAsNumber));
    slider.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -10, ArrowDown: -10, ArrowRight: 10, ArrowUp: 10, PageDown: -250, PageUp: 250 }[
        event.key
      ];
      if (by === undefined) return;
      event.preventDefault();
      setBudget(budget + (event.shiftKey ? Math.sign(by) : by));
    });
    drawStrip();
  }

  function drawStrip() {
    const strip = byId("strip");
    strip.setAttribute("viewBox", "0 0 1000 10");
    strip.setAttribute("preserveAspectRatio", "none");
    for (const entry of plan) {
      const [from, to] = [entry.need - entry.cost, entry.need].map(acrossStrip);
      if (entry.cost <= 0 || to <= 0) continue;
      const kind = colour(kindOf(entry.step.section));
      const bar = s("rect", {
        x: Math.max(0, from),
        y: 0,
        width: to - Math.max(0, from),
        height: 10,
        "--kind": kind,
      });
      explains(bar, () => [h("p", { class: "tip-text" }, entry.step.text), ...whyLine(entry)]);
      bar.addEventListener("click", () => setBudget(entry.need));
      entry.bar = bar;
      strip.append(bar);
    }
  }

  function showControls() {
    const total = totalOf(admitted);
    const lines = printedOf(admitted).length;
    const all = printedOf(most).length;
    slider.value = budget;
    if (document.activeElement !== field || field.valueAsNumber !== budget) field.value = budget;
    slider.setAttribute("aria-valuetext", `${number(budget)} tokens, ${lines} lines`);
    slider.style.setProperty("--share", acrossStrip(budget) / 1000);
    for (const button of byId("presets").children)
      button.setAttribute("aria-pressed", Number(button.dataset.budget) === budget);
    for (const entry of plan) entry.bar?.classList.toggle("waits", entry.order >= admitted);
    const stats = {
      tokens: number(total),
      used: `${((100 * total) / budget).toFixed(1)} %`,
      lines: `${number(lines)} of ${number(all)}`,
      recall: data.questions.length ? percent(recallAt(total)) : "–",
    };
    byId("stats").replaceChildren(
      ...Object.entries(stats).map(([name, value]) =>
        h("div", {}, h("dt", {}, name), h("dd", { id: `stat-${name}` }, value)),
      ),
    );
    byId("said").textContent = `Budget ${number(budget)}: ${number(total)} tokens, ${stats.lines} lines`;
  }

  // Recall.

  const CURVE = { width: 560, height: 170, left: 44, right: 14, top: 12, bottom: 24 };
  const acrossCurve = (tokens) =>
    CURVE.left +
    ((CURVE.width - CURVE.left - CURVE.right) * (tokens - data.smallest)) /
      Math.max(1, data.largest - data.smallest);
  const upCurve = (share) => CURVE.top + (CURVE.height - CURVE.top - CURVE.bottom) * (1 - share);

  function curvePoints() {
    const needs = [...new Set(plan.map((entry) => entry.need))].filter(
      (need) => need > data.smallest && need <= data.largest,
    );
    return [data.smallest, ...needs].map((need) => [need, recallAt(totalOf(admittedAt(need)))]);
  }

  function drawRecall() {
    const curve = byId("curve");
    if (!data.questions.length) {
      byId("questions").append(h("li", { class: "muted" }, "no questions were asked"));
      curve.remove();
      return;
    }
    curve.setAttribute("viewBox", `0 0 ${CURVE.width} ${CURVE.height}`);
    const points = curvePoints();
    let path = `M${acrossCurve(data.smallest)} ${upCurve(points[0][1])}`;
    for (const [need, share] of points) path += `H${acrossCurve(need).toFixed(1)}V${upCurve(share).toFixed(1)}`;
    path += `H${acrossCurve(data.largest)}`;
    const grid = [0, 0.25, 0.5, 0.75, 1].map((share) =>
      s(
        "g",
        {},
        s("line", {
          class: "grid",
          x1: CURVE.left,
          x2: CURVE.width - CURVE.right,
          y1: upCurve(share),
          y2: upCurve(share),
        }),
        share % 0.5
          ? null
          : s("text", { x: CURVE.left - 8, y: upCurve(share) + 4, "text-anchor": "end" }, percent(share)),
      ),
    );
    const ticks = PRESETS.filter((tokens) => tokens >= data.smallest && tokens <= data.largest).map((tokens) =>
      s(
        "text",
        {
          x: acrossCurve(tokens),
          y: CURVE.height - 6,
          "text-anchor": tokens === data.largest ? "end" : "middle",
        },
        number(tokens),
      ),
    );
    curve.append(
      ...grid,
      ...ticks,
      s("path", { class: "area", d: `${path}V${upCurve(0)}H${CURVE.left}Z` }),
      s("path", { class: "steps", d: path }),
      s("line", { class: "now", id: "curve-now", y1: CURVE.top, y2: upCurve(0) }),
      s("circle", { class: "now", id: "curve-dot", r: 5 }),
      s("text", { class: "now", id: "curve-text" }),
    );
    curve.addEventListener("click", (event) => {
      const box = curve.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * CURVE.width;
      const share = (x - CURVE.left) / (CURVE.width - CURVE.left - CURVE.right);
      setBudget(data.smallest + share * (data.largest - data.smallest));
    });
    byId("questions").append(...data.questions.map(questionOf));
  }

  function questionOf(question) {
    const element = h(
      "li",
      { tabindex: 0, "data-question": question.id },
      h("span", { class: "asks" }, h("b", {}, question.id), ` ${question.asks}`),
      h("span", { class: "bar", "aria-hidden": true }, h("i", { class: "has" }), h("i", { class: "later" })),
      h("span", { class: "count" }),
    );
    const lines = () => plan.filter((entry) => entry.step.facts?.[question.id]);
    explains(
      element,
      () => whyQuestion(question, lines()),
      null,
      () => mark((step) => Boolean(step.facts?.[question.id])),
      () => mark(() => false),
    );
    return element;
  }

  function whyQuestion(question, lines) {
    const present = presentIn(question, totalOf(admitted));
    const never = Math.max(0, question.facts - presentIn(question, totalOf(most)));
    const next = lines.find((entry) => entry.order >= admitted);
    const printed = lines.filter((entry) => entry.order < admitted).length;
    return [
      h(
        "p",
        { class: "tip-head" },
        question.id,
        h("span", { class: "rule" }, `${present} of ${question.facts}`),
      ),
      h("p", {}, question.asks),
      h(
        "dl",
        {},
        row("Later", `${number(question.facts - present - never)} with a larger budget`),
        never ? row("Never", `${plural(never, "fact")}, up to ${number(data.largest)} tokens`) : null,
        next ? row("Next", `${next.step.handle ?? next.step.section} at ${number(next.need)}`) : null,
        row("Lines", `${printed} of ${lines.length} printed, marked in the text`),
      ),
    ];
  }

  function showRecall() {
    if (!data.questions.length) return;
    const total = totalOf(admitted);
    const share = recallAt(total);
    const [x, y] = [acrossCurve(budget), upCurve(share)];
    fill(byId("curve-now"), { x1: x, x2: x }, []);
    fill(byId("curve-dot"), { cx: x, cy: y }, []);
    const label = byId("curve-text");
    const leftward = x > CURVE.width - 90;
    fill(
      label,
      {
        x: x + (leftward ? -10 : 10),
        y: Math.min(y + 20, CURVE.height - 34),
        "text-anchor": leftward ? "end" : "start",
      },
      [],
    );
    label.textContent = percent(share);
    byId("curve").setAttribute(
      "aria-label",
      `Mean recall by budget: ${percent(share)} at ${number(budget)} tokens`,
    );
    for (const [index, element] of [...byId("questions").children].entries()) {
      const question = data.questions[index];
      const present = presentIn(question, total);
      const reach = presentIn(question, totalOf(most));
      const scale = Math.max(1, question.facts);
      element.style.setProperty("--has", present / scale);
      element.style.setProperty("--later", Math.max(0, reach - present) / scale);
      element.lastChild.textContent = `${present}/${question.facts}`;
    }
  }

  // Coverage.

  const SHADES = [
    ["direct", "direct"],
    ["through", "reachable through others"],
    ["apart", "not reachable"],
    ["orphan", "no edge at all"],
  ];

  function drawCoverage() {
    byId("coverage-key").append(
      ...SHADES.map(([shade, words]) => h("li", {}, h("i", { class: `swatch ${shade}` }), words)),
    );
    const columns = ["total", "direct", "unlinked", "reachable", "orphan"];
    byId("coverage").append(
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "kind"),
          h("td", {}),
          columns.map((column) => h("th", { scope: "col", class: "num" }, column)),
        ),
      ),
      h(
        "tbody",
        {},
        Object.entries(data.coverage).map(([name, counts]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, dot(singular(name)), name),
            h("td", { class: "bars" }, h("span", { class: "stack" }, shadesOf(counts))),
            columns.map((column) =>
              h("td", { class: counts[column] ? "num" : "num zero" }, number(counts[column] ?? 0)),
            ),
          ),
        ),
      ),
    );
  }

  function shadesOf(counts) {
    const through = Math.max(0, counts.reachable - counts.direct);
    const orphan = Math.min(counts.orphan, counts.total - counts.direct - through);
    const parts = {
      direct: counts.direct,
      through,
      apart: counts.total - counts.direct - through - orphan,
      orphan,
    };
    return SHADES.filter(([shade]) => parts[shade] > 0).map(([shade]) =>
      h("i", { class: shade, "--part": parts[shade] }),
    );
  }

  // The snapshot: the project in the middle, a ring for each depth. The second ring turns its nodes towards their
  // neighbours; nothing is random, so the same snapshot is the same drawing.

  const VIEW = { width: 640, height: 620 };
  const CENTRE = [VIEW.width / 2, VIEW.height / 2];
  const graph = data.graph ?? { nodes: [], edges: [], omitted: {}, capped_by: [] };
  const nodes = new Map(graph.nodes.map((node) => [node.id, { node, near: new Set(), edges: [], depth: 9 }]));
  const wires = [];
  let atNode = null;

  function connect() {
    for (const edge of graph.edges) {
      const [from, to] = [nodes.get(edge.src_id), nodes.get(edge.dst_id)];
      if (!from || !to) continue;
      from.near.add(to);
      to.near.add(from);
      from.edges.push([edge.rel, to, true]);
      to.edges.push([edge.rel, from, false]);
      wires.push({ edge, from, to });
    }
    const queue = [nodes.get(graph.root_id)].filter(Boolean);
    for (const root of queue) root.depth = 0;
    for (const item of queue)
      for (const other of item.near)
        if (other.depth > item.depth + 1) {
          other.depth = item.depth + 1;
          queue.push(other);
        }
  }

  const ranked = (item) => (kinds.includes(item.node.kind) ? kinds.indexOf(item.node.kind) : kinds.length);
  const onCircle = (angle, radius) => [
    CENTRE[0] + radius * Math.cos(angle),
    CENTRE[1] + radius * Math.sin(angle),
  ];

  function layOut() {
    const all = [...nodes.values()];
    const inner = all.filter((item) => item.depth === 1).sort((a, b) => ranked(a) - ranked(b));
    const outer = all.filter((item) => item.depth > 1);
    const radius = outer.length ? 195 : 255;
    const crowded = inner.length > (outer.length ? 34 : 46);
    for (const item of all) if (item.depth === 0) item.at = CENTRE;
    // A crowded ring goes in and out by turns; with an odd number, a free place keeps first and last apart.
    const places = inner.length + (crowded ? inner.length % 2 : 0);
    for (const [index, item] of inner.entries()) {
      item.angle = -Math.PI / 2 + (2 * Math.PI * index) / places;
      item.at = onCircle(item.angle, crowded ? radius + (index % 2 ? 20 : -20) : radius);
    }
    for (const item of outer) item.angle = meanAngle([...item.near].filter((other) => other.depth === 1));
    spread(outer, 2 * Math.asin(15 / 285));
    for (const item of outer) item.at = onCircle(item.angle, 285);
  }

  function meanAngle(items) {
    const [x, y] = items.reduce(([x, y], item) => [x + Math.cos(item.angle), y + Math.sin(item.angle)], [0, 0]);
    return Math.hypot(x, y) < 1e-9 ? -Math.PI / 2 : Math.atan2(y, x);
  }

  // Pushes neighbours on the circle apart until each has its room, or has as much as the others.
  function spread(items, room) {
    const gap = Math.min(room, (2 * Math.PI) / Math.max(1, items.length));
    items.sort((a, b) => a.angle - b.angle || ranked(a) - ranked(b));
    for (let round = 0; round < 200; round++)
      for (const [index, item] of items.entries()) {
        const next = items[(index + 1) % items.length];
        const turn = index + 1 === items.length ? 2 * Math.PI : 0;
        const missing = gap - (next.angle + turn - item.angle);
        if (items.length < 2 || missing <= 1e-6) continue;
        item.angle -= missing / 2;
        next.angle += missing / 2;
      }
  }

  const written = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;

  function bent({ from, to }) {
    const ends = [from.at, to.at];
    if (!from.depth || !to.depth) return `M${written(ends[0])}L${written(ends[1])}`;
    const pull = from.depth === to.depth ? 0.45 : 0.12; // around the middle, not through it
    const middle = [0, 1].map((axis) => (ends[0][axis] + ends[1][axis]) / 2);
    const knee = middle.map((value, axis) => value + (CENTRE[axis] - value) * pull);
    return `M${written(ends[0])}Q${written(knee)} ${written(ends[1])}`;
  }

  const handles = new Map([
    [graph.root_id, data.project.handle],
    ...[...data.left_out, ...data.steps]
      .filter((it) => it.entity && it.handle)
      .map((it) => [it.entity, it.handle]),
  ]);

  function drawGraph() {
    const drawing = byId("graph");
    connect();
    layOut();
    const reach = Math.max(40, ...[...nodes.values()].map((item) => Math.abs(item.at[1] - CENTRE[1]) + 22));
    drawing.setAttribute("viewBox", `0 ${CENTRE[1] - reach} ${VIEW.width} ${2 * reach}`);
    const depths = new Set([...nodes.values()].map((item) => item.depth));
    const rings = [
      [1, 195],
      [2, 285],
    ]
      .filter(([depth]) => depths.has(depth) && depths.has(2))
      .map(([, r]) => s("circle", { class: "ring", cx: CENTRE[0], cy: CENTRE[1], r }));
    const drawn = wires.map(
      (wire) =>
        (wire.path = s("path", {
          class: wire.from.depth && wire.to.depth ? "edge" : "edge root",
          d: bent(wire),
        })),
    );
    const round = [...nodes.values()].sort((a, b) => a.depth - b.depth || (a.angle ?? 0) - (b.angle ?? 0));
    drawing.append(...rings, ...drawn, ...round.map(nodeOf));
    if (round.length) stand(round[0]);
    drawing.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, j: 1, k: -1 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      const at = round.indexOf(atNode) + by;
      round[(at + round.length) % round.length].group.focus();
    });
    drawLegend();
  }

  function nodeOf(item) {
    const { node } = item;
    const root = item.depth === 0;
    const handle = handles.get(node.id) ?? "";
    item.group = s(
      "g",
      {
        class: root ? "node root in" : "node",
        tabindex: -1,
        role: "img",
        transform: `translate(${written(item.at)})`,
        "--kind": root ? "var(--k-root)" : colour(node.kind),
        "aria-label": `${node.kind} ${handle} ${node.name ?? ""}`,
      },
      s("circle", { r: root ? 26 : 13.5 }),
      s("text", { class: handle.length > 4 ? "long" : null, dy: "0.35em", "text-anchor": "middle" }, handle),
    );
    item.group.dataset.entity = node.id;
    explains(
      item.group,
      () => whyNode(item),
      byId("graph"),
      () => point(node.id),
      () => point(null),
    );
    item.group.addEventListener("focus", () => {
      stand(item);
      toLine(node.id);
    });
    item.group.addEventListener("click", () => toLine(node.id));
    return item.group;
  }

  function stand(item) {
    atNode?.group.setAttribute("tabindex", -1);
    atNode = item;
    item.group.setAttribute("tabindex", 0);
  }

  function whyNode(item) {
    const { node } = item;
    const entry = byEntity.get(node.id);
    const named = ([rel, other, outward]) =>
      h(
        "li",
        {},
        h("em", {}, outward ? `${rel} → ` : `${rel} ← `),
        handles.get(other.node.id) ?? other.node.name ?? "",
      );
    const more = item.edges.length - 6;
    return [
      tipHead(
        node.kind,
        handles.get(node.id) ?? node.kind,
        h("span", { class: "rule" }, node.state_key ?? node.kind),
      ),
      h("p", {}, node.name ?? ""),
      h(
        "dl",
        {},
        item.depth ? row("Depth", `${item.depth}${node.direct_edge ? ", an edge to the project" : ""}`) : null,
        item.edges.length
          ? row(
              "Edges",
              h(
                "ul",
                {},
                item.edges.slice(0, 6).map(named),
                more > 0 ? h("li", {}, `and ${number(more)} more`) : null,
              ),
            )
          : null,
        item.depth
          ? row("Text", entry ? `its line is admitted ${admission(entry)}` : "no line at any budget")
          : null,
      ),
    ];
  }

  function drawLegend() {
    const shown = new Map();
    for (const { node } of nodes.values()) shown.set(node.kind, (shown.get(node.kind) ?? 0) + 1);
    const omitted = graph.omitted ?? {};
    const named = [...new Set([...kinds, ...shown.keys()])].filter(
      (kind) => kind !== "project" && (shown.get(kind) || omitted[many(kind)]),
    );
    byId("legend").append(
      ...named.map((kind) =>
        h(
          "li",
          { "data-kind": kind },
          dot(kind),
          `${many(kind)} ${shown.get(kind) ?? 0}`,
          omitted[many(kind)]
            ? h("span", { class: "omitted" }, `+${number(omitted[many(kind)])} left out`)
            : null,
        ),
      ),
    );
    const caps = graph.capped_by ?? [];
    const left = Object.values(omitted).reduce((sum, count) => sum + count, 0);
    byId("caps").textContent =
      `${plural(nodes.size, "node")}, ${plural(wires.length, "edge")}; ` +
      (left || caps.length
        ? `${number(left)} reachable left out, stopped by the caps on ${caps.join(", ") || "nothing"}`
        : "nothing left out");
  }

  // Whatever has to do with an entity stands out, wherever it is.
  function point(entity) {
    const item = entity ? nodes.get(entity) : null;
    byId("graph").classList.toggle("pointed", Boolean(item));
    for (const other of nodes.values()) {
      other.group.classList.toggle("lit", other === item || Boolean(item?.near.has(other)));
      other.group.classList.toggle("self", other === item);
    }
    for (const wire of wires)
      wire.path.classList.toggle("lit", Boolean(item) && (wire.from === item || wire.to === item));
    mark((step) => Boolean(entity) && step.entity === entity);
  }

  function toLine(entity) {
    const element = [...list.querySelectorAll(".line")].find((line) => line.dataset.entity === entity);
    if (element) pane.scrollTop = element.offsetTop - pane.clientHeight / 2;
  }

  function showInText() {
    for (const [id, item] of nodes) {
      const entry = byEntity.get(id);
      item.group.classList.toggle("in", item.depth === 0 || Boolean(entry && entry.order < admitted));
    }
  }

  // What was left out at this budget: all that was never to be printed, and the lines below the waterline.

  const known = new Map(data.left_out.map((entity) => [entity.entity, entity]));
  const filter = byId("filter");

  function belowWaterline(entry) {
    const { step } = entry;
    const title = nodes.get(step.entity)?.node.name ?? step.text.match(/"(.*)"/)?.[1] ?? step.text;
    return {
      entity: step.entity,
      handle: step.handle,
      kind: kindOf(step.section),
      title,
      reason: "budget",
      detail: "its line is below the waterline",
      score: step.score,
    };
  }

  function leftOut() {
    const waits = (entity) => !(byEntity.get(entity)?.order < admitted);
    const others = [...byEntity.values()].filter(
      (entry) => waits(entry.step.entity) && !known.has(entry.step.entity),
    );
    return [...data.left_out.filter((entity) => waits(entity.entity)), ...others.map(belowWaterline)].sort(
      (a, b) =>
        (byEntity.get(a.entity)?.order ?? 1e9) - (byEntity.get(b.entity)?.order ?? 1e9) ||
        (b.score ?? -1) - (a.score ?? -1),
    );
  }

  function showLeftOut() {
    const all = leftOut();
    const unlisted = data.left_out_total - data.left_out.length;
    const words = filter.value.trim().toLowerCase();
    const says = (it) =>
      [it.handle, it.kind, it.title, it.reason, it.detail].some((text) =>
        (text ?? "").toLowerCase().includes(words),
      );
    const textual = all.filter(says);
    showReasons(textual);
    const found = textual.filter((it) => !reason || it.reason === reason);
    byId("out-count").textContent =
      `${number(all.length + unlisted)} at this budget` +
      (found.length < all.length ? `, ${number(found.length)} match` : "");
    showRows(found.slice(0, MOST_ROWS));
    const hidden = found.length - MOST_ROWS;
    byId("out-more").textContent = [
      hidden > 0 ? `${number(hidden)} more match: narrow the filter.` : "",
      unlisted > 0 ? `${number(unlisted)} more are not listed one by one.` : "",
      found.length ? "" : "Nothing here.",
    ]
      .join(" ")
      .trim();
  }

  function showRows(found) {
    const body = byId("out-rows");
    const held = body.contains(document.activeElement) ? document.activeElement.dataset.entity : null;
    body.replaceChildren(...found.map(outRow));
    body.firstChild?.setAttribute("tabindex", 0);
    if (held) [...body.children].find((each) => each.dataset.entity === held)?.focus();
  }

  function showReasons(among) {
    const counts = new Map(reason ? [[reason, 0]] : []);
    for (const it of among) counts.set(it.reason, (counts.get(it.reason) ?? 0) + 1);
    const held = document.activeElement?.dataset?.reason;
    byId("reasons").replaceChildren(
      ...[...counts]
        .sort(([a], [b]) => a.localeCompare(b))
        .map(([name, count]) => {
          const button = h(
            "button",
            { type: "button", "data-reason": name, "aria-pressed": String(name === reason) },
            `${name} `,
            h("span", { class: "muted" }, number(count)),
          );
          button.addEventListener("click", () => {
            reason = reason === name ? "" : name;
            showLeftOut();
          });
          return button;
        }),
    );
    if (held) [...byId("reasons").children].find((button) => button.dataset.reason === held)?.focus();
  }

  function outRow(it) {
    const entry = byEntity.get(it.entity);
    const element = h(
      "tr",
      { tabindex: -1, "data-entity": it.entity },
      h("td", { class: "mono" }, it.handle ?? "–"),
      h("td", {}, dot(it.kind), it.kind),
      h("td", { class: "title" }, it.title),
      h("td", {}, it.reason),
      h("td", { class: "num" }, entry ? number(entry.need) : "–"),
      h("td", { class: "num" }, it.score === null ? "–" : number(it.score)),
    );
    explains(
      element,
      () => whyLeftOut(it, entry),
      null,
      () => point(it.entity),
      () => point(null),
    );
    element.addEventListener("focus", () => {
      for (const other of byId("out-rows").children) other.tabIndex = other === element ? 0 : -1;
    });
    return element;
  }

  function whyLeftOut(it, entry) {
    return [
      tipHead(it.kind, it.handle ?? it.kind, h("span", { class: "rule" }, it.reason)),
      h("p", {}, it.title),
      h(
        "dl",
        {},
        row("Why", it.detail || it.reason),
        entry
          ? row("Shown", `${admission(entry)}, for ${plural(entry.cost, "token")}`)
          : row("Shown", "at no budget"),
        entry ? serves(entry.step.facts) : null,
        scored(it.score, entry?.step.terms),
      ),
    ];
  }

  function moveRow(by) {
    const rows = [...byId("out-rows").children];
    rows[rows.indexOf(document.activeElement) + by]?.focus();
  }

  // Differences.

  function drawDifferences() {
    const changes = data.differences;
    const lines = changes?.lines ?? [];
    byId("diff-count").textContent = changes
      ? `against generation ${changes.generation}: ${lines.length ? plural(lines.length, "line") : "unchanged"}`
      : "there is none";
    byId("diff").append(
      ...lines.map(({ change, before, after }) =>
        h(
          "li",
          { class: change },
          h("span", { class: "change" }, change),
          h(
            "span",
            {},
            before === null ? null : h("del", {}, before),
            after === null ? null : h("ins", {}, after),
          ),
        ),
      ),
    );
  }

  // The page around it.

  function drawHeader() {
    document.title = `${data.project.handle} – Foreword inspector`;
    byId("handle").textContent = data.project.handle;
    byId("name").textContent = data.project.name;
    byId("facts").textContent = [
      `as of ${data.as_of} (${data.zone})`,
      data.generation === null ? "not published" : `generation ${data.generation}`,
      `made for ${number(data.budget)} tokens`,
    ].join(" · ");
    const help = byId("help");
    byId("keys").addEventListener("click", () => help.showModal());
    byId("to-waterline").addEventListener("click", bringToWaterline);
    filter.addEventListener("input", showLeftOut);
    waterline.addEventListener("focus", () => walk(waterline));
    drawTheme();
  }

  function drawTheme() {
    const button = byId("theme");
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const scheme = () => document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
    const show = () =>
      button.replaceChildren(scheme() === "dark" ? "Light" : "Dark", h("span", { class: "unseen" }, " scheme"));
    button.addEventListener("click", () => {
      document.documentElement.dataset.theme = scheme() === "dark" ? "light" : "dark";
      show();
    });
    dark.addEventListener("change", show);
    show();
  }

  const oneLine = (by) => {
    const next =
      by > 0
        ? plan[admitted]
        : [...plan.slice(0, admitted)].reverse().find((entry) => entry.need < plan[admitted - 1].need);
    if (next) setBudget(next.need);
    else if (by < 0) setBudget(data.smallest);
  };
  const strode = (by) =>
    setBudget((by > 0 ? Math.floor(budget / STRIDE) + 1 : Math.ceil(budget / STRIDE) - 1) * STRIDE);
  const move = (by) => (byId("out-rows").contains(document.activeElement) ? moveRow(by) : moveLine(by));

  const SHORTCUTS = {
    j: () => move(1),
    ArrowDown: () => move(1),
    k: () => move(-1),
    ArrowUp: () => move(-1),
    "[": () => strode(-1),
    "]": () => strode(1),
    "{": () => oneLine(-1),
    "}": () => oneLine(1),
    w: bringToWaterline,
    "/": () => filter.focus(),
    "?": () => byId("help").showModal(),
  };

  function pressed(event) {
    if (event.key === "Escape") {
      hideTip();
      if (event.target === filter || event.target === field) event.target.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    const writes = event.target === filter || event.target === field;
    if (writes || (event.target === slider && event.key.startsWith("Arrow"))) return;
    const act = Object.hasOwn(SHORTCUTS, event.key) ? SHORTCUTS[event.key] : null;
    if (!act) return;
    event.preventDefault();
    act();
  }

  drawHeader();
  drawControls();
  drawRecall();
  drawCoverage();
  drawGraph();
  drawDifferences();
  setBudget(data.budget);
  document.addEventListener("keydown", pressed);
  watchMouse();
})();
