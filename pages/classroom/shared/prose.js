// The one way in which a lesson's HTML gets into a page of the class. The server has sanitised it already; here it is parsed in a document
// that runs nothing and loads nothing, and built anew from a list of what is allowed. No markup is ever assigned to a node of the page.

const TAGS = ["A", "B", "BLOCKQUOTE", "BR", "CODE", "EM", "H3", "H4", "I", "LI", "OL", "P", "PRE", "STRONG", "SUB", "SUP", "TABLE", "TBODY", "TD", "TH", "THEAD", "TR", "UL"];
const SILENT = ["SCRIPT", "STYLE", "TEMPLATE", "IFRAME", "OBJECT", "SVG", "MATH", "NOSCRIPT"];

export function putProse(node, text) {
  const parsed = new DOMParser().parseFromString(text ?? "", "text/html");
  node.replaceChildren();
  copyInto(node, parsed.body);
  return node;
}

function copyInto(target, source) {
  for (const child of source.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) target.append(child.data);
    if (child.nodeType !== Node.ELEMENT_NODE || SILENT.includes(child.nodeName.toUpperCase())) continue;
    if (!TAGS.includes(child.nodeName)) {
      copyInto(target, child); // what is not known keeps its words and loses its tag
      continue;
    }
    const made = document.createElement(child.nodeName);
    const href = child.nodeName === "A" ? child.getAttribute("href") : null;
    if (/^https?:\/\//i.test(href ?? "")) Object.assign(made, { href, target: "_blank", rel: "noopener noreferrer" });
    copyInto(made, child);
    target.append(made);
  }
}
