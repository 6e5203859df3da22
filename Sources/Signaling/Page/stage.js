// What is open, a channel or a call, and its pictures.

import { Tile, layOut } from './tiles.js';
import { complain, say, showView, ui } from './ui.js';

/**
 * The running channel or call; `null` while the form is shown. Both have `name`, `kind`, `tiles` (key → tile), `clickedAt`,
 * `close()`, `draw()`, `toggle(kind)` and `switchTo(kind, device)`, `why(tile)` and `parts(tile)`: the senders or receivers
 * of a picture.
 */
export let session = null;
let soundWanted = true;

/** Shows a channel or call in place of the form. */
export function begin(room) {
  session = room;
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
const relayout = () => layOut(tilesOf(), { width: ui.tiles.clientWidth, height: ui.tiles.clientHeight });
new ResizeObserver(relayout).observe(ui.tiles);

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
