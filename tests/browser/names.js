// What a screen reader could not make sense of: parts, headers, names or ids that are missing or doubled.
() => {
  const bad = [];
  for (const part of ['header', 'nav', 'main', 'h1']) if (document.querySelectorAll(`body > ${part}, body > header ${part}`).length < 1) bad.push(part);
  for (const table of document.querySelectorAll('table')) if (!table.querySelector('th[scope=col]')) bad.push(table.className);
  for (const node of document.querySelectorAll('button, select, input, [role=region], svg[role=img]')) {
    const name = node.getAttribute('aria-label') || node.textContent.trim() || node.labels?.[0]?.textContent;
    if (!name) bad.push(node.outerHTML.slice(0, 80));
  }
  const ids = [...document.querySelectorAll('[id]')].map((node) => node.id);
  for (const id of new Set(ids)) if (ids.filter((each) => each === id).length > 1) bad.push(id);
  for (const node of document.querySelectorAll('[aria-labelledby]')) if (!document.getElementById(node.getAttribute('aria-labelledby'))) bad.push(node.id);
  return bad;
}
