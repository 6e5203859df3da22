// A worker that only sends ticks: browsers throttle the timers of a page in the background to one a second, which would freeze
// a synthetic picture that the page publishes.
let timer;
onmessage = ({ data: milliseconds }) => {
  clearInterval(timer);
  if (milliseconds > 0) timer = setInterval(() => postMessage(0), milliseconds);
};
