// The pictures: one tile for each camera and each screen, laid out so that all fit the window.

import { drawSpark, historyMax, summarise } from './numbers.js';

/** The letters that stand for a person without a picture. */
export function initialsOf(name) {
  const words = name.trim().split(/\s+/).filter(Boolean);
  const letters = words.length > 1 ? [words[0], words.at(-1)].map((one) => [...one][0]) : [...(words[0] ?? '?')].slice(0, 2);
  return letters.join('').toLocaleUpperCase();
}

/** One picture. `owner` is the name in sentences, `title` the caption. */
export class Tile {
  constructor({ title, owner, own = false, isScreen = false, describeWhy = () => '' }) {
    Object.assign(this, { title, owner, own, isScreen, describeWhy, silenced: false, numbers: {}, history: [], pinned: false });
    this.root = document.getElementById('tile-template').content.firstElementChild.cloneNode(true);
    this.find = (selector) => this.root.querySelector(selector);
    this.video = this.find('video');
    this.video.muted = own;
    this.root.classList.toggle('own', own);
    this.root.classList.toggle('screen', isScreen);
    this.find('.sound-toggle').hidden = own;
    this.find('.sound-toggle').onclick = () => { this.silenced = !this.silenced; this.applySound(this.soundWanted); };
    const toggle = this.find('.numbers-toggle');
    toggle.onclick = () => {
      const panel = this.find('.numbers');
      panel.hidden = !panel.hidden;
      toggle.setAttribute('aria-expanded', String(!panel.hidden));
      this.draw();
    };
    if (own) this.find('[data-last]').textContent = 'Limited by';
    this.rename(title, owner);
    this.video.onresize = () => this.#applyPicture();
    const seen = () => { this.firstFrameAt ??= Date.now(); };
    if (this.video.requestVideoFrameCallback) this.video.requestVideoFrameCallback(seen);
    else this.video.addEventListener('timeupdate', seen, { once: true });
  }

  rename(title, owner) {
    Object.assign(this, { title, owner });
    this.find('.who').textContent = title;
    this.find('.initials').textContent = initialsOf(owner);
    this.video.setAttribute('aria-label', this.isScreen ? title : `Video of ${title}`);
    this.find('.sound-toggle').setAttribute('aria-label', `Mute ${owner}`);
    this.find('.numbers-toggle').setAttribute('aria-label', `Numbers of ${title}`);
    this.find('.pin').setAttribute('aria-label', `Enlarge ${title}`);
    this.find('.spark').setAttribute('aria-label', `Bitrate of ${title} over the last minute`);
  }

  show(stream) {
    if (this.video.srcObject !== stream) this.video.srcObject = stream;
  }

  /** What is seen and heard, and why not. `veil` covers the picture with a sentence. */
  follow({ hasPicture, isSilent = false, veil = '', isMirrored = false }) {
    this.isPictureExpected = hasPicture;
    this.#applyPicture();
    this.root.classList.toggle('mirrored', isMirrored);
    this.find('.who').textContent = this.title + (isSilent ? ' · muted' : '');
    this.find('.veil').textContent = veil;
    this.find('.veil').hidden = !veil;
  }

  /** Until the first frame, the person's initials are shown. */
  #applyPicture() {
    this.hasPicture = this.isPictureExpected && (this.own || this.video.videoWidth > 0);
    this.root.dataset.picture = this.hasPicture ? 'on' : 'off';
  }

  applySound(soundWanted) {
    this.soundWanted = soundWanted;
    this.video.muted = this.own || this.silenced || !soundWanted;
    this.find('.sound-toggle').setAttribute('aria-pressed', String(this.silenced));
  }

  /** Measures with the senders or receivers of the picture. */
  async measure(parts) {
    const reports = await Promise.all(parts.filter(Boolean).map((one) => one.getStats()));
    if (!reports.length) return;
    const base = this.previous;
    const numbers = summarise(new Map(reports.flatMap((one) => [...one])), base, this.own);
    this.numbers = numbers;
    // Rates over a very short interval are noise: keep the older base.
    if (base && numbers.at - base.at < 500) return;
    this.previous = numbers;
    const isStill = numbers.frames !== undefined && numbers.frames === base?.frames;
    this.isStill = isStill && this.hasPicture && !this.own;
    this.limitedFor = ['cpu', 'bandwidth'].includes(numbers.limit) ? (this.limitedFor ?? 0) + 1 : 0;
    this.history.push(numbers.kbps ?? 0);
    if (this.history.length > historyMax) this.history.shift();
  }

  draw() {
    const why = this.find('.why');
    const sentence = this.describeWhy(this);
    if (why.textContent !== sentence) why.textContent = sentence;
    why.hidden = !sentence;
    if (this.find('.numbers').hidden) return;
    const { numbers } = this;
    const put = (name, text, tone = '') => {
      const cell = this.find(`[data-number="${name}"]`);
      cell.textContent = text;
      cell.dataset.tone = tone;
    };
    const known = (value, text) => (value === undefined || Number.isNaN(value) ? '–' : text(value));
    const tone = (value, warn, bad) => (value >= bad ? 'bad' : value >= warn ? 'warn' : '');
    const bitrate = (v) => (v >= 1000 ? `${(v / 1000).toFixed(2)} Mbit/s` : `${Math.round(v)} kbit/s`);
    const time = (v) => `${v < 10 ? v.toFixed(1) : Math.round(v)} ms`;
    put('bitrate', known(numbers.kbps, bitrate));
    put('loss', known(numbers.loss, (v) => `${v.toFixed(1)} %`), tone(numbers.loss, 1, 5));
    put('rtt', known(numbers.rtt, time), tone(numbers.rtt, 200, 400));
    put('fps', known(numbers.fps, (v) => `${Math.round(v)} /s`));
    put('size', known(numbers.width, (v) => `${v} × ${numbers.height}`));
    put('codec', [numbers.codec, numbers.audioCodec].filter(Boolean).join(' + ') || '–');
    if (this.own) put('last', { none: 'nothing', cpu: 'processor', bandwidth: 'network' }[numbers.limit] ?? '–');
    else put('last', known(numbers.freezes, String), tone(numbers.freezes, 1, 5));
    drawSpark(this.find('.spark'), this.history);
  }

  close() {
    this.video.srcObject = null;
    this.root.remove();
  }
}

const gap = 10;
const ratio = 16 / 9;

/** The largest equal pictures of which `count` fit into the box: the number of columns, and the size of one. */
function best(count, width, height) {
  let found = { columns: 1, width: 0, height: 0 };
  for (let columns = 1; columns <= count; columns += 1) {
    const rows = Math.ceil(count / columns);
    const cell = { width: (width - gap * (columns - 1)) / columns, height: (height - gap * (rows - 1)) / rows };
    const size = Math.max(0, Math.min(cell.width, cell.height * ratio));
    if (size > found.width) found = { columns, width: size, height: size / ratio };
  }
  return found;
}

function place(tile, left, top, width, height) {
  Object.assign(tile.root.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
  tile.root.classList.toggle('small', width < 300);
}

/** Equal pictures in rows, in the middle of the box. One alone fills the box. */
function grid(tiles, box) {
  if (tiles.length === 1) { place(tiles[0], box.left, box.top, box.width, box.height); return; }
  const { columns, width, height } = best(tiles.length, box.width, box.height);
  const rows = Math.ceil(tiles.length / columns);
  const top = box.top + (box.height - rows * height - (rows - 1) * gap) / 2;
  tiles.forEach((tile, index) => {
    const row = Math.floor(index / columns);
    const inRow = row < rows - 1 ? columns : tiles.length - columns * (rows - 1);
    const left = box.left + (box.width - inRow * width - (inRow - 1) * gap) / 2;
    place(tile, left + (index % columns) * (width + gap), top + row * (height + gap), width, height);
  });
}

/** Lays all tiles out in the box: a pinned picture, a screen or the `speaker` is large, beside the others. */
export function layOut(tiles, { width, height }, speaker = null) {
  if (!tiles.length || !width || !height) return;
  const large = tiles.find((one) => one.pinned) ?? tiles.find((one) => one.isScreen && !one.own) ?? speaker;
  const others = tiles.filter((one) => one !== large);
  for (const one of tiles) one.root.classList.toggle('large', one === large);
  if (!large || !others.length) { grid(tiles, { left: 0, top: 0, width, height }); return; }
  const isWide = width > height * 1.2;
  const share = isWide ? Math.min(width * 0.25, 320) : Math.min(height * 0.35, 260);
  if (isWide) {
    place(large, 0, 0, width - share - gap, height);
    grid(others, { left: width - share, top: 0, width: share, height });
  } else {
    place(large, 0, 0, width, height - share - gap);
    grid(others, { left: 0, top: height - share, width, height: share });
  }
}
