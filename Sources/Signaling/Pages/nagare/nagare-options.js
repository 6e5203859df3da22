// What an application joins with: options, and the tokens that they hold.

import { badParameter } from './nagare-errors.js';
import { chatLabel } from './nagare-messages.js';
import { Addresses } from './nagare-reconnect.js';

/** The fields of an app's token in its single-parameter form (base64 of JSON); `null` for any other token. */
function appTokenOf(text) {
  try {
    const bytes = Uint8Array.from(atob(text.trim().replaceAll('-', '+').replaceAll('_', '/')), (one) => one.charCodeAt(0));
    const fields = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    return typeof fields?.appid === 'string' ? fields : null;
  } catch {
    return null;
  }
}

/** The token as the node takes it in `metadata.access_token`, with the channel and the user that it names. */
export function credentialOf(options) {
  const { token, appId } = options;
  if (appId) {
    const { channel, user, nonce = '', timestamp } = options;
    if (!token) throw badParameter('“token” is missing: with “appId”, give the token that your server computed.');
    if (!(Number(timestamp) > 0)) throw badParameter('“timestamp” must be the token’s expiry in seconds since 1970.');
    const fields = { appid: appId, channelid: channel, userid: user, nonce, timestamp: Number(timestamp), token };
    return { accessToken: fields, channel, user };
  }
  if (!token) return { accessToken: null };
  if (typeof token !== 'string') throw badParameter('“token” must be a string.');
  const fields = appTokenOf(token);
  return { accessToken: token.trim(), channel: fields?.channelid, user: fields?.userid };
}

function signalingURL(given) {
  let url;
  try {
    url = new URL(given ?? '/signaling', given ? globalThis.location?.href : import.meta.url);
  } catch {
    throw badParameter(`“url” is not a URL: ${given}`);
  }
  url.protocol = { 'http:': 'ws:', 'https:': 'wss:' }[url.protocol] ?? url.protocol;
  if (!['ws:', 'wss:'].includes(url.protocol)) throw badParameter('“url” must start with wss:// or https://.');
  if (url.pathname === '/') url.pathname = '/signaling';
  return url.href;
}

const addressesMax = 64;
/** The addresses that `url` names: one, a list, or the default. */
function addressesOf(given) {
  const urls = Array.isArray(given) ? given : [given];
  if (urls.length < 1 || urls.length > addressesMax || (urls.length > 1 && urls.includes(undefined))) {
    throw badParameter(`“url” must be an address, or a list of 1 to ${addressesMax} addresses.`);
  }
  return new Addresses(urls.map(signalingURL));
}

const labelsMax = 64;
const labelBytesMax = 64;
/** The labels of messages that the server is asked for; `undefined` for none. */
function labelsOf(messages) {
  const labels = messages === true ? [chatLabel] : messages || [];
  const isLabel = (one) => typeof one === 'string' && /^#./su.test(one)
    && new TextEncoder().encode(one).length <= labelBytesMax;
  if (!Array.isArray(labels) || !labels.every(isLabel) || labels.length > labelsMax || new Set(labels).size < labels.length) {
    throw badParameter('“messages” must be true, false, or a list of labels that each start with “#”.');
  }
  return labels.length ? labels : undefined;
}

/** The complete options of `Channel`, from a token or from what the application gave. */
export function normalized(given) {
  const options = typeof given === 'string' ? { token: given } : { ...given };
  const credential = credentialOf(options);
  const channel = options.channel ?? credential.channel;
  const user = options.user ?? credential.user ?? `guest-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;
  if (!channel) throw badParameter('“channel” is missing, and the token names none.');
  if (credential.channel && credential.channel !== channel) throw badParameter('The token is for another channel.');
  if (credential.user && credential.user !== user) throw badParameter('The token is for another user.');
  const choice = (name, ...values) => {
    if (options[name] !== undefined && !values.includes(options[name])) {
      throw badParameter(`“${name}” must be ${values.join(' or ')}.`);
    }
  };
  choice('role', 'host', 'audience');
  choice('profile', 'communication', 'interactive');
  if (options.role === 'host' && options.canPublish === false) throw badParameter('A host needs “canPublish”.');
  return {
    autoPublish: true, autoSubscribe: true, canPublish: true, simulcast: false, joinTimeout: 30, ...options,
    addresses: addressesOf(options.url), channel, user, accessToken: credential.accessToken, messages: labelsOf(options.messages),
  };
}
