// Texts of less than 4.5 to 1 against what lies behind them.
() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const blend = (colors) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = '#fff'; canvas.fillRect(0, 0, 1, 1);
    for (const color of colors) { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); } return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3); };
  const light = ([r, g, b]) => { const f = (v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const found = [];
  const root = document.querySelector('dialog[open]') ?? document.body;
  for (const node of root.querySelectorAll('*')) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own || node.closest('svg, select, script, style, noscript, .hidden, :disabled, .skip') || !node.checkVisibility()) continue;
    const behind = [];
    for (let at = node; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
    const back = blend(behind), fore = blend([...behind, getComputedStyle(node).color]);
    const [a, b] = [light(back), light(fore)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.push([node.className, node.textContent.slice(0, 30), ratio.toFixed(2)]);
  }
  return found;
}
