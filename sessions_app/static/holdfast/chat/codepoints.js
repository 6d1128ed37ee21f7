// Counting as the server counts: Unicode code points, where JavaScript strings hold UTF-16 units.

const HIGH_SURROGATE = /[\ud800-\udbff](?=[\udc00-\udfff])/g;

/** The number of code points of a text; its cost follows the text that is given, so give it only what is new. */
export function countCodePoints(text) {
  const pairs = text.match(HIGH_SURROGATE);
  return pairs === null ? text.length : text.length - pairs.length;
}

/** The text without its first `count` code points. */
export function dropCodePoints(text, count) {
  let unit = 0;
  for (let left = count; left > 0 && unit < text.length; left -= 1) {
    unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
  }
  return text.slice(unit);
}
