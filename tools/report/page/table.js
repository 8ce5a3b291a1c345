// Real tables: sort by a click on the heading, filter per column (text, > < >= <= =, or from..to), pages of 100 rows.
'use strict';
k3.pageRows = 100;

// A test of one cell from what was typed into the filter of its column.
k3.filterTest = (typed, text) => {
  const t = typed.trim();
  if (!t) return null;
  const compare = /^(>=|<=|>|<|=)\s*(-?[\d.eE+-]+)$/.exec(t), range = /^(-?[\d.]+)\.\.(-?[\d.]+)$/.exec(t);
  if (!text && range) return v => v !== null && v >= +range[1] && v <= +range[2];
  if (!text && compare) {
    const limit = +compare[2];
    return { '>': v => v !== null && v > limit, '<': v => v !== null && v < limit, '>=': v => v !== null && v >= limit,
             '<=': v => v !== null && v <= limit, '=': v => v === limit }[compare[1]];
  }
  const low = t.toLowerCase();
  return v => v !== null && String(v).toLowerCase().includes(low);
};

// What the columns are: a line each, folded away.
k3.columnGuide = table => k3.el('details', { class: 'guide' }, k3.el('summary', {}, 'What the columns mean'),
  k3.el('dl', {}, ...table.columns.flatMap(c => [k3.el('dt', {}, c.title + (k3.unitOf(c) ? ` [${k3.unitOf(c)}]` : '')),
    k3.el('dd', {}, `${c.what || c.title}; source: ${c.source || table.source}`)])));

// options: {onRow(index), onOrder(indices), sort: column index, tools: filters also for few rows}. Returns {choose(index), limit(test)}.
k3.tables = [];  // all that were drawn
k3.table = (box, table, options = {}) => {
  k3.tables.push(table);
  const rows = table.rows, columns = table.columns;
  const state = { order: rows.map((_, i) => i), sort: -1, down: false, page: 0, filters: columns.map(() => ''), chosen: -1, extra: null };
  const withTools = rows.length > 20 || options.tools;
  const body = k3.el('tbody', {}), count = k3.el('span', { 'aria-live': 'polite' });
  const previous = k3.el('button', { type: 'button', onclick: () => turn(-1) }, 'previous');
  const next = k3.el('button', { type: 'button', onclick: () => turn(1) }, 'next');

  const largest = columns.map((c, i) => c.bar ? rows.reduce((most, r) => Math.max(most, Math.abs(r[i]) || 0), 0) : 0);
  const heads = columns.map((c, i) => k3.el('th', { scope: 'col', class: c.text ? null : 'n', 'data-key': c.key || null,
    title: [c.what, c.source && 'source: ' + c.source].filter(Boolean).join('; ') || null },
    k3.el('button', { type: 'button', class: 'plain', onclick: () => sortBy(i) }, c.title.replace(/([._])/g, '$1\u200b'),
      k3.unitOf(c) && k3.unitOf(c) !== c.title ? k3.el('span', { class: 'unit' }, ' [' + k3.unitOf(c) + ']') : null)));
  const inputs = columns.map((c, i) => k3.el('input', { type: 'search', 'aria-label': 'filter ' + c.title,
    placeholder: c.text ? 'contains' : '> <', oninput: e => { state.filters[i] = e.target.value; refresh(); } }));

  const bar = (value, i) => largest[i] > 0 && value !== null
    ? `background:linear-gradient(270deg,var(--bar) ${k3.number(100 * Math.abs(value) / largest[i], 4)}%,transparent 0)` : null;
  const shown = (value, c, r) => value === null ? '' : c.unit === 'mixed' ? k3.amount(value, k3.unitOf(c, table, r)) : k3.amount(value, c.unit, true);
  const cell = (value, c, i, r) => c.text ? k3.el('td', {}, value === null ? '' : String(value))
    : k3.el('td', { class: 'n', 'data-value': value, style: bar(value, i) }, shown(value, c, r));
  const row = index => {
    const tr = k3.el('tr', { 'data-row': index, class: index === state.chosen ? 'chosen' : null },
      ...columns.map((c, i) => cell(rows[index][i], c, i, rows[index])));
    if (options.onRow) {
      const first = tr.firstChild, text = first.textContent;
      first.replaceChildren(k3.el('button', { type: 'button', class: 'plain' }, text || '(row ' + (index + 1) + ')'));
      tr.addEventListener('click', () => options.onRow(index));
    }
    return tr;
  };

  function show() {
    const pages = Math.max(1, Math.ceil(state.order.length / k3.pageRows));
    state.page = Math.min(state.page, pages - 1);
    const from = state.page * k3.pageRows, part = state.order.slice(from, from + k3.pageRows);
    body.replaceChildren(...part.map(row));
    count.textContent = state.order.length === 0 ? 'no row matches'
      : `rows ${from + 1}–${from + part.length} of ${state.order.length}` +
        (state.order.length < rows.length ? ` (${rows.length} in all)` : '');
    previous.disabled = state.page === 0;
    next.disabled = state.page >= pages - 1;
  }
  function turn(by) { state.page += by; show(); }
  function refresh() {
    const tests = columns.map((c, i) => k3.filterTest(state.filters[i], c.text));
    state.order = [];
    rows.forEach((r, i) => {
      if (tests.every((t, k) => !t || t(r[k])) && (!state.extra || state.extra(i))) state.order.push(i);
    });
    if (state.sort >= 0) {
      const k = state.sort, sign = state.down ? -1 : 1;
      state.order.sort((a, b) => {
        const x = rows[a][k], y = rows[b][k];
        if (x === null || y === null) return (x === null) - (y === null) || a - b;  // missing values last, always
        return sign * (columns[k].text ? String(x).localeCompare(String(y)) : x - y) || a - b;
      });
    }
    state.page = 0;
    show();
    if (options.onOrder) options.onOrder(state.order);
  }
  function sortBy(i) {
    state.down = state.sort === i ? !state.down : false;
    state.sort = i;
    heads.forEach((h, k) => k === i ? h.setAttribute('aria-sort', state.down ? 'descending' : 'ascending') : h.removeAttribute('aria-sort'));
    refresh();
  }

  const head = k3.el('thead', {}, k3.el('tr', {}, ...heads));
  if (withTools) head.append(k3.el('tr', { class: 'filters' }, ...inputs.map(i => k3.el('td', {}, i))));
  box.append(k3.el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': table.caption },
    k3.el('table', { id: 'table-' + table.id, class: columns.length > 8 ? 'wide' : null }, k3.el('caption', {}, k3.el('span', {}, table.caption)), head, body)));
  if (withTools) box.append(k3.el('div', { class: 'controls pages' }, count, rows.length > k3.pageRows ? previous : null,
    rows.length > k3.pageRows ? next : null));
  const others = columns.length > 8 ? [] : columns.filter(c => c.source && c.source !== table.source).map(c => `${c.title}: ${c.source}`);
  box.append(k3.source([table.source, ...others].join('; ')));
  if (columns.length > 8) box.append(k3.columnGuide(table));
  options.sort >= 0 ? sortBy(options.sort) : show();
  return {
    choose(index) {
      state.chosen = index;
      const at = state.order.indexOf(index);
      if (at >= 0) state.page = Math.floor(at / k3.pageRows);
      show();
    },
    limit(test) { state.extra = test; refresh(); },
    order: () => state.order,
  };
};

k3.draw.table = (box, table) => {
  const place = table.folded ? k3.el('details', {}, k3.el('summary', {}, table.caption)) : box;
  if (place !== box) box.append(place);
  k3.table(place, table);
};
