// Who speaks: whose picture to mark, and whose to show large.

const levelMin = 0.02;
/** How long somebody counts as speaking after the last sound. */
const markedMilliseconds = 1_000;
/** How long a large picture stays at least. */
const shownMilliseconds = 2_000;
/** How long another has to be the loudest to take the large picture from somebody who speaks, and from somebody silent. */
const overlapMilliseconds = 2_000;
const pauseMilliseconds = 500;

/** Follows the loudness of several people. */
export class Speaker {
  /** Who speaks now. */
  current = null;
  /** Whose picture to show large: the last who spoke long enough. It stays while all are silent. */
  shown = null;
  #currentUntil = 0;
  #shownAt = 0;
  #heardAt = 0;
  #candidate = null;
  #candidateAt = 0;

  /** `levels` is a map from people to their loudness, 0…1; `now` is in ms. */
  hear(levels, now) {
    const voices = [...levels].filter(([, level]) => level > levelMin).sort((a, b) => b[1] - a[1]);
    const loudest = voices[0]?.[0] ?? null;
    if (loudest !== null) this.#currentUntil = now + markedMilliseconds;
    if (loudest !== null || now >= this.#currentUntil) this.current = loudest;
    if (!levels.has(this.shown)) this.shown = null;
    if (this.shown === null) this.#show(loudest, now);
    else this.#consider(loudest, voices.some(([one]) => one === this.shown), now);
  }

  #consider(loudest, isShownHeard, now) {
    if (isShownHeard) this.#heardAt = now;
    // A pause between two words keeps the candidate.
    if (loudest === null) return;
    if (loudest === this.shown) { this.#candidate = null; return; }
    const isShownSilent = now - this.#heardAt >= markedMilliseconds;
    // While the one in the large picture is silent, it does not matter who of the others speaks.
    if (this.#candidate === null || (loudest !== this.#candidate && !isShownSilent)) this.#candidateAt = now;
    this.#candidate = loudest;
    const needed = isShownSilent ? pauseMilliseconds : overlapMilliseconds;
    if (now - this.#candidateAt >= needed && now - this.#shownAt >= shownMilliseconds) this.#show(loudest, now);
  }

  #show(one, now) {
    this.shown = one;
    this.#shownAt = this.#heardAt = now;
    this.#candidate = null;
  }
}
