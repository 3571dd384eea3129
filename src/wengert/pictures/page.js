"use strict";
// The picture is drawn already; this moves, folds and explains what is there.
const facts = JSON.parse(document.getElementById("facts").textContent);
const view = document.getElementById("view");
const panel = document.getElementById("panel");
const svg = view.querySelector("svg");
const size = { width: svg.viewBox.baseVal.width, height: svg.viewBox.baseVal.height };
const boxes = [];
let scale = 1;
const wires = new Map();
const users = facts.map(() => []);
facts.forEach((fact, n) => fact.uses.forEach((used) => users[used].push(n)));

function shiftOf(element) {
  return element.getAttribute("transform").match(/-?[\d.]+/g).map(Number);
}

for (const element of svg.querySelectorAll(".box")) {
  const [x, y] = shiftOf(element);
  const children = [...element.children];
  const frame = children.find((child) => child.tagName === "rect");
  const height = Number(frame.getAttribute("height"));
  boxes[element.dataset.n] = {
    element, frame, x, y, top: y, height, now: height,
    layer: Number(element.dataset.layer), closed: Number(element.dataset.closed), folded: false,
    pictures: children.filter((child) => child.classList.contains("picture")),
  };
}

// A picture of thousands of boxes is shown where one looks: what is far from the view is left out of the layout.

const items = [...svg.querySelectorAll(":scope > .picture > *")].map((element) => {
  const box = element.classList.contains("box") ? boxes[element.dataset.n] : null;
  const end = element.dataset.to === undefined ? null : boxes[element.dataset.to];
  const from = element.dataset.from === undefined ? null : boxes[element.dataset.from];
  if (from) element.end = Number(element.dataset.end);
  return {
    element, shown: false,
    top: () => (box || end || from).top,
    bottom: () => (box ? box.top + box.now : end ? end.top : element.end),
  };
});

function showWhatIsNear() {
  const reach = view.clientHeight / scale;
  const low = view.scrollTop / scale - reach, high = low + 3 * reach;
  for (const item of items) {
    const shown = item.bottom() >= low && item.top() <= high;
    if (shown !== item.shown) item.element.classList.toggle("shown", shown);
    item.shown = shown;
  }
}

let waiting = false;
view.addEventListener("scroll", () => {
  if (!waiting) requestAnimationFrame(() => { waiting = false; showWhatIsNear(); });
  waiting = true;
});

const pictures = [...svg.querySelectorAll(".picture")].map((element) => {
  const bands = element.dataset.bands.split(" ").filter(Boolean).map((band) => band.split(",").map(Number));
  const children = [...element.children];
  const [x, y] = shiftOf(element);
  const picture = {
    element, x, y, bands, height: bands.length ? bands[bands.length - 1][1] : 0,
    boxes: children.filter((c) => c.classList.contains("box")).map((c) => boxes[c.dataset.n]),
    wires: children.filter((c) => c.tagName === "path"),
    ends: children.filter((c) => c.classList.contains("end")),
    owner: element.parentNode === svg ? null : boxes[element.parentNode.dataset.n],
  };
  picture.now = picture.height;
  element.picture = picture;
  picture.wires.forEach((wire) => wires.set(wire.dataset.from, [...(wires.get(wire.dataset.from) || []), wire]));
  return picture;
});

const margin = size.height - pictures[0].height;

// Folding: layers become lower, and what is below them moves up.

function arrange(picture) {
  const heights = picture.bands.map(() => 0);
  picture.boxes.forEach((box) => { heights[box.layer] = Math.max(heights[box.layer], box.now); });
  const bands = [];
  let top = 0;
  picture.bands.forEach(([oldTop, oldBottom], i) => {
    bands.push([top, top + heights[i]]);
    top += heights[i] + (i + 1 < picture.bands.length ? picture.bands[i + 1][0] - oldBottom : 0);
  });
  const moved = (y) => {
    let low = 0, high = bands.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (picture.bands[middle][0] <= y + 0.06) low = middle; else high = middle - 1;
    }
    const below = y - picture.bands[low][1];
    return below > -0.06 ? bands[low][1] + below : bands[low][0] + y - picture.bands[low][0];
  };
  for (const box of picture.boxes) {
    box.top = bands[box.layer][0];
    box.element.setAttribute("transform", `translate(${box.x} ${box.top})`);
  }
  for (const wire of picture.wires) {
    wire.original ??= wire.getAttribute("d").match(/-?[\d.]+/g).map(Number);
    const box = boxes[wire.dataset.from], bottom = box.y + box.height;
    const p = wire.original;
    let d = "";
    wire.end = 0;
    for (let i = 0; i < p.length; i += 9) {
      const start = Math.abs(p[i + 1] - bottom) < 0.11 ? box.top + box.now : moved(p[i + 1]);
      const middle = moved(p[i + 4]), end = moved(p[i + 8]);
      wire.end = Math.max(wire.end, end);
      d += `M${p[i]} ${start}V${moved(p[i + 2])}C${p[i + 3]} ${middle} ${p[i + 5]} ${middle} ${p[i + 7]} ${end}`;
    }
    wire.setAttribute("d", d);
  }
  for (const end of picture.ends) end.setAttribute("cy", boxes[end.dataset.to].top);
  picture.now = bands.length ? bands[bands.length - 1][1] : 0;
  if (picture.owner) resize(picture.owner);
}

function resize(box) {
  const highest = (key) => Math.max(...box.pictures.map((element) => element.picture[key]));
  box.now = box.folded ? box.closed : box.height - highest("height") + highest("now");
  box.frame.setAttribute("height", box.now);
}

function pictureOf(box) {
  return box.element.parentNode.picture;
}

function finish() {
  size.height = pictures[0].now + margin;
  zoomTo(scale);
}

function fold(box, folded) {
  mark(box, folded);
  for (let at = box; at; at = pictureOf(at).owner) arrange(pictureOf(at));
  finish();
}

function foldAll(folded) {
  boxes.filter((box) => box.pictures.length).forEach((box) => mark(box, folded));
  [...pictures].reverse().forEach(arrange);
  finish();
}

function mark(box, folded) {
  box.folded = folded;
  box.element.classList.toggle("folded", folded);
  resize(box);
}

// Zooming and panning

function zoomTo(wanted, x = view.clientWidth / 2, y = view.clientHeight / 2) {
  const next = Math.min(4, Math.max(0.01, wanted));
  const left = (view.scrollLeft + x) / scale, top = (view.scrollTop + y) / scale;
  scale = next;
  svg.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
  svg.setAttribute("width", size.width * scale);
  svg.setAttribute("height", size.height * scale);
  view.scrollLeft = left * scale - x;
  view.scrollTop = top * scale - y;
  showWhatIsNear();
}

function fit() {
  zoomTo(Math.min(1, view.clientWidth / size.width, view.clientHeight / size.height));
}

view.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const place = view.getBoundingClientRect();
  zoomTo(scale * Math.exp(-event.deltaY / 300), event.clientX - place.left, event.clientY - place.top);
}, { passive: false });

let held = null;
view.addEventListener("pointerdown", (event) => {
  if (event.button === 0) held = { x: event.clientX, y: event.clientY, left: view.scrollLeft, top: view.scrollTop };
});
addEventListener("pointermove", (event) => {
  if (!held) return;
  const x = event.clientX - held.x, y = event.clientY - held.y;
  if (Math.abs(x) + Math.abs(y) > 4) view.classList.add("dragged");
  if (!view.classList.contains("dragged")) return;
  view.scrollLeft = held.left - x;
  view.scrollTop = held.top - y;
});
addEventListener("pointerup", () => { held = null; });

// Reading

function boxAt(event) {
  const element = event.target.closest(".box");
  return element ? Number(element.dataset.n) : null;
}

view.addEventListener("click", (event) => {
  const dragged = view.classList.contains("dragged");
  view.classList.remove("dragged");
  if (!dragged) select(boxAt(event));
});
view.addEventListener("dblclick", (event) => {
  const n = boxAt(event);
  if (n !== null && boxes[n].pictures.length) fold(boxes[n], !boxes[n].folded);
});

function select(n) {
  for (const kind of ["selected", "near", "origin", "lit"]) {
    svg.querySelectorAll(`.${kind}`).forEach((element) => element.classList.remove(kind));
  }
  if (n === null) return;
  const fact = facts[n];
  boxes[n].element.classList.add("selected");
  [...fact.uses, ...users[n]].forEach((other) => boxes[other].element.classList.add("near"));
  [n, ...fact.uses].forEach((from) => (wires.get(String(from)) || []).forEach((wire) => wire.classList.add("lit")));
  if (fact.forward !== null) boxes[fact.forward].element.classList.add("origin");
  tell(n);
}

function made(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}

function tell(n) {
  const fact = facts[n], list = document.createElement("dl");
  const enter = (name, ...contents) => {
    const value = document.createElement("dd");
    value.append(...contents);
    list.append(made("dt", name), value);
  };
  for (const [name, text] of Object.entries(fact.facts)) {
    if (name !== "forward") enter(name, text);
  }
  if (fact.forward !== null) enter("derivative of", link(fact.forward));
  if (fact.uses.length) enter("uses", ...fact.uses.map(link));
  if (users[n].length) enter("used by", ...users[n].map(link));
  panel.replaceChildren(made("h2", fact.label), list);
  panel.insertAdjacentHTML("beforeend", fact.svg);
  if (boxes[n].pictures.length) {
    const button = made("button", boxes[n].folded ? "unfold" : "fold");
    button.addEventListener("click", () => { fold(boxes[n], !boxes[n].folded); tell(n); });
    panel.append(button);
  }
}

function link(n) {
  const element = made("a", facts[n].label);
  element.addEventListener("click", () => go(n));
  return element;
}

function go(n) {
  for (let at = pictureOf(boxes[n]).owner; at; at = pictureOf(at).owner) if (at.folded) fold(at, false);
  select(n);
  if (scale < 0.5) zoomTo(1);
  show(n);
}

function show(n) {
  const [x, y] = placeOf(boxes[n]);
  view.scrollLeft = (x + Number(boxes[n].frame.getAttribute("width")) / 2) * scale - view.clientWidth / 2;
  view.scrollTop = y * scale - view.clientHeight / 3;
  showWhatIsNear();
}

function placeOf(box) {
  let x = 0, y = 0;
  for (let at = box; at; at = pictureOf(at).owner) {
    x += at.x + pictureOf(at).x;
    y += at.top + pictureOf(at).y;
  }
  return [x, y];
}

const find = document.getElementById("find");
let last = -1;
find.addEventListener("input", () => { last = -1; });
find.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  const wanted = find.value.toLowerCase();
  const matches = facts.map((fact, n) => n).filter((n) => facts[n].label.toLowerCase().includes(wanted));
  const next = matches.find((n) => n > last) ?? matches[0];
  document.getElementById("found").textContent = matches.length ? `${matches.indexOf(next) + 1} of ${matches.length}` : "none";
  if (next === undefined) return;
  last = next;
  go(next);
});

const actions = {
  smaller: () => zoomTo(scale / 1.25), larger: () => zoomTo(scale * 1.25), actual: () => zoomTo(1), fit,
  fold: () => foldAll(true), unfold: () => foldAll(false),
};
for (const [name, action] of Object.entries(actions)) document.getElementById(name).addEventListener("click", action);
const keys = { "+": "larger", "-": "smaller", "1": "actual", "0": "fit" };
view.addEventListener("keydown", (event) => { if (keys[event.key]) actions[keys[event.key]](); });

zoomTo(Math.min(1, Math.max(0.4, view.clientWidth / size.width)));
const first = pictures[0].boxes.find((box) => box.layer === 0);
if (first) show(first.element.dataset.n);
