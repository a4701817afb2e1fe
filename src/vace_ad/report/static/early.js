// Before anything is drawn, so that a dark screen shows no white flash.
document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
document.documentElement.classList.add("scripted");
