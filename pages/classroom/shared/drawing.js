// A lesson's drawing as part of the page: it takes its colours and letters from there, follows a change of the theme, stands still for
// those who ask for less motion, and is read out with its description. `lessons.svg` has written it anew from a list of what is allowed;
// here nothing of it runs or loads either: it is parsed in a template, stripped of what could, and put into a tree of its own. The
// page's policy forbids styles in markup, even in markup that is only parsed: they are renamed before, and applied after, one by one.

const NOT_DRAWN = ["script", "style", "foreignobject", "iframe", "object", "embed", "image", "img", "a"];

// `svgText` into `parent`, in place of what is there. `alt` is what it shows, for browsers that can only have it as a picture.
export function putDrawing(parent, svgText, alt = "") {
  if (!("adoptedStyleSheets" in Document.prototype)) {
    const image = Object.assign(new Image(), { alt, src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText)}` });
    parent.replaceChildren(image);
    return;
  }
  const template = document.createElement("template");
  // Inert, and never itself a part of the page. In what `lessons.svg` writes, a tag holds no other ">".
  template.innerHTML = (svgText ?? "").replace(/<style>/g, "<desc data-sheet>").replace(/<\/style>/g, "</desc>").replace(/<[^>]+>/g, (tag) => tag.replace(/\sstyle=/g, " data-style="));
  const fragment = template.content;
  const host = document.createElement("div");
  parent.replaceChildren(host);
  const root = host.attachShadow({ mode: "open" });
  const sheets = [":host { display: block; } svg { display: block; width: 100%; height: auto; }"];
  const styled = [];
  for (const node of [...fragment.querySelectorAll("*")]) {
    if (node.hasAttribute("data-sheet")) sheets.push(node.textContent);
    if (node.hasAttribute("data-sheet") || NOT_DRAWN.includes(node.localName.toLowerCase())) {
      node.remove();
      continue;
    }
    for (const { name, value } of [...node.attributes]) {
      const reaches = /(^|:)href$/i.test(name) && !value.trim().startsWith("#");
      if (/^on/i.test(name) || reaches || name === "data-style") node.removeAttribute(name);
      if (name === "data-style") styled.push([node, value]);
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
