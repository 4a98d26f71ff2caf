#include "tuner/server/http/login_page.h"

namespace espalier {

std::string_view LoginPage() {
  return R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Espalier: log in</title>
<link rel="icon" href="data:,">
<script src="login.js" defer></script>
</head>
<body>
<main>
<h1>Espalier</h1>
<form>
<input type="text" autocomplete="username" value="tuner" hidden>
<p><label for="token">Token of this tuner service</label></p>
<p><input id="token" type="password" size="60" autocomplete="current-password" required autofocus>
<button>Log in</button></p>
<p role="status" id="said"></p>
</form>
<p>An administrator makes one with <code>tuner token create --role view --name NAME</code>.</p>
<noscript><p>This page needs JavaScript.</p></noscript>
</main>
</body>
</html>
)html";
}

// Where it lies shows where the service does, also below a path that a proxy adds. A link to a page
// within the service is followed once there is a session. SameSite=Strict keeps
// the cookie from what other sites link to, so it may be there already. `tuner open` brings a code
// along behind the #, which browsers send to nobody, and which is not left in the address.
std::string_view LoginScript() {
  return R"js("use strict";
const said = document.getElementById("said");
const say = (text) => { said.textContent = text; };
const root = new URL(".", location.href);
const session = new URL("api/session", root);
const goOn = () => {
  let to = root;
  try { to = new URL(new URLSearchParams(location.search).get("to") ?? "", root); } catch { /* no address */ }
  location.replace(to.href.startsWith(root.href) ? to.href : root.href);
};
const problem = async (answer) => {
  try { return (await answer.json()).error; } catch { return `the service answers ${answer.status}`; }
};
const begin = async (authorization, what) => {
  say("");
  try {
    const headers = {"Authorization": authorization, "X-Espalier": "1"};
    const answer = await fetch(session, {method: "POST", headers});
    if (answer.ok) goOn(); else say(await problem(answer));
  } catch (error) {
    say(error instanceof TypeError ? "the service does not answer, or this is no " + what : String(error));
  }
};
document.querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  begin("Bearer " + document.getElementById("token").value.trim(), "token");
});
const goOnIfLetIn = () => fetch(session).then((answer) => { if (answer.ok) goOn(); }, () => {});
const code = new URLSearchParams(location.hash.slice(1)).get("code");
if (code === null) {
  goOnIfLetIn();
} else {
  history.replaceState(null, "", location.pathname + location.search);
  begin("Espalier-Code " + code, "code").then(goOnIfLetIn);
}
)js";
}

}  // namespace espalier
