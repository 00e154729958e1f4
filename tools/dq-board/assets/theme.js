// Light or dark: chosen before the first paint, and by the button.
try {
  const theme = localStorage.getItem("dq-theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch { /* without storage the system's theme holds */ }

document.addEventListener("click", (event) => {
  if (!event.target.closest("#theme")) return;
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("dq-theme", root.dataset.theme);
  } catch { /* it holds until the tab is closed */ }
});
