const form = document.getElementById("form");
const password = document.getElementById("password");
const wrong = document.getElementById("wrong");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  wrong.textContent = "";
  const headers = { "x-dq": "1", "content-type": "application/json" };
  const body = JSON.stringify({ password: password.value });
  try {
    const answer = await fetch("api/sign-in", { method: "POST", headers, body });
    if (answer.ok) return location.reload();
    wrong.textContent = (await answer.json()).error;
  } catch {
    wrong.textContent = "The board does not answer.";
  }
  password.select();
});
