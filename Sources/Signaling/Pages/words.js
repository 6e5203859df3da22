// The language of the page, and what it says from what the server and the browser report.

import { strings as english } from './strings-en.js';
import { strings as japanese } from './strings-ja.js';
import { readToken } from './token.js';

const languages = { en: english, ja: japanese };

const languageOf = (tag) => tag?.split('-')[0].toLowerCase();
const isKnown = (tag) => Object.hasOwn(languages, languageOf(tag));
const asked = languageOf(new URLSearchParams(location.search).get('lang'));
/**
 * By whose habits times and numbers are written, such as `en-GB`: `?lang=` of the address, else the first of the browser's
 * languages that the page has.
 */
export const locale = isKnown(asked) ? asked : navigator.languages.find(isKnown) ?? 'en';
export const language = languageOf(locale);
const strings = languages[language];
const plurals = new Intl.PluralRules(language);

/** Whether there is a text of this key. */
export const isText = (key) => Object.hasOwn(strings, key);

/**
 * The text of a key in the page's language. `values` replace its {placeholders}, numbers as the language writes them;
 * `values.count` selects among the forms of a text that has several.
 */
export function t(key, values = {}) {
  const found = isText(key) ? strings[key] : key;
  const text = typeof found === 'string' ? found : found[plurals.select(values.count)] ?? found.other;
  const shown = (value) => (typeof value === 'number' ? value.toLocaleString(locale) : String(value ?? ''));
  return text.replace(/\{(\w+)\}/g, (_, name) => shown(values[name]));
}

/** Fills in the texts that the elements of `root` and of its templates name. */
export function fillTexts(root) {
  for (const one of root.querySelectorAll('[data-text]')) one.textContent = t(one.dataset.text);
  for (const one of root.querySelectorAll('[data-label]')) one.setAttribute('aria-label', t(one.dataset.label));
  for (const one of root.querySelectorAll('[data-placeholder]')) one.placeholder = t(one.dataset.placeholder);
  for (const one of root.querySelectorAll('template')) fillTexts(one.content);
}

/** The time of day of a moment in ms since 1970, with its date where that is not today. */
export function timeOfDay(at) {
  const time = new Date(at);
  const clock = { hour: 'numeric', minute: '2-digit' };
  const isToday = time.toDateString() === new Date().toDateString();
  return isToday ? time.toLocaleTimeString(locale, clock)
    : time.toLocaleString(locale, { month: 'long', day: 'numeric', ...clock });
}

// ---- what goes on in a call -----------------------------------------------------------------------------------------

const oneDecimal = (number) => number.toLocaleString(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 });

export const words = {
  people: (count) => t(count === 1 ? 'people.alone' : 'people.count', { count }),
  /** Why the server sends this browser less than it wants. */
  sending: ({ state, limit, target_bits_per_second: target, demand_bits_per_second: demand } = {}) => {
    if (!state || state === 'unlimited' || limit === 'demand' || !(target < demand)) return '';
    const share = t('sending.share', { target: oneDecimal(target / 1e6), demand: oneDecimal(demand / 1e6) });
    return t(isText(`sending.${limit}`) ? `sending.${limit}` : 'sending.network', { share });
  },
  still: t('picture.still'),
  /** Levels of the network, 0 unknown, 1 best … 6. A direction without media has none. */
  quality: ({ uplink, downlink }) => {
    const [sent, received] = [uplink, downlink].map((one) => (isText(`level.${one}`) ? t(`level.${one}`) : ''));
    const key = sent && received ? 'network.both' : sent ? 'network.sending' : received ? 'network.receiving' : '';
    return key && t(key, { uplink: sent, downlink: received });
  },
  offline: Object.fromEntries(['timed-out', 'became-audience', 'kicked', 'banned']
    .map((reason) => [reason, (name) => t(`offline.${reason}`, { name })])),
  cannotPlay: (codec) => t('picture.cannotPlay', { codec }),
};

// ---- failures -------------------------------------------------------------------------------------------------------

/** Reasons that mean the same to people. */
const sameReasons = {
  'CONNECTION-CREATED-WAIT-TIMEOUT-ERROR': 'MEDIA-UNREACHABLE', 'ICE-CONNECTION-STATE-FAILED': 'MEDIA-LOST',
  'PONG-TIMEOUT-ERROR': 'MEDIA-LOST', 'SIGNALING-SILENT': 'MEDIA-LOST', 'SIGNALING-LOST': 'MEDIA-LOST',
  'ANSWER-TIMEOUT-ERROR': 'MEDIA-LOST', 'CONNECT-WAIT-TIMEOUT-ERROR': 'MEDIA-LOST', 'JOIN-TIMEOUT': 'TIMEOUT',
  'REQUESTS-FULL': 'CHANGES-TOO-FREQUENT', 'ROLE-NOT-AVAILABLE': 'NOT-PERMITTED', 'CHANNEL-NOT-INTERACTIVE': 'UNSUPPORTED',
  'REPLACED': 'USER-REPLACED', 'INVALID-VIDEO-FORMAT': 'UNKNOWN-CODEC-TYPE', 'INVALID-AUDIO-FORMAT': 'UNKNOWN-CODEC-TYPE',
};
const tokenCode = /^0x0*2010205\b/i;

/** Whether the server refused the access token, or asks for one. */
export const isTokenRefused = (reason = '') => reason === 'AUTHENTICATION-FAILURE' || reason === 'TOKEN-EXPIRED'
  || tokenCode.test(reason);

/**
 * A failure in words for people. `reason` and `text` are those of the module; `token` is the access token, which tells when it
 * ended. The details are for developers, and go to the console.
 */
export function failureText({ reason = '', text = '' }, token = '') {
  const { endsAt } = readToken(token);
  const isOver = reason === 'TOKEN-EXPIRED' || endsAt <= Date.now();
  if (isTokenRefused(reason) && endsAt && isOver) return t('failure.expired', { time: timeOfDay(endsAt) });
  if (reason === 'AUTHENTICATION-FAILURE' && !token) return t('failure.tokenMissing');
  const known = isTokenRefused(reason) && reason !== 'TOKEN-EXPIRED' ? 'AUTHENTICATION-FAILURE' : sameReasons[reason] ?? reason;
  if (known === 'MEDIA-UNREACHABLE' && /Firefox\//.test(navigator.userAgent)
    && ['localhost', '127.0.0.1', '[::1]'].includes(location.hostname)) return t('failure.firefoxLoopback');
  if (isText(`failure.${known}`)) return t(`failure.${known}`);
  console.warn('Nagare:', reason, text);
  // A service that decides on the access gives a sentence of its own, which is for people; a word of a protocol is not.
  const said = reason.replace(/^(0x[\da-f]+|\d{4,})\b[\s:,-]*/i, '');
  return /\s/.test(said) ? t('failure.said', { text: said }) : t('failure.unknown');
}

const reasonsOfMedia = {
  NotAllowedError: 'MEDIA-REFUSED', SecurityError: 'MEDIA-INSECURE', NotFoundError: 'MEDIA-MISSING',
  OverconstrainedError: 'MEDIA-MISSING', NotReadableError: 'MEDIA-BUSY', AbortError: 'MEDIA-BUSY',
};

/** An error of the module, or of a request for camera, microphone or screen, in words for people. */
export const errorText = (error) => failureText({ reason: error.reason ?? reasonsOfMedia[error.name] ?? 'MEDIA-FAILED',
  text: error.message });
export const mediaWords = errorText;
