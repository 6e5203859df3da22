// The language of the page, and what it says from what the server and the browser report.

import { strings as english } from './strings-en.js';
import { strings as japanese } from './strings-ja.js';

const languages = { en: english, ja: japanese };

/** Of `?lang=` in the address, else the first of the browser's languages that the page has. */
export const language = [new URLSearchParams(location.search).get('lang'), ...navigator.languages]
  .map((one) => one?.split('-')[0].toLowerCase()).find((one) => Object.hasOwn(languages, one)) ?? 'en';
const strings = languages[language];
const plurals = new Intl.PluralRules(language);

/**
 * The text of a key in the page's language. `values` replace its {placeholders}, numbers as the language writes them;
 * `values.count` selects among the forms of a text that has several.
 */
export function t(key, values = {}) {
  const found = strings[key] ?? key;
  const text = typeof found === 'string' ? found : found[plurals.select(values.count)] ?? found.other;
  const shown = (value) => (typeof value === 'number' ? value.toLocaleString(language) : String(value ?? ''));
  return text.replace(/\{(\w+)\}/g, (_, name) => shown(values[name]));
}

/** Whether there is a text of this key. */
export const isText = (key) => Object.hasOwn(strings, key);

/** A time of the day; with the day where it is not today. `at` is in ms. */
export function timeOfDay(at) {
  const time = new Date(at);
  const isToday = time.toDateString() === new Date().toDateString();
  const clock = { hour: 'numeric', minute: '2-digit' };
  return isToday ? time.toLocaleTimeString(language, clock)
    : time.toLocaleString(language, { month: 'long', day: 'numeric', ...clock });
}

/** Fills in the texts that the elements of `root` name, in its templates, too. */
export function fillTexts(root) {
  for (const one of root.querySelectorAll('[data-text]')) one.textContent = t(one.dataset.text);
  for (const one of root.querySelectorAll('[data-label]')) one.setAttribute('aria-label', t(one.dataset.label));
  for (const one of root.querySelectorAll('[data-placeholder]')) one.placeholder = t(one.dataset.placeholder);
  for (const one of root.querySelectorAll('template')) fillTexts(one.content);
}

const oneDecimal = (number) => number.toLocaleString(language, { minimumFractionDigits: 1, maximumFractionDigits: 1 });

export const words = {
  people: (count) => t(count === 1 ? 'people.alone' : 'people.count', { count }),
  /** Why the server sends this browser less than it wants. */
  sending: ({ state, limit, target_bits_per_second: target, demand_bits_per_second: demand } = {}) => {
    if (!state || state === 'unlimited' || limit === 'demand' || !(target < demand)) return '';
    const share = t('sending.share', { target: oneDecimal(target / 1e6), demand: oneDecimal(demand / 1e6) });
    return t(isText(`sending.${limit}`) ? `sending.${limit}` : 'sending.network', { share });
  },
  ownLimit: { cpu: t('limit.cpu'), bandwidth: t('limit.bandwidth') },
  still: t('picture.still'),
  badNetwork: (level) => (level >= 4 ? t('network.bad') : ''),
  /** Levels of the network, 0 unknown, 1 best … 6. A direction without media has none. */
  quality: ({ uplink, downlink }) => {
    const [sent, received] = [uplink, downlink].map((one) => (isText(`level.${one}`) ? t(`level.${one}`) : ''));
    const key = sent && received ? 'network.both' : sent ? 'network.sending' : received ? 'network.receiving' : '';
    return key && t(key, { uplink: sent, downlink: received });
  },
  offline: Object.fromEntries(['timed-out', 'became-audience', 'kicked', 'banned']
    .map((reason) => [reason, (name) => t(`offline.${reason}`, { name })])),
  cannotPlay: (codec) => t('picture.cannotPlay', { codec }),
  insecure: t('media.insecure'),
};

/** A failed request for camera or microphone. */
export const mediaWords = ({ name }) => t({
  NotAllowedError: 'media.refused', SecurityError: 'media.insecure', NotFoundError: 'media.missing',
}[name] ?? 'media.failed');
