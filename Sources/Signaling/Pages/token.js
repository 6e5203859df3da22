// What an access token says of itself. Only the server can tell whether it is valid.

const objectOf = (base64) => {
  try {
    const bytes = Uint8Array.from(atob(base64.replaceAll('-', '+').replaceAll('_', '/')), (one) => one.charCodeAt(0));
    const found = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    return found && typeof found === 'object' ? found : null;
  } catch {
    return null;
  }
};

/**
 * The end of a token in ms since 1970, `null` without one that it tells, and whether it names a person: then nobody else can
 * join with it. A JWT and an app's token can be read; any other token is a secret word.
 */
export function readToken(token = '') {
  const parts = token.trim().split('.');
  const claims = (parts.length === 3 ? objectOf(parts[1]) : objectOf(token.trim())) ?? {};
  const end = Number(claims.exp ?? claims.timestamp);
  return {
    endsAt: end > 0 ? end * 1000 : null,
    isPersonal: [claims.sub, claims.client_id, claims.userid].some((one) => typeof one === 'string' && one !== ''),
  };
}
