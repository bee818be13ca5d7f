export default function({ parentElement }) {
  const button = parentElement.querySelector(".cp-full");
  const page = document.documentElement;
  const label = () => {
    button.textContent = document.fullscreenElement ? "Leave full screen" : "Full screen";
    page.toggleAttribute("data-presenting", Boolean(document.fullscreenElement));
  };
  button.onclick = async () => {
    if (document.fullscreenElement) await document.exitFullscreen();
    else await page.requestFullscreen();
    label();
  };
  document.addEventListener("fullscreenchange", label);
  label();
  return () => {
    document.removeEventListener("fullscreenchange", label);
    page.removeAttribute("data-presenting");
  };
}
