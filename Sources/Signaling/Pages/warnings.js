// What the page warns of: the network or the processor, never both of one trouble.

import { t, words } from './words.js';

/** From this level on, fewer than three of the four bars are left. */
const weakLevelMin = 3;

const sentenceOf = (level) => t(level >= 6 ? 'network.interrupted' : level >= 4 ? 'network.bad' : 'network.weak');

/**
 * The one warning of a call. `quality` has the levels of the network, 0 unknown, 1 best … 6; `isBusy` says that this device does
 * not keep up with its pictures; `sending` is what the server says of what it sends here.
 *
 * A busy device answers the server late, which looks like a bad network from there. So it is blamed first, and the network's
 * levels count for nothing meanwhile.
 */
export function warningOf({ uplink = 0, downlink = 0 }, isBusy, sending) {
  if (isBusy) return { cause: 'processor', text: t('device.busy'), uplink: 0, downlink: 0 };
  const level = Math.max(uplink, downlink);
  if (level < weakLevelMin) return { cause: '', text: '', uplink, downlink };
  const share = downlink >= uplink && sending?.limit === 'network' ? words.sending(sending) : '';
  return { cause: 'network', text: share || sentenceOf(level), uplink, downlink };
}

/**
 * What is wrong with one picture, as an icon and a sentence; nothing without. `warning` is that of the call; `heldBack` says why
 * the server sends less of this picture than this browser wants.
 */
export function markOf(tile, warning, { heldBack = null, name = '', otherUplink = 0 } = {}) {
  if (tile.isStill && warning.cause === 'processor') return { icon: 'processor', text: t('device.slowToShow') };
  if (tile.isStill) return { icon: 'still', text: heldBack?.text || words.still };
  if (!tile.hasPicture) return undefined;
  if (tile.isBusy) return { icon: 'processor', text: t(tile.own ? 'limit.cpu' : 'device.slowToShow') };
  if (tile.own) return warning.uplink >= weakLevelMin ? { icon: 'network', text: sentenceOf(warning.uplink) } : undefined;
  // What the server measures of a busy device is not the network's.
  if (heldBack && !(heldBack.isNetwork && warning.cause === 'processor')) {
    return { icon: heldBack.isNetwork ? 'network' : 'still', text: heldBack.text };
  }
  if (otherUplink > weakLevelMin) return { icon: 'network', text: t('network.other', { name }) };
  return warning.downlink > weakLevelMin ? { icon: 'network', text: sentenceOf(warning.downlink) } : undefined;
}

/** How often a timer tells how late it is. */
export const tickMilliseconds = 200;
const loadMilliseconds = 8_000;
/** A device that slept is late once, and is not busy. */
const lateMillisecondsMax = 1_500;
const busyShareMin = 0.35;
const calmShareMax = 0.08;

/** Whether this device is too busy for the page, from how late its timers are: no network does that. */
export class DeviceLoad {
  isBusy = false;
  #last = null;
  #late = [];

  /** A tick of the timer; `now` is in ms. */
  tick(now, isHidden = false) {
    const late = this.#last === null ? 0 : Math.min(now - this.#last - tickMilliseconds, lateMillisecondsMax);
    // Browsers slow the timers of hidden pages down.
    this.#last = isHidden ? null : now;
    if (late > tickMilliseconds / 2) this.#late.push({ now, late });
    while (this.#late.length && (isHidden || this.#late[0].now < now - loadMilliseconds)) this.#late.shift();
    const share = this.#late.reduce((sum, one) => sum + one.late, 0) / loadMilliseconds;
    this.isBusy = share > (this.isBusy ? calmShareMax : busyShareMin);
  }
}

const levelBounds = [[1, 150], [3, 250], [8, 500], [15, 800], [40, 2_000]];

/** The level of a network path by its loss in percent and its round trip in ms, as the server has it; 0 when not known. */
export function levelOf(loss, roundTrip = 0) {
  if (loss === undefined) return 0;
  const index = levelBounds.findIndex(([lossMax, roundTripMax]) => loss < lossMax && roundTrip < roundTripMax);
  return index < 0 ? 6 : index + 1;
}
