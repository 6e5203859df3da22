// Icons, and buttons whose icon and label say what they do next.

const namespace = 'http://www.w3.org/2000/svg';

/** An icon of index.html. */
export function icon(name) {
  const picture = document.createElementNS(namespace, 'svg');
  picture.setAttribute('class', 'icon');
  picture.setAttribute('aria-hidden', 'true');
  picture.append(document.createElementNS(namespace, 'use'));
  setIcon(picture, name);
  return picture;
}

/** Changes the icon inside of an element. */
export function setIcon(root, name) {
  const use = root.querySelector('use');
  const address = `#icon-${name}`;
  if (use.getAttribute('href') !== address) use.setAttribute('href', address);
}

/** Changes a button of the bar. `tone` is `off` for what others do not get, and `on` for what is under way. */
export function setControl(button, { icon: name, label, tone = '' }) {
  const text = button.querySelector('.label');
  if (text.textContent !== label) text.textContent = label;
  setIcon(button, name);
  button.dataset.tone = tone;
}

/** A number at the corner of a button. */
export function setBadge(badge, count) {
  badge.hidden = !count;
  badge.textContent = count > 99 ? '99+' : count || '';
}
