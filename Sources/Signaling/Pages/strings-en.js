// What the page says in English. strings-ja.js has the same keys.
//
// A text is a string with {placeholders}. Where a number `count` decides, it is an object of the forms that Intl.PluralRules
// names. Views say `t(key, values)`, and index.html says data-text, data-label and data-placeholder.

export const strings = {
  // ---- everywhere
  'state.idle': 'Not connected',
  'state.connecting': 'Connecting …',
  'state.disconnected': 'Disconnected',
  'button.close': 'Close',
  'sound.turnOn': 'Sound is off. Turn it on',

  // ---- the call: the view of a channel, and of a call of two
  'people.alone': 'You are alone here',
  'people.count': '{count} people',
  'sending.receiver': 'Your browser accepts {share}.',
  'sending.maximum': 'The server sends you at most {share}.',
  'sending.silence': 'Your network reports nothing: the server sends {share}.',
  'sending.network': 'Your network carries {share}.',
  'sending.share': '{target} of {demand} Mbit/s',
  'limit.cpu': 'This device is too slow for a larger picture.',
  'limit.bandwidth': 'Your network is too slow for a larger picture.',
  'picture.still': 'No picture arrives now.',
  'picture.cannotPlay': 'This browser cannot play {codec}, the codec of this video. Use another browser, or ask the sender to choose another codec.',
  'network.bad': 'Your network is bad now.',
  'network.both': 'Your network: sending {uplink}, receiving {downlink}',
  'network.sending': 'Your network: sending {uplink}',
  'network.receiving': 'Your network: receiving {downlink}',
  'level.1': 'excellent',
  'level.2': 'good',
  'level.3': 'poor',
  'level.4': 'bad',
  'level.5': 'very bad',
  'level.6': 'disconnected',
  'offline.timed-out': 'The connection of {name} was lost.',
  'offline.became-audience': '{name} left the stage.',
  'offline.kicked': '{name} was removed.',
  'offline.banned': '{name} was banned.',

  // ---- camera and microphone
  'media.refused': 'Permission for camera and microphone was refused.',
  'media.insecure': 'Browsers allow camera and microphone only on https:// and on localhost.',
  'media.missing': 'No camera or microphone was found on this device.',
  'media.failed': 'The camera or microphone could not be started.',
};
