// SPDX-License-Identifier: GPL-2.0-or-later
// What a page does besides its tables and flame graphs: folds that open for links and for paper.
"use strict";
(() => {
  const openUpTo = (element) => {
    for (let at = element; at; at = at.parentElement) {
      if (at.tagName === "DETAILS") at.open = true;
    }
  };
  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    openUpTo(target);
    target.scrollIntoView();
    (target.querySelector("summary") || target).focus({ preventScroll: true });
  };
  addEventListener("hashchange", follow);
  addEventListener("DOMContentLoaded", follow);

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of closed) one.open = false;
  });

  for (const section of document.querySelectorAll("section")) {
    const folds = section.querySelectorAll(":scope > details");
    if (folds.length < 3) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "more";
    button.textContent = "Open all";
    button.addEventListener("click", () => {
      const open = button.textContent === "Open all";
      for (const one of folds) one.open = open;
      button.textContent = open ? "Close all" : "Open all";
    });
    folds[0].before(button);
  }
})();
