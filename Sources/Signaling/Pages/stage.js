// What is open, a channel or a call, and its pictures.

import { setControl, setIcon } from './controls.js';
import { closePeople } from './people.js';
import { Speaker } from './speaker.js';
import { Tile, layOut } from './tiles.js';
import { complain, remembered, say, showQuality, showView, ui } from './ui.js';
import { DeviceLoad, tickMilliseconds, warningOf } from './warnings.js';
import { t, words } from './words.js';

/**
 * The running channel or call; `null` while the form is shown. Both have `name`, `kind`, `tiles` (key → tile), `clickedAt`,
 * `close()`, `draw()`, `toggle(kind)`, `toggleScreen()`, `switchTo(kind, device)`, `quality()` (the levels of the network and what
 * the server says of what it sends), `mark(tile, warning)` (what is wrong with a picture), and `parts(tile)`: the senders or
 * receivers of a picture.
 */
export let session = null;
let soundWanted = true;
let speaker = new Speaker();

/** Shows a channel or call in place of the form. */
export function begin(room) {
  session = room;
  soundWanted = true;
  speaker = new Speaker();
  notice('');
  warn();
  showView('room');
}

/** Back to the form, with a reason if nobody asked for it. */
export function end(text = '', remedy = null) {
  const past = session;
  session = null;
  if (!past) return;
  past.close();
  for (const tile of past.tiles.values()) tile.close();
  for (const dialog of document.querySelectorAll('dialog[open]')) dialog.close();
  if (document.fullscreenElement) document.exitFullscreen().catch(() => {});
  ui.unmute.hidden = true;
  closePeople();
  say('');
  notice('');
  warn();
  complain(text, remedy);
  showView('form');
  ui.join.focus({ preventScroll: true });
}

export const tilesOf = () => [...(session?.tiles.values() ?? [])];

const noticeMilliseconds = 8_000;
let noticeTimer;
/** Says for a moment what happened. */
export function notice(text) {
  clearTimeout(noticeTimer);
  ui.notice.textContent = text;
  if (text) noticeTimer = setTimeout(notice, noticeMilliseconds, '');
}

const load = new DeviceLoad();
setInterval(() => load.tick(performance.now(), document.hidden), tickMilliseconds);

/** Shows the one warning of the call, the bars of the network, and the marks of the pictures. */
export function warn() {
  const { uplink, downlink, sending } = session?.quality() ?? {};
  const warning = warningOf({ uplink, downlink }, load.isBusy || tilesOf().some((one) => one.isBusy), sending);
  if (ui['condition-text'].textContent !== warning.text) ui['condition-text'].textContent = warning.text;
  ui.condition.hidden = !warning.text;
  ui.condition.dataset.cause = warning.cause;
  if (warning.cause) setIcon(ui.condition, warning.cause);
  showQuality(warning, words.quality(warning));
  for (const tile of tilesOf()) tile.draw(session.mark(tile, warning));
}

/** With fewer other people, equal pictures are large enough. */
const crowdMin = 3;
let wantsSpeaker = remembered.get('layout') !== 'grid';

/** Lays the pictures out: in a crowd the speaker's is large, unless the user wants equal ones. */
export function relayout() {
  const tiles = tilesOf();
  const isCrowd = tiles.filter((one) => !one.own && !one.isScreen).length >= crowdMin;
  ui.layout.hidden = !isCrowd;
  setControl(ui.layout, wantsSpeaker ? { icon: 'grid', label: t('call.showEqually') }
    : { icon: 'layout', label: t('call.showSpeaker') });
  const shown = isCrowd && wantsSpeaker ? session.tiles.get(speaker.shown) : null;
  layOut(tiles, { width: ui.tiles.clientWidth, height: ui.tiles.clientHeight }, shown);
}
new ResizeObserver(relayout).observe(ui.tiles);
ui.layout.addEventListener('click', () => {
  wantsSpeaker = !wantsSpeaker;
  remembered.set('layout', wantsSpeaker ? 'speaker' : 'grid');
  relayout();
});

/** Marks who speaks among the others, and shows the picture large. */
export function followSpeaker() {
  const people = tilesOf().filter((one) => one.connection && !one.isScreen);
  const before = speaker.shown;
  speaker.hear(new Map(people.map((one) => [one.key, one.connection.audioLevel])), Date.now());
  for (const one of people) one.root.classList.toggle('speaking', people.length > 1 && one.key === speaker.current);
  if (speaker.shown !== before) relayout();
}

/** The tile of `key`, made if it is missing. */
export function tileOf(key, options) {
  const existing = session.tiles.get(key);
  if (existing) {
    existing.rename(options.title, options.owner);
    return existing;
  }
  const tile = new Tile(options);
  tile.key = key;
  session.tiles.set(key, tile);
  const pin = tile.find('.pin');
  pin.onclick = () => {
    const isPinned = !tile.pinned;
    for (const one of tilesOf()) {
      one.pinned = one === tile && isPinned;
      one.find('.pin').setAttribute('aria-pressed', String(one.pinned));
    }
    relayout();
  };
  ui.tiles.append(tile.root);
  tile.applySound(soundWanted);
  if (ui.speaker.value) tile.video.setSinkId?.(ui.speaker.value).catch(() => {});
  relayout();
  return tile;
}

export function dropTile(key) {
  const tile = session?.tiles.get(key);
  if (!tile) return;
  session.tiles.delete(key);
  tile.close();
  relayout();
}

/** Shows an own track, or the initials without one. */
export function showOwn(tile, track, state) {
  if (track !== tile.track) tile.show(track ? new MediaStream([track]) : null);
  tile.track = track;
  tile.follow({ hasPicture: Boolean(track), ...state });
  if (track) play(tile);
}

/** Plays with sound if the browser allows it; otherwise plays silently and shows the button that turns sound on. */
export async function play(tile) {
  tile.applySound(soundWanted);
  try {
    await tile.video.play();
  } catch (error) {
    if (error.name !== 'NotAllowedError' || tile.video.muted) return;
    soundWanted = false;
    for (const one of tilesOf()) {
      one.applySound(false);
      one.video.play().catch(() => {});
    }
    ui.unmute.hidden = false;
  }
}

ui.unmute.addEventListener('click', () => {
  soundWanted = true;
  ui.unmute.hidden = true;
  for (const tile of tilesOf()) play(tile);
});
