/*
 * Nagare's built-in page: joins a channel with the browser module, or calls one other browser, and shows who is there.
 *
 * The parts: form.js with preview.js and invite.js, stage.js (what is open, and its pictures), channel-view.js, call-view.js,
 * bar.js, chat.js, tiles.js, speaker.js, numbers.js, words.js with the strings, token.js and ui.js. This file joins, measures,
 * and has the hook for tests.
 */
import './bar.js';
import './shortcuts.js';
import { joinCall } from './call-view.js';
import { joinChannel } from './channel-view.js';
import { askFor, channelProblem, prepareForm } from './form.js';
import { showAddress } from './invite.js';
import { closePreview } from './preview.js';
import { end, followSpeaker, session, tilesOf, warn } from './stage.js';
import { complain, showView, ui } from './ui.js';

ui['join-form'].addEventListener('submit', (event) => {
  event.preventDefault();
  complain();
  const name = ui.channel.value.trim();
  const problem = channelProblem(name);
  if (problem) {
    complain(problem);
    askFor(ui.channel);
    return;
  }
  showAddress({ channel: name, how: ui.how.value });
  if (ui.how.value === 'call') joinCall(name);
  else joinChannel(name);
  // The module has asked for the devices: without a gap between, no browser asks the user again.
  closePreview();
});
addEventListener('pagehide', () => end());

// ---- numbers --------------------------------------------------------------------------------------------------------

const measureAll = () => Promise.all(tilesOf().map((tile) => tile.measure(session.parts(tile)).catch(() => {})));

const sendingSecondsMin = 5;
/** Asks the server now and then what it sends to this page, and why not more. */
async function askSending(room) {
  if (!room.channel?.isExtended || room.channel.status !== 'connected' || document.hidden) return;
  if (Date.now() < (room.askAt ?? 0)) return;
  room.askAt = Date.now() + sendingSecondsMin * 1000;
  room.sent = await room.channel.statistics().catch(() => null);
}

setInterval(async () => {
  if (!session) return;
  askSending(session);
  await measureAll();
  warn();
}, 1000);

setInterval(() => { if (session?.kind === 'channel') followSpeaker(); }, 300);

// ---- the hook for tests and the console -----------------------------------------------------------------------------

const describe = (tile) => ({ title: tile.title, hasPicture: tile.hasPicture, isStill: tile.isStill,
  firstFrameAt: tile.firstFrameAt, ...tile.numbers });

window.nagare = {
  /** The latest numbers of all pictures. */
  stats: () => ({
    view: document.body.dataset.view, channel: session?.name, status: session?.channel?.status ?? session?.call?.status,
    connections: session?.connections, clickedAt: session?.clickedAt, people: (session?.channel?.users.length ?? 0) + 1,
    publish: session?.tiles.has('self') ? describe(session.tiles.get('self')) : null,
    watch: Object.fromEntries([...(session?.tiles ?? [])].filter(([, one]) => !one.own)
      .map(([key, one]) => [key, describe(one)])),
  }),
  /** Measures now instead of waiting for the next second. */
  async sample() {
    if (session) await measureAll();
    return window.nagare.stats();
  },
  /** The module's channel. */
  get channel() { return session?.channel; },
};

showView('form');
prepareForm();
