// The API as the page uses it: same origin, the web session's cookie, and Django's CSRF token.

export class ApiError extends Error {
  constructor(status, problem) {
    super(problem?.detail ?? `The server answered ${status}.`);
    this.status = status;
    this.code = problem?.code ?? "";
    this.problem = problem;
  }
}

/** One call. Resolves with the decoded body or null; rejects with ApiError, or TypeError without a network. */
export async function call(method, path, body, options = {}) {
  const response = await fetch(`/api/v1${path}`, {
    method,
    headers: { Accept: "application/json", "Content-Type": "application/json", "X-CSRFToken": csrfToken() },
    body: body === undefined ? undefined : JSON.stringify(body),
    credentials: "same-origin",
    ...options,
  });
  const text = await response.text();
  const decoded = text === "" ? null : parse(text);
  if (!response.ok) throw new ApiError(response.status, decoded);
  return decoded;
}

/** The cookie's token, since signing in from another tab renews it; the page's own where cookies are hidden. */
function csrfToken() {
  const cookie = document.cookie.split("; ").find((pair) => pair.startsWith("csrftoken="));
  if (cookie !== undefined) return cookie.slice("csrftoken=".length);
  return document.querySelector("input[name=csrfmiddlewaretoken]").value;
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
