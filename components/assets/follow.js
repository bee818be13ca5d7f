const SPEAKERS = ".cp-statement:not(.cp-pending), .cp-turn, .cp-verdict, .st-key-replay-response";
const KEYS = ["PageUp", "PageDown", "Home", "End", "ArrowUp", "ArrowDown"];

function last() {
  return [...document.querySelectorAll(SPEAKERS)].at(-1);
}

function isInView(element) {
  if (!element) return true;
  const place = element.getBoundingClientRect();
  return place.bottom > 0 && place.bottom <= window.innerHeight;
}

// The page may draw the debate a little later than it tells us of it: hence several tries.
function show(mine) {
  if (mine.away || !mine.scrolled) return;
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  last()?.scrollIntoView({ block: "nearest", behavior: calm ? "auto" : "smooth" });
}

export default function({ data, parentElement }) {
  const mine = (parentElement.__follow ??= { moment: null, asked: null, away: false });
  if (!mine.scrolled) {
    mine.resized = () => setTimeout(() => show(mine), 300);
    window.addEventListener("resize", mine.resized);
    mine.scrolled = (event) => {
      if (event.type === "keydown" && !KEYS.includes(event.key)) return;
      mine.away = true;  // until it is seen where the scrolling has led
      clearTimeout(mine.timer);
      mine.timer = setTimeout(() => { mine.away = !isInView(last()); }, 400);
    };
    for (const kind of ["wheel", "touchmove", "keydown"]) {
      document.addEventListener(kind, mine.scrolled, { passive: true });
    }
  }
  const asked = mine.asked;
  if (data.asked !== asked) mine.away = false;
  const isFirst = mine.moment === null;
  const isNew = mine.moment !== data.moment || asked !== data.asked;
  mine.moment = data.moment;
  mine.asked = data.asked;
  // Mounted anew (full screen) after the viewer has asked: that wish still stands.
  if (isNew && (!isFirst || data.asked > 0)) {
    for (const wait of [60, 400, 900, 2500]) setTimeout(() => show(mine), wait);
  }
  return () => {
    clearTimeout(mine.timer);
    for (const kind of ["wheel", "touchmove", "keydown"]) {
      document.removeEventListener(kind, mine.scrolled);
    }
    window.removeEventListener("resize", mine.resized);
    mine.scrolled = null;
  };
}
