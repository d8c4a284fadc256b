"use strict";
// Draws every chart. Colours are written as var(--name): the style sheet has their values, which change with
// the scheme and on paper, and then all is drawn again.
(() => {
  const text = document.getElementById("figures").textContent;
  const touch = matchMedia("(pointer: coarse)").matches;

  function figures() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name.slice(4, -1)).trim();
    const isColor = (key, entry) => /color$/.test(key) && /^var\(--\w+\)$/.test(entry);
    return JSON.parse(text, (key, entry) => (isColor(key, entry) ? value(entry) : entry));
  }

  function draw() {
    const plots = document.querySelectorAll(".plot");
    figures().forEach((figure, i) => {
      figure.layout.dragmode = touch ? false : "zoom"; // a finger on a chart scrolls the page
      Plotly.react(plots[i], figure.data, figure.layout, { responsive: true, displayModeBar: false });
    });
  }

  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", draw);
  }
  draw();
})();
