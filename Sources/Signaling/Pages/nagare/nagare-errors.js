// Failures: what programs and people are told, and after which of them a client may try again.

/** A failure with a `reason` for programs, a `message` for people, and the result `code` where one exists, else 0. */
export class NagareError extends Error {
  constructor(reason, message, code = 0) {
    super(message);
    Object.assign(this, { name: 'NagareError', reason, code });
  }
}

/** A call with a wrong argument. */
export const badParameter = (message) => new NagareError('BAD-PARAMETER', message, 16974081);

const noMediaPath = 'No network path to the server was found for media. Every firewall on the way must allow the UDP media ' +
  'port (7000 and up by default) or its TCP port, and the server must announce an address that this device can reach.';

/** The ends after which a client must not return by itself, and the `reason` of their `bye`. */
const byes = {
  'KICKED': 'kicked', 'DISCONNECTED-API': 'kicked', 'BANNED': 'banned', 'CHANNEL-TERMINATED': 'terminated',
  'CHANNEL-EXPIRED': 'terminated', 'USER-REPLACED': 'replaced',
};

const sentences = {
  'KICKED': 'You were removed from the channel.',
  'DISCONNECTED-API': 'An operator ended your connection.',
  'BANNED': 'You are banned from this channel.',
  'CHANNEL-TERMINATED': 'An operator closed the channel.',
  'CHANNEL-EXPIRED': 'The channel has reached its maximum age. Join again to open a new one.',
  'USER-REPLACED': 'The same user joined from another place, which took over.',
  'TOKEN-EXPIRED': 'The access token has expired. Join again with a new one.',
  'LIFETIME-EXPIRED': 'The time granted to this connection is over. Join again.',
  'AUTHENTICATION-FAILURE': 'The server did not accept the access token. Check that it is complete, for this channel, ' +
    'and not expired.',
  'AUTHENTICATION-INTERNAL-ERROR': 'The server could not check the access: the service that decides on it failed.',
  'CHANNEL-FULL': 'The channel is full: it has as many members as it may have. Try again later.',
  'PUBLISHERS-FULL': 'There are as many publishers as there may be. Watch, or try again later.',
  'STREAM-BLOCKED': 'An operator blocked publishing to this channel.',
  'ALREADY-PUBLISHING': 'This user publishes to the channel already. Stop there first.',
  'DUPLICATED-CHANNEL-ID': 'This user is in the channel already. Leave there first, or join as another user.',
  'CHANNEL-PROFILE-MISMATCH': 'The channel has another profile. Join with the profile of its other members.',
  'CHANNEL-OF-OTHER-APP': 'The channel belongs to another app. Choose another channel.',
  'ROLE-SET-BY-OPERATOR': 'An operator keeps you in the audience.',
  'UNKNOWN-CODEC-TYPE': 'The server does not support this codec. Choose another one.',
  'SERVER-SHUTDOWN': 'The server is restarting.',
  'TRY-AGAIN-LATER': 'Too many clients join at once.',
  'CONNECTION-CREATED-WAIT-TIMEOUT-ERROR': noMediaPath,
  'ICE-CONNECTION-STATE-FAILED': 'The media connection was lost.',
  'CONNECTION-STATE-FAILED': 'The media connection could not be secured.',
  'PONG-TIMEOUT-ERROR': 'The server heard nothing from this browser for a minute.',
  'ANSWER-TIMEOUT-ERROR': 'This browser did not answer the server in time.',
  'CONNECT-WAIT-TIMEOUT-ERROR': 'This browser did not answer the server in time.',
  'INTERNAL-ERROR': 'The server is full or busy.',
};

/** The result codes of close reasons. The refusal of an app's token starts with its own. */
const resultCodes = {
  'KICKED': 0x02010105, 'TOKEN-EXPIRED': 0x02010205, 'AUTHENTICATION-FAILURE': 0x02010205, 'BANNED': 0x01030202,
  'DUPLICATED-CHANNEL-ID': 0x01010301, 'CHANNEL-PROFILE-MISMATCH': 0x02010903, 'CHANNEL-OF-OTHER-APP': 0x02010203,
  'CHANNEL-EXPIRED': 0x02010203, 'ROLE-SET-BY-OPERATOR': 0x01020201, 'PONG-TIMEOUT-ERROR': 0x0102020c,
  'INTERNAL-ERROR': 0x01030202, 'CHANNEL-FULL': 0x30020903, 'PUBLISHERS-FULL': 0x30020904, 'STREAM-BLOCKED': 0x30020904,
  'ALREADY-PUBLISHING': 0x30020904,
};

/** Refusals with these reasons may be over at the next try. Any other refusal is final. */
const passing = new Set(['AUTHENTICATION-INTERNAL-ERROR', 'SERVER-SHUTDOWN', 'CONNECTION-CREATED-WAIT-TIMEOUT-ERROR',
  'ICE-CONNECTION-STATE-FAILED', 'CONNECTION-STATE-FAILED', 'PONG-TIMEOUT-ERROR', 'ANSWER-TIMEOUT-ERROR',
  'CONNECT-WAIT-TIMEOUT-ERROR', 'PUBLISHERS-FULL', 'INTERNAL-ERROR']);
const finalNormalReasons = new Set([...Object.keys(byes), 'TOKEN-EXPIRED', 'LIFETIME-EXPIRED']);
const refusalCode = 4490;

export const interrupted = { reason: 'MEDIA-LOST', text: 'The media connection was lost.', code: 0x01050202 };
export const silent = { reason: 'SIGNALING-SILENT', text: 'The server has not been heard for a while.', code: 0x0102020c };
export const leftByItself = { reason: 'LEFT', text: '', final: true };

/** What the close of a WebSocket means. Behind the reason of a refused message the node says what is wrong. */
export function failureOfClose({ code, reason: told }, { host, wasOpen, hasToken }) {
  const [, reason = told, detail = ''] = /^([A-Z-]+): (.+)$/.exec(told) ?? [];
  if (!wasOpen) return { reason: 'UNREACHABLE', text: `The server at ${host} does not answer.` };
  // An operator's service and app tokens give a result code and a sentence.
  const numbered = /^(0x[\da-f]{8}|\d{4,})\b[\s:,-]*(.*)$/i.exec(reason);
  const expired = reason === 'TOKEN-EXPIRED';
  let text = sentences[reason] ?? (numbered?.[2] ? numbered[2] : detail || `The server closed the connection: ${reason || code}.`);
  if (reason === 'AUTHENTICATION-FAILURE' && !hasToken) text = 'The server asks for an access token.';
  const final = code === refusalCode ? !passing.has(reason) : finalNormalReasons.has(reason);
  const result = numbered ? Number(numbered[1]) : resultCodes[reason] ?? 0;
  return { reason: reason || `CLOSED-${code}`, text, final, expired, bye: byes[reason], code: result };
}

/** Why there is no network path, from the addresses that the server announced in `sdp`. */
export function unreachableMedia(sdp = '') {
  const addresses = [...sdp.matchAll(/^a=candidate:\S+ \d+ \S+ \d+ (\S+)/gm)].map((found) => found[1]);
  const isLoopback = addresses.length > 0 && addresses.every((one) => /^(127\.|::1$)/.test(one));
  const text = isLoopback && /Firefox\//.test(navigator.userAgent)
    ? 'Firefox sends no media to 127.0.0.1, the only address that the server announced. Start the server with this ' +
      'machine’s network address (--media), or use another browser.'
    : noMediaPath;
  return { reason: 'MEDIA-UNREACHABLE', text, code: 0x01050201 };
}

/** The error of a failed getUserMedia or getDisplayMedia. */
export function mediaError(error) {
  if (error instanceof NagareError) return error;
  const known = {
    NotAllowedError: ['MEDIA-REFUSED', 'Permission for camera and microphone was refused. Allow it in the address bar ' +
      'and try again.'],
    SecurityError: ['MEDIA-INSECURE', 'Browsers allow camera and microphone only on https:// and on localhost.'],
    NotFoundError: ['MEDIA-MISSING', 'No camera or microphone was found on this device.'],
    OverconstrainedError: ['MEDIA-MISSING', 'The chosen camera or microphone is not there any more.'],
    NotReadableError: ['MEDIA-BUSY', 'The camera or microphone is in use by another program, or the system denies access.'],
    AbortError: ['MEDIA-BUSY', 'The camera or microphone is in use by another program, or the system denies access.'],
  }[error?.name];
  return new NagareError(...(known ?? ['MEDIA-FAILED', `The camera or microphone could not be started: ${error?.message}`]));
}
