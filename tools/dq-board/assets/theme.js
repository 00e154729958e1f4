// Before anything is painted.
try {
  const theme = localStorage.getItem("dq-theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch { /* without storage the system's theme holds */ }
