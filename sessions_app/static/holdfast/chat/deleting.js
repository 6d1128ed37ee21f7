// Deleting a chat: what runs is stopped, and the rest is held back for a moment, in which it can be undone.

import { call } from "./api.js";

const HELD_BACK = 10000;

/** Delete the chat unless it is undone; `onDone` follows. Who leaves the page has not undone it. */
export function deleteSoon({ session, isRunning, onDone }) {
  if (isRunning) call("POST", `/sessions/${session}/interrupt`, {}).catch(() => {});
  const { toast, undo } = message(isRunning);
  const finish = () => call("DELETE", `/sessions/${session}`, undefined, { keepalive: true }).catch(() => {});
  const end = () => {
    clearTimeout(timer);
    window.removeEventListener("pagehide", finish);
    toast.remove();
  };
  const timer = setTimeout(() => {
    end();
    finish().then(onDone);
  }, HELD_BACK);
  window.addEventListener("pagehide", finish);
  undo.addEventListener("click", end);
  return end;
}

function message(isRunning) {
  const toast = document.createElement("div");
  toast.className = "toast";
  toast.setAttribute("role", "alert");
  const undo = document.createElement("button");
  Object.assign(undo, { type: "button", className: "quiet", textContent: "Undo" });
  const stopped = isRunning ? "The answer is stopped. " : "";
  toast.append(`${stopped}This chat is deleted in 10 seconds.`, undo);
  document.body.append(toast);
  return { toast, undo };
}
