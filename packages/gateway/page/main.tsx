// Starts the page.
import { render } from "preact";
import { App } from "./app.js";
import { Session } from "./session.js";

const session = new Session();
const root = document.getElementById("app");
if (root !== null) render(<App session={session} />, root);
session.connect();
