"use strict";
(() => {
  const field = document.getElementById("filter");
  const shown = document.getElementById("shown");
  const quiet = document.getElementById("quiet");
  const rows = [...document.querySelectorAll(".machines tbody tr")];
  const words = rows.map((row) => row.textContent.toLowerCase() + " " + row.className);
  const apply = () => {
    const wanted = field.value.trim().toLowerCase();
    let count = 0;
    rows.forEach((row, i) => {
      row.hidden = !words[i].includes(wanted);
      count += !row.hidden;
    });
    if (quiet) quiet.open = wanted !== "";
    shown.textContent = wanted ? count + " of " + rows.length : "";
  };
  field.addEventListener("input", apply);
})();
