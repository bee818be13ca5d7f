// Puts the cursor into a field as soon as what holds it is opened.
export default function({ data }) {
  const focus = () => {
    const field = document.querySelector(`.st-key-${data.field} input`);
    if (field && document.activeElement !== field) field.select();
  };
  // What opens takes the focus itself, a little later than it draws the field.
  const timers = [50, 150, 300].map((wait) => setTimeout(focus, wait));
  return () => timers.forEach(clearTimeout);
}
