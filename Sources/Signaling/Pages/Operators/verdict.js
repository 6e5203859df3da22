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
  say((i) => t.uplink[i] === 6 || t.downlink[i] === 6, (when) => `Nothing arrived ${when}.`);
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
