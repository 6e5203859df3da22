// What the page says, from what the server and the browser report.

const levels = ['unknown', 'excellent', 'good', 'poor', 'bad', 'very bad', 'disconnected'];

export const words = {
  people: (count) => (count === 1 ? 'You are alone here' : `${count} people`),
  /** Why the server sends this browser less than it wants. */
  sending: ({ state, limit, target_bits_per_second: target, demand_bits_per_second: demand } = {}) => {
    if (!state || state === 'unlimited' || limit === 'demand' || !(target < demand)) return '';
    const share = `${(target / 1e6).toFixed(1)} of ${(demand / 1e6).toFixed(1)} Mbit/s`;
    if (limit === 'receiver') return `Your browser accepts ${share}.`;
    if (limit === 'maximum') return `The server sends you at most ${share}.`;
    if (limit === 'silence') return `Your network reports nothing: the server sends ${share}.`;
    return `Your network carries ${share}.`;
  },
  ownLimit: {
    cpu: 'This device is too slow for a larger picture.',
    bandwidth: 'Your network is too slow for a larger picture.',
  },
  still: 'No picture arrives now.',
  badNetwork: (level) => (level >= 4 ? 'Your network is bad now.' : ''),
  /** Levels of the network, 0 unknown, 1 best … 6. A direction without media has none. */
  quality: ({ uplink, downlink }) => {
    const parts = [['sending', uplink], ['receiving', downlink]].filter(([, level]) => level > 0 && level in levels);
    return parts.length ? `Your network: ${parts.map(([what, level]) => `${what} ${levels[level]}`).join(', ')}` : '';
  },
  offline: {
    'timed-out': (name) => `The connection of ${name} was lost.`,
    'became-audience': (name) => `${name} left the stage.`,
    'kicked': (name) => `An operator removed ${name}.`,
    'banned': (name) => `An operator banned ${name}.`,
  },
  cannotPlay: (codec) => `This browser cannot play ${codec}, the codec of this video. Use another browser, or ask the sender ` +
    'to choose another codec.',
  insecure: 'Browsers allow camera and microphone only on https:// and on localhost.',
};

/** A failed request for camera or microphone. */
export const mediaWords = ({ name }) => ({
  NotAllowedError: 'Permission for camera and microphone was refused.',
  SecurityError: words.insecure,
  NotFoundError: 'No camera or microphone was found on this device.',
}[name] ?? 'The camera or microphone could not be started.');
