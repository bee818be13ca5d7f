// A browser gives the clipboard only to pages of this computer or over HTTPS; elsewhere the older
// way, which copies what is selected, still works.
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("not copied");
}

export default function({ data, parentElement }) {
  const button = parentElement.querySelector(".cp-copy");
  const said = parentElement.querySelector(".cp-copy-said");
  if (button.dataset.text !== data.text) said.textContent = "";
  button.dataset.text = data.text;
  button.textContent = data.label;
  button.onclick = () => copy(data.text).then(
    () => { said.textContent = "Copied."; },
    () => { said.textContent = "The browser refused. Select the text above and copy it."; },
  );
}
