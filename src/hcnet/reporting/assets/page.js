"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const VIEWS = { image: "Image", parts: "Parts", made: "Reconstruction", errors: "Errors" };
const MISSED = 1, ADDED = 2;

// What is chosen is also in the address, so that it survives reading the file again.
const chosen = { image: 0, part: null, view: "parts", pixel: null };

function unpack(text, n) {
  const values = new Uint16Array(n);
  let end = 0;
  for (const [, letter, length] of text.matchAll(/([^0-9a-z])([0-9a-z]+)/g)) {
    const next = end + parseInt(length, 36);
    values.fill(letter.codePointAt(0) - 0x100, end, next);
    end = next;
  }
  return values;
}

// Colours as the four bytes of a canvas in one number: pages have millions of pixels.
const packed = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
const palette = data.palette.map(rgb);
const faint = (colour) => colour.map((one) => Math.round(255 - (255 - one) * 0.35));
const FULL = palette.map(packed), FAINT = palette.map((colour) => packed(faint(colour)));
const [PALE, MISSED_INK, ADDED_INK, AMBER] = data.marks.map((hex) => packed(rgb(hex)));
const PAPER = packed([255, 255, 255]), BLACK = packed([0, 0, 0]);
const colourOf = (part) => palette[part % palette.length];

// Every part with its pixels, by layer as shown and by its own number.
const parts = data.layers.map((layer) => {
  const byNumber = new Map();
  for (const part of layer.parts) {
    const [h, w] = part.size;
    const values = unpack(part.pixels, h * w);
    const on = [];
    values.forEach((value, k) => { if (value) on.push([Math.floor(k / w), k % w]); });
    byNumber.set(part.number, { ...part, values, on });
  }
  return byNumber;
});

const images = data.images.map((image) => ({ ...image, ready: null }));

function opened(k) {
  const image = images[k];
  if (image.ready) return image.ready;
  const [h, w] = image.size, n = h * w;
  const nodes = image.nodes.map(([layer, part, row, column, pixels]) => {
    const own = [];
    if (pixels === null) {
      for (const [i, j] of parts[layer].get(part).on) {
        const r = row + i, c = column + j;
        if (r >= 0 && r < h && c >= 0 && c < w) own.push(r * w + c);
      }
    } else {
      unpack(pixels, n).forEach((on, k) => { if (on) own.push(k); });
    }
    return { layer, part, row, column, own };
  });
  image.ready = {
    h, w, nodes, seen: unpack(image.seen, n), made: unpack(image.made, n),
    errors: unpack(image.errors, n), missing: image.missing ? unpack(image.missing, n) : null,
  };
  return image.ready;
}

function mixed(bits) {
  if (!bits) return PAPER;
  if (data.channels === 1 || data.channels > data.inks.length) return BLACK;
  const colour = [255, 255, 255];
  data.inks.forEach((one, k) => {
    if (bits & (1 << k)) one.forEach((value, c) => { colour[c] *= value / 255; });
  });
  return packed(colour.map(Math.round));
}
const INK = Array.from({ length: 8 }, (_, bits) => mixed(bits));

// Colours of all pixels, enlarged onto a canvas.
function paint(canvas, h, w, scale, colours) {
  const small = document.createElement("canvas");
  small.width = w; small.height = h;
  const bytes = new Uint8ClampedArray(colours.buffer);
  small.getContext("2d").putImageData(new ImageData(bytes, w, h), 0, 0);
  canvas.width = Math.ceil(w * scale); canvas.height = Math.ceil(h * scale);
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = scale < 1;
  context.drawImage(small, 0, 0, w * scale, h * scale);
  return context;
}

function drawPart(canvas, part, scale) {
  const [h, w] = part.size;
  // The value past all parts stands for pixels of several.
  const several = parts[parts.length - 1].size + 1;
  const colours = Uint32Array.from(part.values, (value) => {
    if (!value) return PAPER;
    return value >= several ? BLACK : FULL[(value - 1) % FULL.length];
  });
  paint(canvas, h, w, scale, colours);
}

const same = (a, b) => a !== null && b !== null && a.layer === b.layer && a.part === b.part;

// Names that a person types: those of the model first, then those of this browser.
const nameable = data.layers.flatMap((layer) => layer.parts).filter((part) => part.label !== null);
const names = new Map(nameable.map((part) => [part.number, part.label]));
const STORE = `hcnet names ${data.parts_key}`;
try {
  for (const [part, name] of JSON.parse(localStorage.getItem(STORE) || "[]")) {
    if (names.has(part)) names.set(part, String(name));
  }
} catch { /* a browser may keep nothing */ }

function countNames() {
  const typed = [...names.values()].filter(Boolean).length;
  at("named").textContent = `${typed} of ${names.size} parts have names`;
}

function typeName(part, name) {
  names.set(part, name);
  for (const field of document.querySelectorAll(`input[data-part="${part}"]`)) {
    if (field.value !== name) field.value = name;
  }
  try { localStorage.setItem(STORE, JSON.stringify([...names])); } catch { /* as above */ }
  countNames();
}

// A row per part that has a name, or had one in the model.
function namesFile() {
  const quoted = (name) => (/[",]|^\s|\s$/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);
  const rows = nameable.filter((part) => part.label || names.get(part.number))
    .map((part) => `${part.number},${quoted(names.get(part.number))}\n`);
  return `part,name\n${rows.join("")}`;
}

function saveNames() {
  const link = document.createElement("a");
  link.download = "names.csv";
  link.href = `data:text/csv;charset=utf-8,${encodeURIComponent(namesFile())}`;
  link.click();
}

function nameField(layer, part) {
  const field = document.createElement("input");
  field.dataset.part = part.number;
  field.setAttribute("aria-label", `name of ${part.name}`);
  Object.assign(field, { value: names.get(part.number), maxLength: 40, autocomplete: "off",
    spellcheck: false, autocapitalize: "off", dir: "auto" });
  field.addEventListener("input", () => typeName(part.number, field.value));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") choosePart({ layer, part: part.number });
  });
  return field;
}

function card(layer, part, scale, words) {
  const box = document.createElement("div");
  box.className = "card";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "part";
  button.dataset.layer = layer;
  button.dataset.part = part.number;
  const canvas = document.createElement("canvas");
  drawPart(canvas, part, scale);
  button.append(canvas);
  for (const text of words) {
    const line = document.createElement("span");
    line.textContent = text;
    button.append(line);
  }
  button.setAttribute("aria-pressed", String(same(chosen.part, { layer, part: part.number })));
  button.addEventListener("click", () => choosePart({ layer, part: part.number }));
  box.append(button);
  if (part.label !== null) {
    button.tabIndex = -1; // Tab goes from name to name, and Enter there is a click here
    box.append(nameField(layer, part));
  }
  return box;
}

function markChosen() {
  for (const button of document.querySelectorAll(".part")) {
    const { layer, part } = button.dataset;
    const own = { layer: Number(layer), part: Number(part) };
    button.setAttribute("aria-pressed", String(same(chosen.part, own)));
  }
}

function drawLayers() {
  const box = at("layers");
  box.replaceChildren();
  const scale = Number(at("part-size").value);
  data.layers.forEach((layer, k) => {
    if (data.layers.length > 1) {
      const title = document.createElement("h3");
      title.textContent = layer.name;
      box.append(title);
    }
    const row = document.createElement("div");
    row.className = "parts";
    for (const shown of layer.parts) {
      const part = parts[k].get(shown.number);
      const words = [part.name];
      if (part.count !== null) words.push(`${part.count.toLocaleString("en")}×`);
      if (part.made_of) words.push(part.made_of);
      row.append(card(k, part, scale, words));
    }
    box.append(row);
  });
}

function choosePart(part) {
  const off = same(chosen.part, part);
  chosen.part = off ? null : part;
  if (!off && images.length) {
    chosen.view = "parts";
    const here = (k) => images[k].nodes.some(([l, p]) => l === part.layer && p === part.part);
    if (!here(chosen.image)) {
      const first = images.findIndex((_, k) => here(k));
      if (first >= 0) { chosen.image = first; chosen.pixel = null; }
    }
  }
  drawAll();
}

// What the chosen view shows, a colour per pixel.
function colouring(image) {
  const { seen, made, errors, missing } = image, colours = new Uint32Array(seen.length);
  for (let k = 0; k < colours.length; k += 1) {
    if (chosen.view === "made") colours[k] = INK[made[k]];
    else if (missing && missing[k]) colours[k] = AMBER;
    else if (chosen.view === "image") colours[k] = INK[seen[k]];
    else if (chosen.view === "parts") colours[k] = seen[k] ? PALE : PAPER;
    else if (errors[k] === MISSED) colours[k] = MISSED_INK;
    else if (errors[k] === ADDED) colours[k] = ADDED_INK;
    else colours[k] = made[k] ? BLACK : PAPER;
  }
  if (chosen.view !== "parts") return colours;
  // What belongs to a part is drawn in the colours of the first layer, which is shown last.
  const lowest = data.layers.length - 1, own = chosen.part && chosen.part.layer === lowest;
  const wanted = new Uint8Array(seen.length);
  for (const node of image.nodes) {
    if (chosen.part && same(chosen.part, node)) for (const k of node.own) wanted[k] = 1;
  }
  for (const node of image.nodes) {
    if (node.layer !== lowest || (own && !same(chosen.part, node))) continue;
    const full = FULL[node.part % FULL.length], pale = FAINT[node.part % FAINT.length];
    for (const k of node.own) {
      if (!chosen.part || wanted[k]) colours[k] = seen[k] ? full : pale;
    }
  }
  return colours;
}

function drawImage() {
  if (!images.length) return;
  const image = opened(chosen.image), { h, w } = image;
  const scale = Number(at("image-size").value);
  const context = paint(at("image"), h, w, scale, colouring(image));
  if (chosen.part && chosen.view === "parts") {
    context.lineWidth = Math.max(1, scale / 4);
    const lowest = chosen.part.layer === data.layers.length - 1;
    const [r, g, b] = lowest ? colourOf(chosen.part.part) : [90, 90, 90];
    context.strokeStyle = `rgb(${r},${g},${b})`;
    for (const node of image.nodes) {
      if (!same(chosen.part, node) || !node.own.length) continue;
      const rows = node.own.map((k) => Math.floor(k / w));
      const columns = node.own.map((k) => k % w);
      const top = Math.min(...rows), left = Math.min(...columns);
      context.strokeRect(left * scale - 1, top * scale - 1,
        (Math.max(...columns) - left + 1) * scale + 2, (Math.max(...rows) - top + 1) * scale + 2);
    }
  }
  if (chosen.pixel) {
    // A square that is also seen where pixels are small, and on any colour.
    const [r, c] = chosen.pixel, side = Math.max(scale, 9), edge = (side - scale) / 2;
    for (const [colour, width] of [["#fff", 5], ["#000", 2]]) {
      context.lineWidth = width;
      context.strokeStyle = colour;
      context.strokeRect(c * scale - edge - 1, r * scale - edge - 1, side + 2, side + 2);
    }
  }
}

function line(text) {
  const one = document.createElement("p");
  one.textContent = text;
  return one;
}

function explain() {
  const box = at("explained");
  box.replaceChildren();
  if (!images.length) return;
  if (chosen.part) {
    const part = parts[chosen.part.layer].get(chosen.part.part);
    const where = images.map((image, k) => [k, image.nodes.filter(
      ([l, p]) => l === chosen.part.layer && p === chosen.part.part).length]);
    const found = where.filter(([, n]) => n > 0);
    const total = found.reduce((sum, [, n]) => sum + n, 0);
    box.append(line(`${part.name}: ${total.toLocaleString("en")}× in ${found.length} of `
      + `${images.length} images`));
    const row = document.createElement("div");
    row.className = "bar";
    for (const [k, n] of found.slice(0, 40)) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "occurrence";
      button.textContent = `${images[k].name}: ${n}×`;
      button.setAttribute("aria-pressed", String(k === chosen.image));
      button.addEventListener("click", () => { chosen.image = k; chosen.pixel = null; drawAll(); });
      row.append(button);
    }
    box.append(row);
  }
  if (!chosen.pixel) {
    if (!chosen.part) box.append(line("Click a pixel to see which parts explain it, or a part to see where it is."));
    return;
  }
  const image = opened(chosen.image), [r, c] = chosen.pixel, k = r * image.w + c;
  const hidden = image.missing && image.missing[k];
  const state = hidden ? "missing" : image.seen[k] ? "on" : "off";
  const nodes = image.nodes.filter((node) => node.own.includes(k));
  const verdict = nodes.length ? "explained by" : state === "on" ? "explained by no part: noise"
    : "and no part is here";
  box.append(line(`Row ${r}, column ${c}: ${state}, ${verdict}`));
  for (const node of nodes) {
    const part = parts[node.layer].get(node.part);
    const [h, w] = part.size;
    const scale = Math.max(1, Math.floor(60 / Math.max(h, w)));
    box.append(card(node.layer, part, scale, [`${part.name} at row ${node.row}, column ${node.column}`]));
  }
}

function drawControls() {
  at("which").value = String(chosen.image);
  at("before").disabled = chosen.image <= 0;
  at("after").disabled = chosen.image >= images.length - 1;
  at("about").textContent = images.length ? images[chosen.image].about : "";
  for (const button of at("views").children) {
    button.setAttribute("aria-pressed", String(button.dataset.view === chosen.view));
  }
}

function remember() {
  const words = new URLSearchParams({ image: chosen.image, view: chosen.view });
  if (chosen.part) words.set("part", `${chosen.part.layer}.${chosen.part.part}`);
  if (chosen.pixel) words.set("pixel", chosen.pixel.join("."));
  history.replaceState(null, "", `#${words}`);
}

function recall() {
  const words = new URLSearchParams(location.hash.slice(1));
  const image = Number(words.get("image"));
  if (image >= 0 && image < images.length) chosen.image = image;
  if (words.get("view") in VIEWS) chosen.view = words.get("view");
  const [layer, part] = (words.get("part") || "").split(".").map(Number);
  if (parts[layer] && parts[layer].has(part)) chosen.part = { layer, part };
  const pixel = (words.get("pixel") || "").split(".").map(Number);
  const [h, w] = images.length ? images[chosen.image].size : [0, 0];
  if (pixel.length === 2 && pixel[0] < h && pixel[1] < w) chosen.pixel = pixel;
}

function drawAll() {
  drawControls();
  drawImage();
  explain();
  markChosen();
  remember();
}

function choosePixel(r, c) {
  const [h, w] = images[chosen.image].size;
  chosen.pixel = [Math.min(Math.max(r, 0), h - 1), Math.min(Math.max(c, 0), w - 1)];
  drawAll();
}

function begin() {
  // Parts of different sizes are drawn at the same scale, which suits most of them.
  const sizes = data.layers.map((layer) => {
    const sides = layer.parts.map((part) => Math.max(...part.size)).sort((a, b) => a - b);
    return sides[Math.floor(sides.length / 2)] || 1;
  });
  at("part-size").value = String(Math.max(1, Math.floor(60 / Math.max(1, ...sizes))));
  at("naming").hidden = !names.size;
  at("save-names").addEventListener("click", saveNames);
  countNames();
  at("part-size").addEventListener("input", drawLayers);
  at("parts-hint").textContent = images.length ? "Click a part to see where it is." : "";
  if (!images.length) { at("places").hidden = true; recall(); drawLayers(); return; }
  at("images-note").textContent = data.images_note;
  const [h, w] = images[0].size;
  const wide = document.documentElement.clientWidth - 48, room = Math.min(640, wide);
  const size = at("image-size"), fitting = Math.floor(Math.min(room / w, 640 / h));
  // A page is larger than the screen.
  if (!fitting) Object.assign(size, { min: "0.1", max: "4", step: "0.1" });
  size.value = String(fitting || Math.max(0.1, Math.floor((10 * Math.min(wide, 1100)) / w) / 10));
  at("image-size").addEventListener("input", drawImage);
  images.forEach((image, k) => at("which").append(new Option(image.name, String(k))));
  const go = (k) => { chosen.image = k; chosen.pixel = null; drawAll(); };
  at("which").addEventListener("change", () => go(Number(at("which").value)));
  at("before").addEventListener("click", () => go(chosen.image - 1));
  at("after").addEventListener("click", () => go(chosen.image + 1));
  for (const [view, name] of Object.entries(VIEWS)) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.view = view;
    button.textContent = name;
    button.addEventListener("click", () => { chosen.view = view; drawAll(); });
    at("views").append(button, " ");
  }
  at("image").addEventListener("click", (event) => {
    const scale = Number(at("image-size").value);
    choosePixel(Math.floor(event.offsetY / scale), Math.floor(event.offsetX / scale));
  });
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  at("image").addEventListener("keydown", (event) => {
    if (!(event.key in steps)) return;
    event.preventDefault();
    const [r, c] = chosen.pixel || [0, 0], [i, j] = steps[event.key];
    choosePixel(r + i, c + j);
  });
  recall();
  drawLayers();
  drawAll();
}

begin();
