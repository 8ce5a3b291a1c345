// A grid of values as colours, with the number of a cell on hover, by keyboard, or inside the cell where there is room.
'use strict';
// Cividis: even in lightness and the same for every kind of colour vision.
k3.heatStops = [[0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56]];
k3.heatColour = share => {
  const at = Math.max(0, Math.min(1, share)) * (k3.heatStops.length - 1), i = Math.min(k3.heatStops.length - 2, Math.floor(at)), f = at - i;
  return k3.heatStops[i].map((v, k) => Math.round(v + f * (k3.heatStops[i + 1][k] - v)));
};

k3.Heat = class {
  constructor(box, grid) {
    this.grid = grid;
    const seen = grid.values.flat().filter(v => v !== null);
    this.low = grid.least === null ? seen.reduce((a, b) => Math.min(a, b), Infinity) : Math.min(grid.least, ...seen);
    this.most = grid.most || seen.reduce((a, b) => Math.max(a, b), 0) || 1;
    this.left = 12 + Math.min(150, Math.max(...grid.rows.map(r => r.length)) * 6.8);
    this.canvas = k3.el('canvas', { id: 'heat-' + grid.id, tabindex: 0, role: 'img', class: 'heat', 'aria-label': `${grid.caption}. Largest ${k3.number(seen.reduce((a, b) => Math.max(a, b), 0), 4)} ${grid.unit}. Arrow keys read the cells.` });
    this.tip = k3.el('div', { class: 'tip', hidden: true });
    this.detail = k3.el('p', { class: 'detail', 'aria-live': 'polite' });
    box.append(k3.el('p', { class: 'caption' }, grid.caption), k3.el('div', { class: 'lanes' }, this.canvas, this.tip), this.detail, this.scale(), k3.source(grid.source));
    this.canvas.addEventListener('pointermove', e => this.hover(e));
    this.canvas.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    this.canvas.addEventListener('click', e => { const c = this.cellAt(e); if (c) this.choose(c[0], c[1]); });
    this.canvas.addEventListener('keydown', e => {
      const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key];
      if (!move) return;
      e.preventDefault();
      const [r, c] = this.chosen || [0, -move[1]];
      this.choose(Math.max(0, Math.min(grid.rows.length - 1, r + move[0])), Math.max(0, Math.min(grid.columns.length - 1, c + move[1])));
    });
    k3.redraws.push(() => this.draw());
    this.draw();
  }
  scale() {
    const stops = [0, .25, .5, .75, 1].map(s => `rgb(${k3.heatColour(s)}) ${100 * s}%`).join(','), unit = this.grid.unit ? ' ' + this.grid.unit : '';
    return k3.el('p', { class: 'heat-scale source' }, k3.number(this.low, 3) + unit, k3.el('i', { style: `background:linear-gradient(90deg,${stops})` }), k3.number(this.most, 3) + unit);
  }
  draw() {
    const { rows, columns, values } = this.grid;
    this.cellHeight = rows.length > 24 ? 14 : 20;
    const [c, width] = k3.context(this.canvas, rows.length * this.cellHeight + 34);
    this.cellWidth = (width - this.left) / columns.length;
    rows.forEach((name, r) => {
      c.textAlign = 'right';
      c.fillStyle = k3.css('--ink');
      c.fillText(name, this.left - 6, r * this.cellHeight + this.cellHeight - 5, this.left - 8);
      values[r].forEach((v, k) => this.cell(c, r, k, v));
    });
    const every = Math.ceil(columns.length / Math.max(2, Math.floor((width - this.left) / 64)));
    c.fillStyle = k3.css('--soft');
    c.textAlign = 'center';
    columns.forEach((name, k) => { if (k % every === 0 && (this.left + (k + .5) * this.cellWidth) < width - 12) c.fillText(name, this.left + (k + .5) * this.cellWidth, rows.length * this.cellHeight + 14); });
    c.fillText(this.grid.column_title, this.left + (width - this.left) / 2, rows.length * this.cellHeight + 30);
    if (this.chosen) {
      c.strokeStyle = k3.css('--bad');
      c.lineWidth = 2;
      c.strokeRect(this.left + this.chosen[1] * this.cellWidth, this.chosen[0] * this.cellHeight, this.cellWidth, this.cellHeight);
    }
  }
  cell(c, r, k, v) {
    if (v === null) return;
    const rgb = k3.heatColour((v - this.low) / (this.most - this.low)), gap = this.cellWidth > 6 ? 1 : 0;
    c.fillStyle = `rgb(${rgb})`;
    c.fillRect(this.left + k * this.cellWidth, r * this.cellHeight, this.cellWidth - gap, this.cellHeight - 1);
    if (this.cellWidth < 36) return;
    c.fillStyle = rgb[0] * .3 + rgb[1] * .59 + rgb[2] * .11 > 120 ? '#000' : '#fff';
    c.textAlign = 'center';
    c.fillText(k3.number(v, 3), this.left + (k + .5) * this.cellWidth, r * this.cellHeight + this.cellHeight - 6, this.cellWidth - 4);
  }
  cellAt(e) {
    const r = Math.floor(e.offsetY / this.cellHeight), k = Math.floor((e.offsetX - this.left) / this.cellWidth);
    return r >= 0 && r < this.grid.rows.length && k >= 0 && k < this.grid.columns.length ? [r, k] : null;
  }
  text(r, k) {
    const v = this.grid.values[r][k], g = this.grid;
    return `${g.row_title} ${g.rows[r]}, ${g.column_title} ${g.columns[k]}: ${v === null ? 'nothing' : k3.number(v, 4) + (g.unit ? ' ' + g.unit : '')}`;
  }
  hover(e) {
    const at = this.cellAt(e);
    this.tip.hidden = !at;
    if (!at) return;
    this.tip.textContent = this.text(at[0], at[1]);
    this.tip.style.left = Math.max(0, Math.min(e.offsetX + 12, this.canvas.clientWidth - this.tip.offsetWidth - 4)) + 'px';
    this.tip.style.top = e.offsetY + 16 + 'px';
  }
  choose(r, k) { this.chosen = [r, k]; this.detail.textContent = this.text(r, k); this.draw(); }
};

k3.draw.heat = (box, grids) => { k3.heats = (k3.heats || []).concat(grids.map(g => new k3.Heat(box, g))); };
