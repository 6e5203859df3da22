// Sentences about several people at once.

import { t } from './words.js';

/** How long names are gathered: when a call begins, many come within a moment. */
const gatherMilliseconds = 600;

/**
 * Names that belong into one sentence, which `tell(text)` gets. `key` is its text for one name, and `key`Many for a name and a
 * `count` of others.
 */
export class Gathering {
  #names = [];
  #timer = null;
  #key;
  #tellText;

  constructor(key, tell) {
    this.#key = key;
    this.#tellText = tell;
  }

  add(name) {
    this.#names.push(name);
    this.#timer ??= setTimeout(() => this.#tell(), gatherMilliseconds);
  }

  #tell() {
    const [name, ...others] = this.#names;
    [this.#names, this.#timer] = [[], null];
    this.#tellText(others.length ? t(`${this.#key}Many`, { name, count: others.length }) : t(this.#key, { name }));
  }
}
