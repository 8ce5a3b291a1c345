// Parallel coordinates: a line per row through its values; words become places on their axis. A range dragged along an
// axis keeps the rows that pass through it.
'use strict';
k3.Parallel = class {
  constructor(box, table, keys, onBrush, onPick) {
    this.canvas = k3.el('canvas', { class: 'parallel', id: 'parallel', role: 'img', 'aria-label': 'Parallel coordinates of ' + keys.join(', ') + '; the filters of the table below do the same' });
    box.append(k3.el('div', { class: 'scroll' }, this.canvas), k3.el('p', { class: 'source' }, 'Drag along an axis to keep a range, click the axis to drop it.'));
    Object.assign(this, { table, onBrush, brushes: new Map(), chosen: -1 });
    this.keys = [];
    this.words = [];  // per axis: the words in order, or null for numbers
    this.extent = [];
    for (const key of keys) this.addAxis(table.columns.findIndex(c => c.key === key));
    this.canvas.style.minWidth = this.keys.length * 76 + 'px';
    this.canvas.addEventListener('pointerdown', e => { this.drag = { axis: this.axisAt(e.offsetX), y: e.offsetY }; });
    this.canvas.addEventListener('pointerup', e => this.brush(e));
  }
  addAxis(k) {
    if (k < 0) return;
    const cells = this.table.rows.map(r => r[k]).filter(v => v !== null);
    let words = null, low = Infinity, high = -Infinity;
    if (this.table.columns[k].text) {
      words = [...new Set(cells)].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
      if (words.length < 2 || words.length > 12) return;
      [low, high] = [0, words.length - 1];
    } else {
      for (const v of cells) { low = Math.min(low, v); high = Math.max(high, v); }
      if (!(low < high)) return;  // the same everywhere
    }
    this.keys.push(k);
    this.words.push(words);
    this.extent.push([low, high]);
  }
  at(i, a) {
    const v = this.table.rows[i][this.keys[a]];
    return v === null ? NaN : this.words[a] ? this.words[a].indexOf(v) : v;
  }
  x(a) { const w = this.canvas.clientWidth; return this.keys.length < 2 ? w / 2 : 46 + a * (w - 92) / (this.keys.length - 1); }
  y(a, v) { const [low, high] = this.extent[a]; return 34 + (1 - (v - low) / (high - low)) * (this.height - 56); }
  value(a, y) { const [low, high] = this.extent[a]; return low + (1 - (y - 34) / (this.height - 56)) * (high - low); }
  axisAt(x) { let best = 0; this.keys.forEach((_, a) => { if (Math.abs(this.x(a) - x) < Math.abs(this.x(best) - x)) best = a; }); return best; }
  brush(e) {
    if (!this.drag) return;
    const { axis, y } = this.drag;
    this.drag = null;
    if (Math.abs(e.offsetY - y) < 4) this.brushes.delete(axis);
    else this.brushes.set(axis, [this.value(axis, Math.max(y, e.offsetY)), this.value(axis, Math.min(y, e.offsetY))]);
    this.onBrush(this.brushes.size ? i => this.passes(i) : null);
  }
  passes(i) {
    for (const [axis, [low, high]] of this.brushes) {
      const v = this.at(i, axis);
      if (!(v >= low && v <= high)) return false;
    }
    return true;
  }
  path(c, i) {
    let pen = false;
    for (let a = 0; a < this.keys.length; ++a) {
      const v = this.at(i, a);
      if (Number.isNaN(v)) { pen = false; continue; }
      pen ? c.lineTo(this.x(a), this.y(a, v)) : c.moveTo(this.x(a), this.y(a, v));
      pen = true;
    }
  }
  draw(order) {
    this.order = order || this.order || this.table.rows.map((_, i) => i);
    this.height = 280;
    const [c] = k3.context(this.canvas, this.height);
    c.globalAlpha = Math.max(.04, Math.min(.8, 120 / this.order.length));
    c.strokeStyle = '#2f8fd0';
    // Sixteen rows per stroke: thousands of single strokes would take most of a second.
    this.order.forEach((i, n) => {
      if (n % 16 === 0) c.beginPath();
      this.path(c, i);
      if (n % 16 === 15 || n + 1 === this.order.length) c.stroke();
    });
    c.globalAlpha = 1;
    if (this.chosen >= 0) { c.strokeStyle = '#d55e00'; c.lineWidth = 3; c.beginPath(); this.path(c, this.chosen); c.stroke(); c.lineWidth = 1; }
    this.keys.forEach((_, a) => this.axis(c, a));
  }
  axis(c, a) {
    const x = this.x(a), column = this.table.columns[this.keys[a]], w = this.canvas.clientWidth, words = this.words[a];
    const room = Math.max(30, (w - 92) / Math.max(1, this.keys.length - 1) - 6), title = column.title.split('.').pop();
    c.textAlign = 'center';
    c.strokeStyle = c.fillStyle = k3.css('--ink');
    c.beginPath();
    c.moveTo(x, 34);
    c.lineTo(x, this.height - 22);
    c.stroke();
    // At the border the title leans inwards.
    const half = Math.min(room, c.measureText(title).width) / 2;
    c.fillText(title, Math.max(half + 2, Math.min(w - half - 2, x)), 13, room);
    if (words) {
      words.forEach((word, n) => this.label(c, word, x, this.y(a, n), room));
    } else {
      c.fillText(k3.number(this.extent[a][1], 4) + (k3.unitOf(column) ? ' ' + column.unit : ''), x, 28, room);
      c.fillText(k3.number(this.extent[a][0], 4), x, this.height - 7, room);
    }
    const b = this.brushes.get(a);
    if (b) { c.fillStyle = 'rgba(213,94,0,.35)'; c.fillRect(x - 7, this.y(a, b[1]), 14, this.y(a, b[0]) - this.y(a, b[1])); }
  }
  // A word on its axis, on a patch of paper so that lines do not cross it.
  label(c, word, x, y, room) {
    const wide = Math.min(room, c.measureText(word).width);
    c.fillStyle = k3.css('--paper');
    c.globalAlpha = .8;
    c.fillRect(x - wide / 2 - 2, y - 7, wide + 4, 14);
    c.globalAlpha = 1;
    c.fillStyle = k3.css('--ink');
    c.fillText(word, x, y + 4, room);
  }
};
