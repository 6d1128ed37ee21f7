// New identities. crypto.randomUUID exists only on https and loopback pages; this works on all.

export function newId(prefix) {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0"));
  return `${prefix}_${hex.join("")}`;
}
