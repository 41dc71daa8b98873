// Pictures that are not drawn here: the five silhouettes, copied from the page, where the server has drawn them, and a lesson's drawing.

export function picture(name) {
  const template = document.getElementById(`sil-${name}`);
  return template ? template.content.cloneNode(true) : document.createDocumentFragment();
}

// A lesson's drawing as a picture: an <img> runs no script, fetches nothing, and its styles cannot leave it.
export function drawing(svgText, alt, { dark = false } = {}) {
  const image = new Image();
  const [width, height] = (/viewBox="0 0 ([\d.]+) ([\d.]+)"/.exec(svgText) ?? [0, 550, 500]).slice(1).map(Number);
  const look = `color:${dark ? "#E8EBF0" : "#1B1F27"};color-scheme:${dark ? "dark" : "light"};font-family:'Source Sans','Liberation Sans',sans-serif`;
  // Inside an image nothing is inherited from the page, so a frame says what colour text has there.
  const framed = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" style="${look}">${svgText}</svg>`;
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(framed)}`;
  image.width = width;
  image.height = height;
  image.alt = alt ?? "";
  return image;
}
