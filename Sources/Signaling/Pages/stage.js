// What is open, a channel or a call, and its pictures.

import { Speaker } from './speaker.js';
import { Tile, layOut } from './tiles.js';
import { complain, press, remembered, say, showView, ui } from './ui.js';

/**
 * The running channel or call; `null` while the form is shown. Both have `name`, `kind`, `tiles` (key → tile), `clickedAt`,
 * `close()`, `draw()`, `toggle(kind)` and `switchTo(kind, device)`, `why(tile)` and `parts(tile)`: the senders or receivers
 * of a picture.
 */
export let session = null;
let soundWanted = true;
let speaker = new Speaker();

/** Shows a channel or call in place of the form. */
export function begin(room) {
  session = room;
  speaker = new Speaker();
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
  say('');
  complain(text, remedy);
  showView('form');
  (text ? ui.join : ui.channel).focus({ preventScroll: true });
}

export const tilesOf = () => [...(session?.tiles.values() ?? [])];

/** With fewer other people, equal pictures are large enough. */
const crowdMin = 3;
let wantsSpeaker = remembered.get('layout') !== 'grid';

/** Lays the pictures out: in a crowd the speaker's is large, unless the user wants equal ones. */
function relayout() {
  const tiles = tilesOf();
  const isCrowd = tiles.filter((one) => !one.own && !one.isScreen).length >= crowdMin;
  ui.layout.hidden = !isCrowd;
  press(ui.layout, wantsSpeaker);
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
  for (const one of people) one.root.classList.toggle('speaking', one.key === speaker.current);
  if (speaker.shown !== before) relayout();
}

/** The tile of `key`, made if it is missing. */
export function tileOf(key, options) {
  const existing = session.tiles.get(key);
  if (existing) {
    existing.rename(options.title, options.owner);
    return existing;
  }
  const tile = new Tile({ describeWhy: (one) => session?.why(one) ?? '', ...options });
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
