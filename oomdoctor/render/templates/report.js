"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("lively");
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  /* Copy buttons. A file that was opened from a disk may have no clipboard of its own. */
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };
  for (const button of all("button.copy")) {
    const said = button.textContent;
    button.addEventListener("click", async () => {
      const rows = all(".row", button.closest(".code")).map((row) => row.textContent);
      await copy(rows.join("\n") + "\n");
      button.textContent = "Copied";
      button.focus();
      setTimeout(() => { button.textContent = said; }, 1500);
    });
  }

  /* Open and close what is folded, and open all of it for a printer. */
  const folds = all("details");
  for (const button of all("button[data-open]")) {
    button.addEventListener("click", () => {
      for (const one of folds) one.open = button.dataset.open === "yes";
    });
  }
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = folds.filter((one) => !one.open);
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of closed) one.open = false; });

  /* Flame graphs: a press or Enter zooms into a call, arrows go along, Escape shows all again. */
  for (const flame of all(".flame")) {
    const frames = all(".frame", flame).map((node) => ({
      node, depth: +node.dataset.depth, start: +node.dataset.start, size: +node.dataset.size,
    }));
    const told = flame.parentElement.querySelector(".told");
    const hint = told.textContent;
    let here = null;
    const show = (zoomed) => {
      for (const one of frames) {
        const left = (one.start - zoomed.start) / zoomed.size, width = one.size / zoomed.size;
        one.node.hidden = left >= 1 - 1e-9 || left + width <= 1e-9;
        const from = Math.max(left, 0), to = Math.min(left + width, 1);
        one.node.style.left = `${100 * from}%`;
        one.node.style.width = `${100 * (to - from)}%`;
        one.node.classList.toggle("narrow", to - from < 0.02);
      }
    };
    const tell = (one) => {
      here?.node.classList.remove("here");
      here = one;
      here?.node.classList.add("here");
      told.textContent = one ? one.node.title : hint;
    };
    const inside = (one, other) =>
      one.start >= other.start && one.start + one.size <= other.start + other.size;
    const step = (key) => {
      if (!here) return frames[0];
      const row = frames.filter((one) => one.depth === here.depth && !one.node.hidden);
      const at = row.indexOf(here);
      return {
        ArrowLeft: () => row[at - 1],
        ArrowRight: () => row[at + 1],
        ArrowUp: () => frames.find((one) => one.depth === here.depth - 1 && inside(here, one)),
        ArrowDown: () => frames.find((one) => one.depth === here.depth + 1 && inside(one, here)),
      }[key]();
    };
    for (const one of frames) {
      one.node.addEventListener("mouseenter", () => tell(one));
      one.node.addEventListener("click", () => { tell(one); show(one); });
    }
    flame.addEventListener("mouseleave", () => { if (document.activeElement !== flame) tell(null); });
    flame.addEventListener("keydown", (event) => {
      if (event.key.startsWith("Arrow")) tell(step(event.key) ?? here);
      else if (event.key === "Enter" && here) show(here);
      else if (event.key === "Escape") { show(frames[0]); tell(frames[0]); }
      else return;
      event.preventDefault();
    });
    flame.closest("figure").querySelector("button.whole")
      ?.addEventListener("click", () => { show(frames[0]); tell(null); });
    show(frames[0]);
  }

  /* Charts of the library, in the colours of the page; the still picture stays for printing. */
  const data = document.getElementById("charts");
  if (!data || !globalThis.Bokeh) return;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const deep = (node) => all("*", node).flatMap(
    (one) => [one, ...(one.shadowRoot ? deep(one.shadowRoot) : [])],
  );
  const draw = async () => {
    const look = getComputedStyle(root);
    const plain = JSON.parse(data.textContent);
    let text = JSON.stringify(plain.items);
    for (const [colour, name] of Object.entries(plain.colours)) {
      text = text.replaceAll(colour, look.getPropertyValue(name).trim());
    }
    for (const item of JSON.parse(text)) {
      const place = document.getElementById(item.target_id);
      const figure = place.closest("figure");
      place.replaceChildren();
      place.hidden = false;
      try {
        await Bokeh.embed.embed_item(item);
        for (const one of deep(place)) {
          // a finger that moves up or down scrolls the page, also where it is on a chart
          if (one.classList.contains("bk-events")) one.style.touchAction = "pan-y pinch-zoom";
        }
        for (const one of all(".still", figure)) one.hidden = true;
      } catch (error) {
        place.hidden = true;
        console.error(error);
      }
    }
    root.dataset.charts = "drawn";
  };
  /* What a chart says at the pointer stands in a box of its own, whose words the page cannot reach. */
  new MutationObserver((changes) => {
    for (const node of changes.flatMap((one) => [...one.addedNodes])) {
      if (!node.classList?.contains("bk-Tooltip") || !node.shadowRoot) continue;
      const style = document.createElement("style");
      style.textContent = ".bk-tooltip-row-label { color: inherit; opacity: .8; white-space: nowrap; }"
        + " .bk-tooltip-row-value { white-space: normal; }";
      node.shadowRoot.append(style);
    }
  }).observe(document.body, { childList: true });
  dark.addEventListener("change", draw);
  draw();
})();
