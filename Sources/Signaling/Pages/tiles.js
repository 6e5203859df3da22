// The pictures: one tile for each camera and each screen, laid out so that all fit the window.

import { setIcon } from './controls.js';
import { drawSpark, historyMax, summarise } from './numbers.js';
import { t } from './words.js';

/** The letters that stand for a person without a picture. */
export function initialsOf(name) {
  const words = name.trim().split(/\s+/).filter(Boolean);
  const letters = words.length > 1 ? [words[0], words.at(-1)].map((one) => [...one][0]) : [...(words[0] ?? '?')].slice(0, 2);
  return letters.join('').toLocaleUpperCase();
}

/** For how many seconds a device does not keep up with a picture before that is said. */
const busySecondsMin = 5;
const busySecondsMax = 10;

/** One picture. `owner` is the name in sentences, `title` the caption. */
export class Tile {
  constructor({ title, owner, own = false, isScreen = false }) {
    Object.assign(this, { title, owner, own, isScreen, silenced: false, numbers: {}, history: [], pinned: false, busySeconds: 0 });
    this.root = document.getElementById('tile-template').content.firstElementChild.cloneNode(true);
    this.find = (selector) => this.root.querySelector(selector);
    this.video = this.find('video');
    this.video.muted = own;
    this.root.classList.toggle('own', own);
    this.becomeScreen(isScreen);
    this.find('.sound-toggle').hidden = own;
    this.find('.sound-toggle').onclick = () => { this.silenced = !this.silenced; this.applySound(this.soundWanted); };
    const toggle = this.find('.numbers-toggle');
    toggle.onclick = () => {
      const panel = this.find('.numbers');
      panel.hidden = !panel.hidden;
      toggle.setAttribute('aria-expanded', String(!panel.hidden));
      this.#drawNumbers();
    };
    if (own) this.find('[data-last]').textContent = t('numbers.limit');
    this.rename(title, owner);
    this.video.onresize = () => this.#applyPicture();
    const seen = () => { this.firstFrameAt ??= Date.now(); };
    if (this.video.requestVideoFrameCallback) this.video.requestVideoFrameCallback(seen);
    else this.video.addEventListener('timeupdate', seen, { once: true });
  }

  rename(title, owner) {
    Object.assign(this, { title, owner });
    const name = (selector, key) => {
      const text = t(key, { title, name: owner });
      this.find(selector).setAttribute('aria-label', text);
      this.find(selector).title = text;
    };
    this.find('.who').textContent = title;
    this.find('.initials').textContent = initialsOf(owner);
    this.video.setAttribute('aria-label', this.isScreen ? title : t('tile.video', { title }));
    name('.sound-toggle', this.silenced ? 'tile.unsilence' : 'tile.silence');
    name('.numbers-toggle', 'tile.numbers');
    name('.pin', 'tile.enlarge');
    this.find('.spark').setAttribute('aria-label', t('tile.spark', { title }));
  }

  becomeScreen(isScreen) {
    this.isScreen = isScreen;
    this.root.classList.toggle('screen', isScreen);
  }

  show(stream) {
    if (this.video.srcObject !== stream) this.video.srcObject = stream;
  }

  /** What is seen and heard, and why not. `veil` stands in place of a picture, and `happens` beside the name. */
  follow({ hasPicture, isSilent = false, veil = '', happens = '', isMirrored = false, hasHand = false,
    isFaded = false }) {
    this.isPictureExpected = hasPicture;
    this.#applyPicture();
    this.root.classList.toggle('mirrored', isMirrored);
    this.root.classList.toggle('faded', isFaded || Boolean(happens));
    this.find('.silent').hidden = !isSilent;
    this.find('.mark-hand').hidden = !hasHand;
    for (const [selector, text] of [['.veil', veil], ['.happens', happens]]) {
      const element = this.find(selector);
      if (element.textContent !== text) element.textContent = text;
      element.hidden = !text;
    }
  }

  /** Until the first frame, the person's initials are shown. */
  #applyPicture() {
    this.hasPicture = this.isPictureExpected && (this.own || this.video.videoWidth > 0);
    this.root.dataset.picture = this.hasPicture ? 'on' : 'off';
  }

  applySound(soundWanted) {
    this.soundWanted = soundWanted;
    this.video.muted = this.own || this.silenced || !soundWanted;
    const toggle = this.find('.sound-toggle');
    setIcon(toggle, this.silenced ? 'sound-off' : 'sound');
    toggle.classList.toggle('is-on', this.silenced);
    this.rename(this.title, this.owner);
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
    this.busySeconds = numbers.isBusy ? Math.min(this.busySeconds + 1, busySecondsMax) : Math.max(0, this.busySeconds - 2);
    this.isBusy = this.hasPicture && this.busySeconds >= (this.isBusy ? 1 : busySecondsMin);
    this.history.push(numbers.kbps ?? 0);
    if (this.history.length > historyMax) this.history.shift();
  }

  /** Draws what is wrong with the picture, an icon and a sentence, and the numbers. */
  draw({ icon, text } = { icon: 'network', text: '' }) {
    const mark = this.find('.why');
    const sentence = mark.querySelector('.only-heard');
    if (sentence.textContent !== text) sentence.textContent = mark.title = text;
    setIcon(mark, icon);
    mark.dataset.icon = icon;
    mark.hidden = !text;
    this.#drawNumbers();
  }

  #drawNumbers() {
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
    if (this.own) {
      put('last', ['none', 'cpu', 'bandwidth'].includes(numbers.limit) ? t(`numbers.limit.${numbers.limit}`) : '–');
    } else {
      put('last', known(numbers.freezes, String), tone(numbers.freezes, 1, 5));
    }
    drawSpark(this.find('.spark'), this.history);
  }

  close() {
    this.video.srcObject = null;
    this.root.remove();
  }
}

// ---- the layout -----------------------------------------------------------------------------------------------------

const gap = 10;
const wide = 16 / 9;
/** A camera's picture is cut to fill an upright window, and at the sides at most to this ratio in a crowd. */
const uprightMin = 3 / 4;

const isUpright = ({ width, height }) => height > width;

/** The largest equal pictures of which `count` fit into the box: the number of columns, and the size of one. */
function best(count, { width, height }) {
  const least = isUpright({ width, height }) ? uprightMin : wide;
  let found = { columns: 1, width: 0, height: 0, area: 0 };
  for (let columns = 1; columns <= count; columns += 1) {
    const rows = Math.ceil(count / columns);
    const cell = { width: (width - gap * (columns - 1)) / columns, height: (height - gap * (rows - 1)) / rows };
    const size = Math.max(0, Math.min(cell.width, cell.height * wide));
    const tall = Math.min(cell.height, size / least);
    if (size * tall > found.area) found = { columns, width: size, height: tall, area: size * tall };
  }
  return found;
}

/** `isCut`: a camera's picture is cut to fill the place, and else shown whole. */
function place(tile, left, top, width, height, isCut = false) {
  Object.assign(tile.root.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
  tile.root.style.setProperty('--covered', '0px');
  tile.root.classList.toggle('small', width < 300);
  tile.root.classList.toggle('fills', isCut && !tile.isScreen);
}

/** Equal pictures in rows. One alone fills the box, and two an upright one. `spare` stays free below where possible. */
function grid(tiles, box, spare = 0) {
  const isCut = isUpright(box);
  if (tiles.length === 1) { place(tiles[0], box.left, box.top, box.width, box.height, isCut); return; }
  if (tiles.length === 2 && isCut) {
    const height = (box.height - gap) / 2;
    tiles.forEach((tile, index) => place(tile, box.left, box.top + index * (height + gap), box.width, height, isCut));
    return;
  }
  const { columns, width, height } = best(tiles.length, box);
  const rows = Math.ceil(tiles.length / columns);
  const free = box.height - rows * height - (rows - 1) * gap;
  const top = box.top + (free >= spare + gap ? (free - spare) / 2 : free / 2);
  tiles.forEach((tile, index) => {
    const row = Math.floor(index / columns);
    const inRow = row < rows - 1 ? columns : tiles.length - columns * (rows - 1);
    const left = box.left + (box.width - inRow * width - (inRow - 1) * gap) / 2;
    place(tile, left + (index % columns) * (width + gap), top + row * (height + gap), width, height, isCut);
  });
}

/** The size of the own picture in the corner. */
function cornerSize(box) {
  if (isUpright(box)) return { width: Math.max(72, box.width * 0.26), height: Math.max(96, box.width * 0.26 * 4 / 3) };
  const width = Math.min(220, Math.max(120, box.width * 0.18));
  return { width, height: width / wide };
}

/** With more others the own picture is one of the equal ones. */
const cornerOthersMax = 2;
const cornerInset = 10;

/** The others in the box, and the own picture small in its corner. */
function withCorner(others, own, box) {
  const { width, height } = cornerSize(box);
  const [left, top] = [box.width - width - cornerInset, box.height - height - cornerInset];
  grid(others, box, height + cornerInset);
  place(own, left, top, width, height, isUpright(box));
  // The names of the pictures behind it keep clear of it.
  for (const { root } of others) {
    const { style } = root;
    const [right, bottom] = [parseFloat(style.left) + parseFloat(style.width), parseFloat(style.top) + parseFloat(style.height)];
    if (right > left && bottom > top) style.setProperty('--covered', `${right - left}px`);
  }
}

/** Lays all tiles out in the box: a pinned picture, a screen or the `speaker` is large, beside the others. */
export function layOut(tiles, { width, height }, speaker = null) {
  if (!tiles.length || !width || !height) return;
  const large = tiles.find((one) => one.pinned) ?? tiles.find((one) => one.isScreen && !one.own) ?? speaker;
  const others = tiles.filter((one) => one !== large);
  const own = tiles.find((one) => one.own && !one.isScreen);
  const rest = tiles.filter((one) => one !== own);
  const hasCorner = own && own !== large && rest.length > 0 && (large ? rest.length === 1 : rest.length <= cornerOthersMax);
  for (const one of tiles) {
    one.root.classList.toggle('large', one === large);
    one.root.classList.toggle('corner', Boolean(hasCorner) && one === own);
  }
  const box = { left: 0, top: 0, width, height };
  if (hasCorner) { withCorner(rest, own, box); return; }
  if (!large || !others.length) { grid(tiles, box); return; }
  const isWide = width > height * 1.2;
  const share = isWide ? Math.min(width * 0.25, 320) : Math.min(height * 0.35, 260);
  if (isWide) {
    place(large, 0, 0, width - share - gap, height);
    grid(others, { left: width - share, top: 0, width: share, height });
  } else {
    place(large, 0, 0, width, height - share - gap, true);
    grid(others, { left: 0, top: height - share, width, height: share });
  }
}
