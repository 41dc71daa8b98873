// A lesson's drawing as part of the page: it takes its colours and letters from there, follows a change of the theme, stands still for
// those who ask for less motion, and is read out with its description. `lessons.svg` has written it anew from a list of what is allowed;
// here nothing of it runs or loads either: it is parsed in a template, stripped of what could, and put into a tree of its own, whose
// style sheets are adopted because the page's policy forbids styles in the markup.

const NOT_DRAWN = ["script", "foreignobject", "iframe", "object", "embed", "image", "img", "a"];

// `svgText` into `parent`, which becomes the host of its tree.
export function putDrawing(parent, svgText) {
  const template = document.createElement("template");
  template.innerHTML = svgText ?? ""; // inert, and never itself a part of the page
  const fragment = template.content;
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: "open" });
  const sheets = [":host { display: block; } svg { display: block; width: 100%; height: auto; }"];
  const styled = [];
  for (const node of [...fragment.querySelectorAll("*")]) {
    if (node.localName === "style") sheets.push(node.textContent);
    if (node.localName === "style" || NOT_DRAWN.includes(node.localName.toLowerCase())) {
      node.remove();
      continue;
    }
    for (const { name, value } of [...node.attributes]) {
      const reaches = /(^|:)href$/i.test(name) && !value.trim().startsWith("#");
      if (/^on/i.test(name) || reaches || name === "style") node.removeAttribute(name);
      if (name === "style") styled.push([node, value]);
    }
  }
  const svg = fragment.querySelector("svg");
  root.replaceChildren(...(svg ? [svg] : []));
  root.adoptedStyleSheets = sheets.map((text) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    return sheet;
  });
  for (const [node, value] of styled) node.style.cssText = value;
}
