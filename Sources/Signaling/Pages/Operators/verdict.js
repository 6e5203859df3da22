// What the samples of a connection say about it, in sentences.

import { clock, percent, rate } from './timeline.js';

/** The first and last time at which a condition held, and in how many samples. */
function span(timeline, holds) {
  const found = timeline.at_s.map((_, index) => index).filter(holds);
  if (!found.length) return null;
  const from = timeline.at_s[found[0] - 1] ?? 0;
  return { from, to: timeline.at_s[found.at(-1)], share: found.length / timeline.at_s.length };
}

/** From this share on, loss is worth a sentence: repair costs bit rate and time. */
const LOSS = 0.02;
const during = ({ from, to, share }) => share > 0.9 ? 'all the time' : `between ${clock(from)} and ${clock(to)}`;
const most = (values) => Math.max(0, ...values);

const LIMITS = {
  delay: 'packets queued on the way', loss: 'packets were lost on the way', competition: 'other traffic took its share',
  silence: 'the client sent no reports', receiver: 'the client asked for less', maximum: 'a limit of the node or of its token applied',
};

/** What the words mean that say how a connection ended. */
const MEANINGS = {
  'live': 'It is connected.',
  'LEFT': 'The client left by itself.',
  'TYPE-DISCONNECT': 'The client left by itself.',
  'SIGNALING-LOST': 'The client’s WebSocket closed without a goodbye: a closed window, or a lost network.',
  'SHUTDOWN': 'The node was stopped.',
  'SERVER-SHUTDOWN': 'The node was stopped.',
  'SETUP-FAILED': 'The media could not be set up; the node’s log has the reason.',
  'TRANSPORT-CLOSED-BY-PEER': 'The client closed its media transport: it left.',
  'TRANSPORT-REQUESTED': 'The node closed the media transport.',
  'TRANSPORT-SETUP-TIMED-OUT': 'The media never connected: a firewall, or an address that the client does not reach.',
  'TRANSPORT-CONSENT-EXPIRED': 'Nothing came from the client any more: its network was lost, or its device slept.',
  'TRANSPORT-HANDSHAKE-FAILED': 'The encryption of the media could not be agreed on.',
  'TRANSPORT-FINGERPRINT-MISMATCH': 'The client’s certificate was another than it had announced.',
  'DISCONNECTED-API': 'An operator ended the connection.',
  'KICKED': 'An operator removed the user from the channel.',
  'BANNED': 'An operator banned the user.',
  'CHANNEL-TERMINATED': 'An operator closed the channel.',
  'CHANNEL-EXPIRED': 'The channel had lived for as long as it may.',
  'ROLE-SET-BY-OPERATOR': 'An operator made the user audience, and this connection only sent.',
  'PONG-TIMEOUT-ERROR': 'The client did not answer for a minute.',
  'LIFETIME-EXPIRED': 'The time granted to the connection was over.',
  'TOKEN-EXPIRED': 'The client’s token expired.',
  'SESSION-TERMINATED': 'An operator ended the channel’s session.',
  'TOO-SLOW': 'The client read too slowly, and too many messages waited for it.',
  'ANSWER-TIMEOUT': 'The client did not answer an offer.',
  'CONNECTION-TIMEOUT': 'The media never connected: a firewall, or an address that the client does not reach.',
  'CROWDED-OUT': 'The node was full, and a newer client took the place before this one had connected.',
  'USER-REPLACED': 'The same user joined again, and the newer connection took the place.',
  'NODE-CRASHED': 'The node crashed or was killed.',
  'END-NOT-STORED': 'The history could not be written, so the end is not known.',
};

/** What a word means that says how a connection ended; `undefined` for words of the operator’s own. */
export const meaning = (word) => MEANINGS[word];

/** Sentences on what was wrong, the gravest first; none for a good connection. */
export function findings(connection) {
  const t = connection.timeline;
  const found = [];
  const say = (holds, sentence) => { const when = span(t, holds); if (when) found.push(sentence(during(when))); };
  if (connection.outcome === 'failed') {
    found.push(`Media never connected (${connection.reason}).`);
    if (connection.setup?.finding) found.push(connection.setup.finding);
    return found;
  }
  if (connection.reason === 'NODE-CRASHED') found.push('The node crashed or was killed while the connection lasted.');
  if (connection.reason === 'END-NOT-STORED') found.push('How the connection ended is not known: the history could not be written.');
  if (connection.setup?.finding) found.push(connection.setup.finding);
  const losses = connection.events.filter((event) => event.event === 'interrupted').length;
  if (losses) found.push(`The connection was lost ${losses === 1 ? 'once' : `${losses} times`}.`);
  // Level 6 is for a direction of which nothing was heard. What did arrive in the same time is not nothing.
  const [sends, receives] = [connection.role !== 'recvonly', connection.role !== 'sendonly'];
  say((i) => sends && t.uplink[i] === 6 && t.received_bps[i] === 0, (when) => `Nothing arrived from the client ${when}.`);
  say((i) => sends && t.uplink[i] === 6 && t.received_bps[i] > 0,
    (when) => `The network from the client was interrupted for a part of the time ${when}.`);
  say((i) => receives && t.downlink[i] === 6 && t.sent_bps[i] > 0 && t.sent_loss[i] >= 0.99,
    (when) => `Nothing arrived at the client ${when}.`);
  say((i) => receives && t.downlink[i] === 6 && t.sent_bps[i] > 0 && t.sent_loss[i] < 0.99,
    (when) => `The client did not report what arrived ${when}.`);
  say((i) => t.sent_loss[i] >= LOSS, (when) => `Up to ${percent(most(t.sent_loss))} of the packets to the client were lost ${when}.`);
  say((i) => t.received_loss[i] >= LOSS,
    (when) => `Up to ${percent(most(t.received_loss))} of the client's own packets were lost ${when}: others saw and heard it badly.`);
  say((i) => t.round_trip_ms[i] >= 300, (when) => `Round trips took up to ${most(t.round_trip_ms)} ms ${when}.`);
  say((i) => t.paused[i] > 0, (when) => `Videos were not sent ${when}, because the network did not carry them.`);
  say((i) => t.reduced[i] > 0, (when) => `Videos came in lower quality than wanted ${when}.`);
  const limits = new Set(t.limit.filter((limit, i) => limit !== 'demand' && t.reduced[i] + t.paused[i] > 0));
  for (const limit of limits) found.push(`The node sent less because ${LIMITS[limit] ?? limit}.`);
  const freezes = t.freezes.reduce((sum, one) => sum + one, 0);
  if (freezes) {
    const seconds = t.frozen_ms.reduce((sum, one) => sum + one, 0) / 1000;
    found.push(`The client saw ${freezes === 1 ? 'one freeze' : `${freezes} freezes`}, ${seconds.toFixed(1)} s in all.`);
  }
  const without = Math.round(connection.without_picture_ms / 1000);
  if (receives && without > 0) found.push(`It had no moving picture for ${clock(without)} in all.`);
  if (connection.setup_ms > 3000) found.push(`It took ${(connection.setup_ms / 1000).toFixed(1)} s to connect.`);
  return found;
}

/** One line on how good the connection was. */
export function headline(connection, found) {
  if (connection.outcome === 'failed') return 'This connection failed.';
  if (!connection.timeline.at_s.length) return 'This connection was too short to say anything about its media.';
  if (found.length) return 'What was wrong:';
  return `Nothing was wrong: at most ${rate(most(connection.timeline.sent_bps))} to the client and `
    + `${rate(most(connection.timeline.received_bps))} from it, without notable loss or delay.`;
}
